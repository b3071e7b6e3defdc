//! One peer over this rail: the shared memory, and what is under way in it in both directions.

use super::bounce::ranges::Ranges;
use super::chunk::incoming::Incoming;
use super::chunk::outgoing::Outgoing;
use super::cma::regions;
use super::layout::BOUNCE;
use super::probe::Probe;
use super::ring::cell;
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

/// What the handshake leaves behind.
#[derive(Debug)]
pub struct Opened {
    pub peer: PeerId,
    pub remote: u8,
    pub shared: Shared,
    /// The connection over which it came; its end is the end of the link.
    pub socket: OwnedFd,
    pub wakeup: OwnedFd,
    /// The peer's process as a descriptor, where the system has one.
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
    /// Orders that the ring has not taken yet.
    pub(super) queue: VecDeque<Order>,
    pub(super) producer: Producer,
    /// The ranges of our bounce buffer.
    pub(super) ranges: Ranges,
    pub(super) probe: Probe,
    /// Bytes of the last packet in the bounce buffer, as far as they are worth fetching for the next one.
    pub(super) ready: usize,
    pub(super) consumer: Consumer,
    /// Cells of the last packet that came.
    pub(super) row: u64,
    /// Content of the last one that came in several.
    pub(super) gathered: [[u8; CONTENT]; cell::ROW],
    /// Bytes taken out of the peer's bounce buffer of which the peer does not know.
    pub(super) untold_bytes: u64,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// Fences of others reach this process.
    has_fences: bool,
    pub(super) rhythm: Rhythm,
    /// Something was written for the peer, which may sleep.
    pub(super) left: bool,
    /// The peer has ended; its last cells are still read.
    pub(super) ended: Option<String>,
}

impl Link {
    /// A link that has just been opened.
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
            ready: 0,
            consumer: Consumer::default(),
            row: 1,
            gathered: [[0; CONTENT]; cell::ROW],
            untold_bytes: 0,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            has_fences,
            rhythm: Rhythm::default(),
            left: false,
            ended: None,
        }
    }

    /// Whether long messages are under way.
    #[inline]
    pub fn is_copying(&self) -> bool {
        !self.outgoing.is_empty() || !self.incoming.is_empty()
    }

    /// Lets the peer write into a receive region; false: there is no place for it in the table.
    pub fn publish(&self, key: Key, described: (u64, u64), len: u64) -> bool {
        regions::publish(&self.shared.segment, self.shared.end, key, described, len)
    }

    /// Closes a region; the peer does not write there after this.
    pub fn close(&self, key: Key) {
        regions::close(&self.shared, Some(key), || self.is_there());
    }

    /// Wakes the peer if something was written for it and it sleeps.
    #[inline]
    pub fn wake(&mut self) {
        if self.left {
            self.rouse();
        }
    }

    /// Wakes the peer, for which something was written, if it sleeps.
    #[inline]
    pub(super) fn rouse(&mut self) {
        self.left = false;
        let (segment, other) = (&self.shared.segment, self.shared.end.other());
        let fence = match segment.word(other.fences()).load(Ordering::Relaxed) {
            1 if self.has_fences => Fence::Sleeper,
            _ => Fence::Own,
        };
        if wakeup::is_asleep(segment.word(other.asleep()), fence) {
            wake(&self.wakeup);
        }
    }

    /// Says that this side is about to sleep. [`wakeup::fence_all`] comes next, then [`Link::is_busy`].
    pub fn doze(&self) {
        wakeup::raise(self.shared.segment.word(self.shared.end.asleep()));
    }

    /// Whether there is something to do after all.
    pub fn is_busy(&self) -> bool {
        let b = &self.shared;
        self.has_cells()
            || self.outgoing.has_work(b)
            || self.incoming.has_work(b)
            || ((!self.queue.is_empty() || self.outgoing.has_rest(b)) && self.may_write())
    }

    /// Whether there is nothing to do, at the cost of a few loads.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.look_ahead();
        self.is_calm() && !self.has_cells()
    }

    /// Whether nothing is under way but packets that may come.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.queue.is_empty() && !self.is_copying() && !self.left
    }

    /// This side is awake again.
    pub fn rise(&self) {
        wakeup::lower(self.shared.segment.word(self.shared.end.asleep()));
    }

    /// Whether the peer still has its end of the connection, asked of the system.
    pub(super) fn is_there(&self) -> bool {
        let watched = [Some(&self.socket), self.process.as_ref()].into_iter().flatten();
        let mut polled: Vec<PollFd<'_>> = watched.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }

    /// What the system says about the connection, if it has ended.
    pub fn check(&self) -> Option<String> {
        match net::recv(&self.socket, &mut [0u8; 1], RecvFlags::empty()) {
            Ok((_, 0)) => Some("closed the link (has it ended?)".into()),
            Ok(_) => Some("broke the protocol: bytes where none belong".into()),
            Err(Errno::AGAIN | Errno::INTR) if self.is_there() => None,
            Err(Errno::AGAIN | Errno::INTR) => Some("has died".into()),
            Err(e) => Some(format!("failed: {e} (has it died?)")),
        }
    }

    /// The system does not let this side access the peer's memory any more. The peer, which may wait for
    /// that, learns it.
    #[cold]
    pub(super) fn lose_access(&mut self, why: &std::io::Error) {
        let pid = self.shared.process.take().map_or(0, |process| process.id());
        log::warn!(
            "rail shm: the memory of process {pid} cannot be accessed any more ({why}): long messages go \
             through bounce buffers"
        );
        self.shared.tell_access();
        self.outgoing.forget_targets();
        self.left = true;
    }

    /// The peer has ended. It may have copied the end of a chunk itself, of which no cell tells.
    pub fn end(&mut self, why: String) {
        self.ended = Some(why);
        self.incoming.silence.finish();
    }

    /// Copies pieces of chunks in both directions, one each; reports those that are complete. Returns whether
    /// anything moved.
    ///
    /// # Errors
    /// The peer broke the protocol, or its memory cannot be accessed any more.
    #[cold]
    #[inline(never)]
    pub fn copy(&mut self, turn: &mut Turn<'_>) -> Result<bool, String> {
        self.outgoing.turn_back(&self.shared);
        let streamed = self.stream()?;
        let pulled = self.incoming.step(&self.shared, !self.outgoing.is_empty(), turn);
        let pulled = self.copied(pulled)?;
        let landed = self.incoming.collect(&self.shared, turn)?;
        // In an exchange the peer does the same.
        let pushed = if pulled == 0 { self.outgoing.step(&self.shared) } else { Ok(0) };
        let pushed = self.copied(pushed)?;
        let left = self.outgoing.collect(&self.shared, turn.sent, &mut self.probe);
        if landed {
            // So that the sender may use the place again.
            self.tell();
        }
        self.left |= pulled > 0 || pushed > 0 || landed;
        Ok(streamed > 0 || pulled > 0 || pushed > 0 || landed || left)
    }

    /// Bytes copied by the system. If that is not permitted any more, long messages go through bounce
    /// buffers from now on.
    ///
    /// # Errors
    /// The link is of no use any more.
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

    /// One pass over the link; whether anything moved.
    #[inline]
    pub fn advance(&mut self, turn: &mut Turn<'_>) -> Result<bool, String> {
        let found = self.read(turn)?;
        let mut moved = found != Found::Nothing;
        if !self.queue.is_empty() {
            let before = self.producer.next();
            self.write(turn.sent, turn.selector)?;
            moved |= self.producer.next() != before;
        }
        // News are answered first: the peer waits for that while this side copies.
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

    /// Ends the link: nobody touches the memory of its orders or receive regions after this. The orders that
    /// were not sent.
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
        self.left = true;
        self.wake();
    }
}

/// Wakes a process that sleeps on this descriptor.
pub fn wake(wakeup: &OwnedFd) {
    let _ = rustix::io::write(wakeup, &1u64.to_ne_bytes());
}
