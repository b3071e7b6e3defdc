//! One peer over this rail: the shared memory, and what is under way in it in both directions.

use super::area::Area;
use super::barrier;
use super::bell::{self, Fence};
use super::board::{self, List};
use super::cell;
use super::far::Far;
use super::lag::Lag;
use super::layout::AREA;
use super::pulling::{Pulling, wait_for_pushes};
use super::pushing::Pushing;
use super::ring::{CONTENT, Consumer, Producer};
use super::shared::Shared;
use nmad_engine::packet::{Key, PeerId};
use nmad_engine::transfer::driver::Order;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// What the handshake leaves behind.
#[derive(Debug)]
pub struct Opened {
    /// Who is there.
    pub peer: PeerId,
    /// Number of the peer's rail.
    pub remote: u8,
    /// The memory between the two.
    pub shared: Shared,
    /// The connection over which it came; its end is the end of the link.
    pub socket: OwnedFd,
    /// Wakes the peer.
    pub bell: OwnedFd,
    /// The peer's process as a descriptor, where the system has one.
    pub process: Option<OwnedFd>,
}

/// An open link.
#[derive(Debug)]
pub struct Link {
    /// Number of the peer's rail.
    pub remote: u8,
    pub(super) shared: Shared,
    /// The connection over which the link was opened.
    pub socket: OwnedFd,
    bell: OwnedFd,
    process: Option<OwnedFd>,
    /// Orders that the ring has not taken yet.
    pub(super) queue: VecDeque<Order>,
    pub(super) producer: Producer,
    pub(super) area: Area,
    /// How packets are written there.
    pub(super) far: Far,
    /// The last packet that this side has lent.
    pub(super) loan: u64,
    /// The peer offers one, which was not looked at yet.
    pub(super) is_offered: bool,
    /// Bytes of the last one, as far as they are worth fetching for the next one.
    pub(super) ready: usize,
    pub(super) consumer: Consumer,
    /// Cells of the last packet that came.
    pub(super) row: u64,
    /// Their content, if there were several.
    pub(super) gathered: [[u8; CONTENT]; cell::ROW],
    /// Bytes of the peer's area that were read since it was told.
    pub(super) untold_bytes: u64,
    pub(super) pushing: Pushing,
    pub(super) pulling: Pulling,
    /// Barriers of others reach this process.
    hears: bool,
    pub(super) lag: Lag,
    /// Something was left for the peer, who may sleep.
    pub(super) left: bool,
    /// The peer has ended; what it left is still read.
    pub(super) ended: Option<String>,
}

impl Link {
    /// A link that has just been opened.
    pub fn new(opened: Opened) -> Link {
        let Opened { remote, shared, socket, bell, process, .. } = opened;
        shared.segment.word(shared.end.fences()).store(u64::from(barrier::is_shared()), Ordering::Release);
        Link {
            remote,
            shared,
            socket,
            bell,
            process,
            queue: VecDeque::new(),
            producer: Producer::default(),
            area: Area::new(AREA),
            far: Far::default(),
            loan: 0,
            is_offered: false,
            ready: 0,
            consumer: Consumer::default(),
            row: 1,
            gathered: [[0; CONTENT]; cell::ROW],
            untold_bytes: 0,
            pushing: Pushing::default(),
            pulling: Pulling::default(),
            hears: barrier::is_shared(),
            lag: Lag::default(),
            left: false,
            ended: None,
        }
    }

    /// Whether long messages are under way.
    #[inline]
    pub fn is_copying(&self) -> bool {
        !self.pushing.is_empty() || !self.pulling.is_empty()
    }

    /// Whether to wait longer for the peer's part in them.
    pub fn be_patient(&mut self, is_patient: bool) {
        self.pushing.quiet.be_patient(is_patient);
        self.pulling.quiet.be_patient(is_patient);
    }

    /// The peer's process as a descriptor.
    pub fn process(&self) -> Option<&OwnedFd> {
        self.process.as_ref()
    }

    /// Shows a landing to the peer, so that it may push; false: there is no place for it.
    pub fn show(&self, key: Key, described: (u64, u64, &List), len: u64) -> bool {
        board::show(&self.shared.segment, self.shared.end, key, described, len)
    }

    /// Hides a landing; the peer does not write there after this.
    pub fn hide(&self, key: Key) {
        board::hide(&self.shared.segment, self.shared.end, key);
        wait_for_pushes(&self.shared, Some(key), || self.is_there());
    }

    /// Wakes the peer if something was left for it and it sleeps.
    #[inline]
    pub fn wake(&mut self) {
        if self.left {
            self.rouse();
        }
    }

    /// Wakes the peer, for whom something was left, if it sleeps.
    #[inline]
    pub(super) fn rouse(&mut self) {
        self.left = false;
        let (segment, other) = (&self.shared.segment, self.shared.end.other());
        let fence = match segment.word(other.fences()).load(Ordering::Relaxed) {
            1 if self.hears => Fence::Sleeper,
            _ => Fence::Own,
        };
        if bell::is_asleep(segment.word(other.asleep()), fence) {
            ring_bell(&self.bell);
        }
    }

    /// Whether the peer sleeps, as far as can be seen without a fence.
    pub(super) fn peer_sleeps(&self) -> bool {
        self.shared.segment.word(self.shared.end.other().asleep()).load(Ordering::Relaxed) != 0
    }

    /// Says that this side is about to sleep. [`barrier::make`] comes next, then [`Link::is_busy`].
    pub fn doze(&self) {
        bell::raise(self.shared.segment.word(self.shared.end.asleep()));
    }

    /// Whether there is something to do after all.
    pub fn is_busy(&self) -> bool {
        let b = &self.shared;
        self.has_cells()
            || self.pushing.has_work(b)
            || self.pulling.has_work(b)
            || ((!self.queue.is_empty() || self.pushing.has_rest(b)) && self.may_write())
    }

    /// Whether there is nothing to do, looked at in a hurry. While the peer sends one packet after the other
    /// this side may stay behind it: [`Lag`].
    #[inline]
    pub fn is_silent(&mut self) -> bool {
        self.look_ahead();
        self.is_calm() && !self.has_cells()
    }

    /// Before a look at the ring.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        self.lag.keep();
        if self.row > 1 && self.lag.is_turn() {
            self.ready_row();
        }
    }

    /// Whether nothing is under way but what may come.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.queue.is_empty() && !self.is_copying() && !self.left
    }

    /// This side is awake again.
    pub fn rise(&self) {
        bell::lower(self.shared.segment.word(self.shared.end.asleep()));
    }

    /// Whether the peer still has its end of the connection, asked of the system.
    pub(super) fn is_there(&self) -> bool {
        is_there(self.watched())
    }

    /// What becomes readable when the peer ends.
    pub(super) fn watched(&self) -> [Option<&OwnedFd>; 2] {
        [Some(&self.socket), self.process.as_ref()]
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

    /// The system does not let this side access the peer's memory any more. The peer, who may wait for that,
    /// learns it.
    #[cold]
    pub(super) fn lose_access(&mut self, why: &std::io::Error) {
        let pid = self.shared.pid.take().unwrap_or_default();
        log::warn!(
            "rail shm: the memory of process {pid} cannot be accessed any more ({why}): what is long takes \
             another way"
        );
        self.shared.tell_access();
        self.pushing.forget_targets();
        self.left = true;
    }

    /// The peer has ended. It may have copied the end of a chunk itself, of which no cell tells.
    pub fn end(&mut self, why: String) {
        self.ended = Some(why);
        self.pulling.quiet.finish();
    }

    /// Ends the link: nobody touches the memory of its orders or landings after this. The orders that
    /// were not sent.
    pub fn give_up(&mut self) -> Vec<Order> {
        board::hide_all(&self.shared.segment, self.shared.end);
        wait_for_pushes(&self.shared, None, || self.is_there());
        let mut pushing = std::mem::take(&mut self.pushing);
        let mut unsent = pushing.give_up(&self.shared, || self.is_there());
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

/// Wakes whoever waits for this descriptor.
pub fn ring_bell(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// Whether the peer has not ended.
pub(super) fn is_there(watched: [Option<&OwnedFd>; 2]) -> bool {
    let watched = watched.into_iter().flatten();
    let mut polled: Vec<PollFd<'_>> = watched.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
}
