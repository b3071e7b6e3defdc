//! `bounce`: bounce buffers beside the ring, into which the sender copies data and out of which the
//! receiver copies it.
//!
//! - [`ranges`]: allocation of ranges of the buffer.
//! - [`packet`]: packets that are too long for cells, in one piece.
//! - [`parts`]: chunks, in pieces of 16 KiB, so that both cores copy at once in a pipeline.
//!
//! Two copies instead of one, the second of which reads from the cache, and no system call. Where the
//! kernel forbids cross-memory access, bounce buffers carry all long data. A long message that is pushed
//! right behind its announcement always starts here: until its receive is posted, only the receiver can
//! place its bytes.

pub mod packet;
pub mod parts;
pub mod ranges;
