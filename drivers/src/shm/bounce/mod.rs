//! `bounce`: bounce buffers, memory beside the ring that the sender copies data into and the receiver out of.
//!
//! - [`ranges`]: which bytes of the memory are in use.
//! - [`packet`]: packets that are too long for cells, in one piece.
//! - [`parts`]: chunks, in pieces of 16 KiB, so that both cores copy at once, one behind the other.
//!
//! Two copies instead of one, of which the second comes from the cache, and no system call. Where the kernel
//! forbids cross-memory access it is the only way for long data. A long message that follows its announcement
//! at once always begins here: before it is known where the bytes go, only the receiver can put them there.

pub mod packet;
pub mod parts;
pub mod ranges;
