//! A link to one peer over this rail: the shared segment, and the transfers under way in both directions.

use super::bounce::ranges::Ranges;
use super::chunk::incoming::Incoming;
use super::chunk::outgoing::Outgoing;
use super::cma::regions;
use super::layout::BOUNCE;
use super::probe::Probe;
use super::ring::cell::{self, Aside};
use super::ring::rhythm::Rhythm;
use super::ring::{CONTENT, Consumer, Found, Producer};
use super::shared::{Obstacle, Shared};
use super::turn::Turn;
use super::wakeup::{self, Fence};
use nmad_engine::packet::{Key, PeerId};
use nmad_engine::transfer::driver::{Event, Order};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// The result of the handshake.
#[derive(Debug)]
pub struct Opened {
    pub peer: PeerId,
    pub remote: u8,
    pub shared: Shared,
    /// The connection of the handshake; when it closes, the link ends.
    pub socket: OwnedFd,
    pub wakeup: OwnedFd,
    /// The peer's process as a descriptor (pidfd), if the system supports it.
    pub process: Option<OwnedFd>,
}

/// An open link.
#[derive(Debug)]
pub struct Link {
    pub remote: u8,
    pub(super) shared: Shared,
    /// The connection over which the link was opened.
    pub socket: OwnedFd,
    wakeup: OwnedFd,
    /// The peer's process as a descriptor.
    pub(super) process: Option<OwnedFd>,
    /// Orders that did not fit into the ring yet.
    pub(super) queue: VecDeque<Order>,
    pub(super) producer: Producer,
    /// Allocator of our bounce buffer.
    pub(super) ranges: Ranges,
    pub(super) probe: Probe,
    /// Bytes of the last packet in the bounce buffer, limited to what is worth prefetching for the next
    /// one.
    pub(super) prefetch_len: usize,
    /// Reused to gather short blocks.
    pub(super) blocks: Vec<u8>,
    pub(super) consumer: Consumer,
    /// Number of cells of the last received packet.
    pub(super) row: u64,
    /// Content of the last received packet that consisted of several cells.
    pub(super) gathered: [[u8; CONTENT]; cell::ROW],
    /// Bytes consumed from the peer's bounce buffer that the peer has not been notified of.
    pub(super) unreported_bytes: u64,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// Cells that were consumed, and wait for a chunk of `incoming`.
    pub(super) aside: VecDeque<Aside>,
    /// Fences of other processes (membarrier) reach this process.
    has_fences: bool,
    pub(super) rhythm: Rhythm,
    /// Something was written for the peer, which may be asleep.
    pub(super) has_written: bool,
    /// Why the peer has ended; its last cells are still read.
    pub(super) ended: Option<String>,
}

impl Link {
    /// Creates a link from the result of the handshake.
    pub fn new(opened: Opened) -> Link {
        let Opened { remote, shared, socket, wakeup, process, .. } = opened;
        let has_fences = wakeup::shares_fences();
        shared.segment.word(shared.end.fences()).store(u64::from(has_fences), Ordering::Release);
        Link {
            remote,
            probe: Probe::new(shared.is_near()),
            shared,
            socket,
            wakeup,
            process,
            queue: VecDeque::new(),
            producer: Producer::default(),
            ranges: Ranges::new(BOUNCE),
            prefetch_len: 0,
            blocks: Vec::new(),
            consumer: Consumer::default(),
            row: 1,
            gathered: [[0; CONTENT]; cell::ROW],
            unreported_bytes: 0,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            aside: VecDeque::new(),
            has_fences,
            rhythm: Rhythm::default(),
            has_written: false,
            ended: None,
        }
    }

    /// Returns whether long messages are under way.
    #[inline]
    pub fn is_copying(&self) -> bool {
        !self.outgoing.is_empty() || !self.incoming.is_empty()
    }

    /// Publishes a receive region, so that the peer can write into it; false if the table is full.
    pub fn publish(&self, key: Key, described: (u64, u64), len: u64) -> bool {
        regions::publish(&self.shared.segment, self.shared.end, key, described, len)
    }

    /// Withdraws a region; the peer does not write into it after this.
    pub fn close(&self, key: Key) {
        regions::close(&self.shared, Some(key), || self.is_there());
    }

    /// Wakes the peer if something was written for it and it sleeps.
    #[inline]
    pub fn wake(&mut self) {
        if self.has_written {
            self.wake_sleeper();
        }
    }

    /// Wakes the peer if it sleeps, without checking whether something was written for it.
    #[inline]
    pub(super) fn wake_sleeper(&mut self) {
        self.has_written = false;
        let (segment, other) = (&self.shared.segment, self.shared.end.other());
        let fence = match segment.word(other.fences()).load(Ordering::Relaxed) {
            1 if self.has_fences => Fence::Sleeper,
            _ => Fence::Own,
        };
        if wakeup::is_asleep(segment.word(other.asleep()), fence) {
            wake(&self.wakeup);
        }
    }

    /// Sets the sleep flag. Call [`wakeup::fence_all`] next, then [`Link::is_busy`].
    pub fn set_sleep_flag(&self) {
        wakeup::raise(self.shared.segment.word(self.shared.end.asleep()));
    }

    /// Returns whether there is work after all, so that this side must not sleep.
    pub fn is_busy(&self) -> bool {
        let b = &self.shared;
        self.has_cells()
            || self.outgoing.has_work(b)
            || self.incoming.has_work(b)
            || ((!self.queue.is_empty() || self.outgoing.has_rest(b)) && self.may_write())
    }

    /// Returns whether there is nothing to do; costs a few loads.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.prefetch_row();
        self.is_calm() && !self.has_cells()
    }

    /// Returns whether no transfer is under way; packets may still arrive.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.queue.is_empty() && !self.is_copying() && !self.has_written
    }

    /// Clears the sleep flag.
    pub fn clear_sleep_flag(&self) {
        wakeup::lower(self.shared.segment.word(self.shared.end.asleep()));
    }

    /// Asks the system whether the peer still holds its end of the connection.
    pub(super) fn is_there(&self) -> bool {
        let watched = [Some(&self.socket), self.process.as_ref()].into_iter().flatten();
        let mut polled: Vec<PollFd<'_>> = watched.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }

    /// Returns the reason for which the connection has ended, if it has.
    pub fn check(&self) -> Option<String> {
        match net::recv(&self.socket, &mut [0u8; 1], RecvFlags::empty()) {
            Ok((_, 0)) => Some("closed the link (has it ended?)".into()),
            Ok(_) => Some("broke the protocol: unexpected bytes on the connection".into()),
            Err(Errno::AGAIN | Errno::INTR) if self.is_there() => None,
            Err(Errno::AGAIN | Errno::INTR) => Some("has died".into()),
            Err(e) => Some(format!("failed: {e} (has it died?)")),
        }
    }

    /// Records that the system no longer lets this side access the peer's memory, and notifies the peer,
    /// which may wait for that access.
    #[cold]
    pub(super) fn lose_access(&mut self, why: &std::io::Error) {
        let pid = self.shared.process.take().map_or(0, |process| process.id());
        log::warn!(
            "rail shm: the memory of process {pid} cannot be accessed any more ({why}): long messages go \
             through bounce buffers"
        );
        self.shared.tell_access();
        self.outgoing.forget_targets();
        self.has_written = true;
    }

    /// Handles the end of the peer. The peer may itself have copied the last part of a chunk, for which it
    /// writes no cell.
    pub fn end(&mut self, why: String) {
        self.ended = Some(why);
        self.incoming.silence.finish();
    }

    /// Copies one piece of a chunk in each direction; reports chunks that are complete. Returns whether
    /// anything moved.
    ///
    /// # Errors
    /// The peer broke the protocol, or its memory cannot be accessed any more.
    #[cold]
    #[inline(never)]
    pub fn copy(&mut self, turn: &mut Turn<'_>) -> Result<bool, String> {
        self.outgoing.fall_back(&self.shared);
        let streamed = self.stream()?;
        let pulled = self.incoming.step(&self.shared, !self.outgoing.is_empty(), turn);
        let pulled = self.copied(pulled)?;
        let landed = self.land(turn)?;
        // In an exchange the peer pulls as well.
        let pushed = if pulled == 0 { self.outgoing.step(&self.shared) } else { Ok(0) };
        let pushed = self.copied(pushed)?;
        let collected = self.outgoing.collect(&self.shared, turn.sent, &mut self.probe);
        if landed {
            // Frees the chunk's place for the sender.
            self.report_taken();
        }
        self.has_written |= pulled > 0 || pushed > 0 || landed;
        Ok(streamed > 0 || pulled > 0 || pushed > 0 || landed || collected)
    }

    /// Handles the result of a single copy: returns the bytes copied. If the system has withdrawn the
    /// permission, long messages go through bounce buffers from now on.
    ///
    /// # Errors
    /// The link cannot be used any more.
    fn copied(&mut self, outcome: Result<u64, Obstacle>) -> Result<u64, String> {
        match outcome {
            Ok(len) => Ok(len),
            Err(Obstacle::Denied(why)) => {
                self.lose_access(&why);
                Ok(0)
            }
            Err(Obstacle::Fatal(why)) => Err(why),
        }
    }

    /// Makes one pass over the link; returns whether anything moved.
    #[inline]
    pub fn advance(&mut self, turn: &mut Turn<'_>) -> Result<bool, String> {
        let found = self.read(turn)?;
        let mut moved = found != Found::Nothing;
        if !self.queue.is_empty() {
            let before = self.producer.next();
            self.write(turn.sent, turn.selector)?;
            moved |= self.producer.next() != before;
        }
        // Control cells are handled before copying continues, because the peer waits for the answer.
        if found != Found::News && self.is_copying() {
            let copied = self.copy(turn)?;
            moved |= copied;
            if copied {
                (turn.report)(Event::Moved { peer: turn.peer });
            }
        }
        self.wake();
        Ok(moved)
    }

    /// Ends the link: neither side accesses the memory of its orders or receive regions after this. Returns
    /// the orders that were not sent.
    pub fn give_up(&mut self) -> Vec<Order> {
        self.close_reads();
        regions::close(&self.shared, None, || self.is_there());
        let mut outgoing = std::mem::take(&mut self.outgoing);
        let mut unsent = outgoing.give_up(&self.shared, || self.is_there());
        unsent.extend(self.queue.drain(..));
        unsent
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.give_up();
        self.has_written = true;
        self.wake();
    }
}

/// Wakes a process that sleeps on this descriptor.
pub fn wake(wakeup: &OwnedFd) {
    let _ = rustix::io::write(wakeup, &1u64.to_ne_bytes());
}
