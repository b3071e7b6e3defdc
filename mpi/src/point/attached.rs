//! Buffers that the program has attached, and the messages in them.

use crate::constant::BUFFER_AUTOMATIC;
use crate::error::{Class, Result};
use crate::memory;
use crate::task;
use crate::world::{World, world};
use newmadeleine::{RequestId, Segments};
use std::ffi::c_void;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;

/// Messages begin at multiples of this many bytes; less than MPI_BSEND_OVERHEAD in every interface.
const ALIGNMENT: usize = 64;

/// A place for a buffer.
pub(crate) struct Attached(Mutex<Option<Buffer>>);

/// An attached buffer and the messages in it.
pub(super) struct Buffer {
    start: usize,
    len: usize,
    /// By offset. Those that have bytes do not overlap.
    messages: Vec<Message>,
}

/// A message that is on its way, or whose room nobody has asked for since it left.
pub(super) struct Message {
    pub(super) offset: usize,
    pub(super) len: usize,
    /// Memory of the library's own, if the buffer is [`BUFFER_AUTOMATIC`].
    pub(super) own: Option<Box<[u8]>>,
    pub(super) id: RequestId,
}

impl Attached {
    pub(crate) const fn none() -> Attached {
        Attached(Mutex::new(None))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Buffer>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Attaches a buffer.
    ///
    /// # Errors
    /// There is one already, its size is negative, or it has one and is nowhere.
    pub(crate) fn attach(&self, start: *mut c_void, size: i64) -> Result<()> {
        let Ok(len) = usize::try_from(size) else {
            return Err(Class::ARG.error(format!("a buffer of {size} B cannot be attached")));
        };
        if memory::is_nowhere(start) && start != BUFFER_AUTOMATIC && len > 0 {
            let text = format!(
                "there is no buffer of {size} B at this address: give memory, or MPI_BUFFER_AUTOMATIC"
            );
            return Err(Class::BUFFER.error(text));
        }
        let mut place = self.lock();
        if place.is_some() {
            return Err(Class::BUFFER.error("a buffer is attached already: detach it first"));
        }
        *place = Some(Buffer { start: start.expose_provenance(), len, messages: Vec::new() });
        Ok(())
    }

    /// Waits for the messages in it, and gives the buffer back: its address and size.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn detach(&self) -> Result<(usize, i64)> {
        loop {
            self.flush()?;
            // Another thread may have put a message into it meanwhile.
            if let Some(buffer) = self.lock().take_if(|buffer| buffer.messages.is_empty()) {
                return Ok((buffer.start, buffer.len as i64));
            }
        }
    }

    /// Waits for the messages that are in it now.
    ///
    /// # Errors
    /// There is no buffer.
    pub(crate) fn flush(&self) -> Result<()> {
        task::block_on(self.iflush()?)?;
        let world = world()?;
        if let Some(buffer) = &mut *self.lock() {
            buffer.clear(world);
        }
        Ok(())
    }

    /// As [`Attached::flush`], in steps. The messages stay in the buffer: it is theirs until they have left.
    ///
    /// # Errors
    /// There is no buffer.
    pub(crate) fn iflush(&self) -> Result<impl Future<Output = Result<()>> + use<>> {
        let Some(buffer) = &*self.lock() else {
            return Err(Class::BUFFER.error("no buffer is attached"));
        };
        let names: Vec<RequestId> = buffer.messages.iter().map(|message| message.id).collect();
        Ok(async move {
            for name in names {
                left(name).await?;
            }
            Ok(())
        })
    }
}

/// Waits until a message has left, if it is known at all. Its result is ignored, since the call that sent it
/// returned success long ago.
async fn left(name: RequestId) -> Result<()> {
    let look = |world: &World| match world.node().has_ended(name) {
        Ok(false) => Poll::Pending,
        Ok(true) | Err(_) => Poll::Ready(Ok(())),
    };
    poll_fn(|_| world().map_or_else(|gone| Poll::Ready(Err(gone)), look)).await
}

/// Where a message lies in the buffer, its memory, and that memory itself if it is the library's own.
pub(super) type Room = (usize, Segments, Option<Box<[u8]>>);

impl Buffer {
    /// Frees the memory of messages that have left.
    fn clear(&mut self, world: &World) {
        self.messages.retain(|message| world.node().take(message.id).is_none());
    }

    /// Memory for a message, and where it is.
    pub(super) fn room(&mut self, world: &World, len: usize) -> Result<Room> {
        self.clear(world);
        if self.start == BUFFER_AUTOMATIC.addr() {
            let mut own = vec![0; len].into_boxed_slice();
            return Ok((0, memory::contiguous(own.as_mut_ptr().cast(), len), Some(own)));
        }
        let Some(offset) = self.space(len) else {
            return Err(Class::BUFFER.error(format!(
                "a message of {len} B finds no room in the attached buffer of {} B, where {} messages wait",
                self.len,
                self.messages.len()
            )));
        };
        let start = std::ptr::with_exposed_provenance::<c_void>(self.start + offset);
        Ok((offset, memory::contiguous(start, len), None))
    }

    /// The first place with `len` bytes that no message uses.
    fn space(&self, len: usize) -> Option<usize> {
        let mut offset = 0;
        // Those without bytes take no room, and lie at the begin, whatever else does.
        for message in self.messages.iter().filter(|message| message.len > 0) {
            if offset + len <= message.offset {
                break;
            }
            offset = (message.offset + message.len).next_multiple_of(ALIGNMENT);
        }
        (offset + len <= self.len).then_some(offset)
    }

    /// Takes note of a message that is in its place.
    pub(super) fn keep(&mut self, message: Message) {
        let at = self.messages.partition_point(|other| other.offset <= message.offset);
        self.messages.insert(at, message);
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // Dropped only when it has ended; whoever forgets it earlier must not free what the engine reads.
        if let (Some(own), Ok(world)) = (self.own.take(), world())
            && world.node().has_ended(self.id) == Ok(false)
        {
            std::mem::forget(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Where a message is put, or that one ends, by its place in the list.
    #[derive(Debug, Clone)]
    enum Step {
        Put(usize),
        End(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let len = prop_oneof![Just(0), 1..200usize, Just(ALIGNMENT), Just(1000)];
        prop::collection::vec(
            prop_oneof![2 => len.prop_map(Step::Put), 1 => (0..64usize).prop_map(Step::End)],
            1..100,
        )
    }

    fn buffer(len: usize) -> Buffer {
        Buffer { start: 0, len, messages: Vec::new() }
    }

    fn message(offset: usize, len: usize) -> Message {
        Message { offset, len, own: None, id: RequestId(0) }
    }

    proptest! {
        /// Against a list of bytes: the first place that is free is found, also none.
        #[test]
        fn no_message_lies_where_another_does(len in 0..3000usize, steps in steps()) {
            let (mut buffer, mut taken) = (buffer(len), vec![false; len]);
            for step in steps {
                match step {
                    Step::Put(len) => {
                        let bytes = |at: usize| taken.get(at..at + len);
                        let is_free = |&at: &usize| bytes(at).is_some_and(|bytes| !bytes.contains(&true));
                        let first = (0..=taken.len()).step_by(ALIGNMENT).find(is_free);
                        prop_assert_eq!(buffer.space(len), first);
                        if let Some(offset) = first {
                            taken[offset..offset + len].fill(true);
                            buffer.keep(message(offset, len));
                        }
                    }
                    Step::End(which) if which < buffer.messages.len() => {
                        let ended = buffer.messages.remove(which);
                        taken[ended.offset..ended.offset + ended.len].fill(false);
                    }
                    Step::End(_) => {}
                }
            }
        }

        /// A program gives as much as the standard asks for, which is MPI_BSEND_OVERHEAD for each message.
        #[test]
        fn every_message_has_its_room(lens in prop::collection::vec(0..200usize, 0..50)) {
            let mut buffer = buffer(lens.iter().map(|len| len + ALIGNMENT).sum());
            for len in lens {
                let offset = buffer.space(len);
                prop_assert!(offset.is_some(), "{} B in {} B", len, buffer.len);
                buffer.keep(message(offset.unwrap(), len));
            }
        }
    }
}
