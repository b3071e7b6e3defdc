//! Packets that are lent ([`super::loan`]), by this side and to it.

use super::cell::{self, Lent};
use super::claim::Side;
use super::link::{Link, is_there};
use super::loan::{self, Stage};
use super::ring::CONTENT;
use super::shared::is_denial;
use super::sys;
use super::write::Impossible;
use super::{PACKET, PUSH, far};
use nmad_engine::memory::Segments;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Event, Remote};
use nmad_wire::AloneHead;
use rustix::fd::OwnedFd;
use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// From how many bytes on data may be lent, and below how many: as much as is pushed otherwise.
pub const LENDS: (u64, u64) = (far::LEAST as u64, PUSH + 1);

/// How long a loan is offered to a peer who does not look: were he waiting for it, he would have taken it
/// some hundred nanoseconds later.
const PATIENCE: Duration = Duration::from_micros(2);
/// From how many bytes on both sides copy: a call of the system takes as long as some KiB.
const SHARED: u64 = 32 << 10;
/// Parts begin on a page, so that none is looked up twice.
const PAGE: u64 = 4096;

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offer {
    Accepted,
    Declined,
}

/// Looks before it is looked at whether the peer is still there: some ten microseconds or more, in which most
/// copies are over.
const LOOKS: u32 = 1000;

/// How long the one waits for the other, who copies. A copy takes no longer than another one, unless the peer
/// ends in it or is stopped.
#[derive(Debug, Default)]
struct Patience {
    looks: u32,
}

impl Patience {
    /// Waits a little; true: the peer, who is watched by these, is not there any more.
    fn is_over(&mut self, watched: [Option<&OwnedFd>; 2]) -> bool {
        spin_loop();
        self.looks = self.looks.wrapping_add(1);
        if !self.looks.is_multiple_of(LOOKS) {
            return false;
        }
        std::thread::yield_now();
        !is_there(watched)
    }
}

/// Who may take what the peer lends: what it needs of the link.
struct Borrower<'a> {
    pid: Option<i32>,
    /// The peer can copy a part.
    helps: bool,
    /// This side copies the front.
    has_front: bool,
    /// How far the loan is.
    word: &'a AtomicU64,
    /// What the peer shall copy: address, from, to.
    part: [&'a AtomicU64; 3],
    /// What becomes readable when the peer ends.
    watched: [Option<&'a OwnedFd>; 2],
}

impl Borrower<'_> {
    /// Takes a loan of so many bytes and copies it, all or a part: the peer has nothing else to do. False: it
    /// cannot be taken (any more).
    ///
    /// # Errors
    /// It was taken, and could not be copied.
    fn fetch(&self, lent: &Lent, len: u64, into: &Segments) -> io::Result<bool> {
        let (word, loan) = (self.word, lent.loan);
        let source = sys::Remote::new([(lent.address, len)]);
        let Some((pid, source)) = self.pid.zip(source) else { return Ok(false) };
        let pull = |(from, to): (u64, u64)| {
            let part = into.slice(from, to - from);
            sys::copy(Side::Pull, pid, &part, &source, from).map(|()| true)
        };
        let Some((ours, theirs)) = self.share_out(into) else {
            return if loan::take(word, loan) { pull((0, into.len())) } else { Ok(false) };
        };
        if !loan::share(word, loan) {
            return Ok(false);
        }
        // Whatever becomes of it, this side does not leave while the other one copies.
        let pulled = pull(ours);
        let mut patience = Patience::default();
        loop {
            match loan::stage(word, loan) {
                Stage::Pushed => return pulled,
                Stage::Shared if !loan::take_rest(word, loan) => (),
                Stage::Shared | Stage::Taken => return pulled.and_then(|_| pull(theirs)),
                _ if patience.is_over(self.watched) => return Err(io::ErrorKind::BrokenPipe.into()),
                _ => (),
            }
        }
    }

    /// What each side copies of what goes there: the receiver, and the sender, who is told. None: it is too
    /// little or in pieces, or he cannot.
    fn share_out(&self, into: &Segments) -> Option<((u64, u64), (u64, u64))> {
        let len = into.len();
        let address = into.contiguous()?.as_ptr() as u64;
        if len < SHARED || !self.helps {
            return None;
        }
        let half = len / 2 / PAGE * PAGE;
        let (front, back) = ((0, half), (half, len));
        let (ours, theirs) = if self.has_front { (front, back) } else { (back, front) };
        let told = [address + theirs.0, theirs.0, theirs.1];
        for (word, value) in self.part.iter().zip(told) {
            word.store(value, Ordering::Relaxed);
        }
        Some((ours, theirs))
    }
}

impl Link {
    /// Lends a packet to the peer, if he waits for it and that was found to be fast. False: nothing was done.
    pub fn lend(&mut self, head: &[u64], data: &Segments) -> Result<bool, Impossible> {
        let (Ok(head), Some(bytes)) = (<&AloneHead>::try_from(head), data.contiguous()) else {
            return Ok(false);
        };
        if !self.may_lend() || !self.has_room()? {
            return Ok(false);
        }
        let len = size_of_val(head) + bytes.len();
        let lends = match len {
            ..=PACKET => self.far.lends(&self.shared, len),
            _ => self.pushing.pace.lends(&self.shared, data.len()),
        };
        if !lends {
            return Ok(false);
        }
        let begun = Instant::now();
        self.offer(head, bytes);
        let offer = self.outcome(data, begun);
        let took = (offer == Offer::Accepted).then(|| begun.elapsed());
        match len {
            ..=PACKET => self.far.lent(len, took),
            _ => self.pushing.pace.lent(data.len(), took),
        }
        Ok(offer == Offer::Accepted)
    }

    /// Whether nothing waits before it, and the peer can reach it, runs at the same time, and sends nothing
    /// long himself.
    fn may_lend(&self) -> bool {
        let is_free = self.queue.is_empty() && !self.is_copying();
        is_free && self.shared.peer_can() && !self.shared.is_crowded && !self.peer_sleeps()
    }

    /// Offers a packet.
    fn offer(&mut self, head: &AloneHead, data: &[u8]) {
        self.loan += 1;
        loan::offer(self.loan_word(), self.loan);
        let lent = Lent { head: *head, address: data.as_ptr() as u64, loan: self.loan };
        let head = self.head(cell::LENT_PACKET, (size_of_val(head) + data.len()) as u32);
        self.producer.push(&self.shared.ours(), head, &lent.encode());
        self.told();
        self.rouse();
    }

    /// What becomes of an offer.
    fn outcome(&mut self, data: &Segments, begun: Instant) -> Offer {
        let (loan, mut patience) = (self.loan, Patience::default());
        loop {
            match loan::stage(self.loan_word(), loan) {
                Stage::Returned => break,
                Stage::Over => return Offer::Declined,
                Stage::Offered if begun.elapsed() > PATIENCE => {
                    loan::revoke(self.loan_word(), loan);
                }
                Stage::Offered => spin_loop(),
                Stage::Shared => {
                    if let Err(why) = self.help(data) {
                        self.lose_access(&why);
                    }
                }
                Stage::Taken | Stage::Helped | Stage::Pushed => {
                    if patience.is_over(self.watched()) {
                        break;
                    }
                }
            }
        }
        // What is declined leaves in another way, and is an answer only then.
        self.lag.answered();
        Offer::Accepted
    }

    /// Copies the part of what is lent that the receiver has left to this side.
    ///
    /// # Errors
    /// The system does not permit it; the receiver copies all of it.
    fn help(&self, data: &Segments) -> io::Result<()> {
        let (word, loan) = (self.loan_word(), self.loan);
        if !loan::help(word, loan) {
            return Ok(());
        }
        let told = |at| self.shared.segment.word(at).load(Ordering::Relaxed);
        let [address, from, to] = self.shared.end.part().map(told);
        let part = (from <= to && to <= data.len()).then(|| data.slice(from, to - from));
        let target = sys::Remote::new([(address, to.wrapping_sub(from))]);
        let copied = match (self.shared.pid, part, target) {
            (Some(pid), Some(part), Some(target)) => sys::copy(Side::Push, pid, &part, &target, 0),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        };
        loan::helped(word, loan, copied.is_ok());
        copied.or_else(|e| if is_denial(&e) { Err(e) } else { Ok(()) })
    }

    fn loan_word(&self) -> &AtomicU64 {
        self.shared.segment.word(self.shared.end.loan())
    }

    fn lenders_word(&self) -> &AtomicU64 {
        self.shared.segment.word(self.shared.end.other().loan())
    }

    /// Lets a packet be taken that the peer lends, if that is the next one. What is not taken now is not for
    /// anybody who waits.
    #[inline(never)]
    pub fn borrow(&mut self, from: PeerId, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let Some(head) = self.consumer.peek(&self.shared.theirs()) else { return false };
        let (lent, len) = (self.lent(), head.value as usize);
        let Some(data_len) = len.checked_sub(size_of_val(&lent.head)) else { return false };
        if head.kind != cell::LENT_PACKET {
            return false;
        }
        let (borrower, mut fetched) = (self.borrower(), Ok(false));
        let mut fetch = |into: &Segments| {
            fetched = borrower.fetch(&lent, data_len as u64, into);
            matches!(fetched, Ok(true))
        };
        let bytes = lent.head.map(u64::to_ne_bytes);
        let mut taken = false;
        let (head, len, fetch, is_taken) = (bytes.as_flattened(), data_len as u64, &mut fetch, &mut taken);
        report(Event::Remote { from, message: Remote { head, len, fetch, taken: is_taken } });
        let word = self.lenders_word();
        if !taken {
            loan::revoke(word, lent.loan);
            // What cannot be read for another reason stays taken, which ends the link.
            if let Some(why) = fetched.err().filter(is_denial) {
                loan::decline(word, lent.loan);
                self.lose_access(&why);
                self.wake();
            }
            return false;
        }
        loan::give_back(word, lent.loan);
        self.is_offered = false;
        self.taken(1);
        self.tell_of_much();
        self.wake();
        self.lag.read(1);
        true
    }

    /// This side as one that may take what the peer lends.
    fn borrower(&self) -> Borrower<'_> {
        let (shared, end) = (&self.shared, self.shared.end);
        Borrower {
            pid: shared.pid,
            helps: shared.peer_can(),
            has_front: end.has_front(),
            word: self.lenders_word(),
            part: end.other().part().map(|at| shared.segment.word(at)),
            watched: self.watched(),
        }
    }

    /// Passes over the cell of a loan that is over. False: it may still be taken.
    ///
    /// # Errors
    /// It was taken and could not be copied.
    pub(super) fn pass_over(&mut self) -> Result<bool, String> {
        match loan::stage(self.lenders_word(), self.lent().loan) {
            Stage::Offered => {
                self.is_offered = true;
                Ok(false)
            }
            Stage::Returned | Stage::Over => {
                self.is_offered = false;
                self.taken(1);
                self.tell_of_much();
                Ok(true)
            }
            _ => Err("cannot be read from (has it died?)".into()),
        }
    }

    /// What the cell says that lends a packet.
    fn lent(&self) -> Lent {
        let mut content = [0; CONTENT];
        self.consumer.content(&self.shared.theirs(), 0, &mut content);
        Lent::decode(&content)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ShmRail;
    use super::super::tests::{connected, inject, lost, until};
    use super::*;
    use crate::conformance::memory::Memory;
    use nmad_engine::packet::PeerId;
    use nmad_engine::transfer::driver::{Departure, Driver, Event, How, Scope, Sent};
    use std::sync::atomic::AtomicBool;

    /// Whether the other side has copied a message by itself.
    fn offer(rail: &mut ShmRail, to: PeerId, head: &[u64], data: &Segments) -> bool {
        rail.send(Departure::Message { to, number: 0, head, data, how: How::SingleCopy }) == Sent::Done
    }

    /// Lends a packet while the other side looks for one, to put its data there or to leave it; whether it
    /// was lent.
    fn lend(
        rails: &mut [ShmRail; 2],
        to: usize,
        head: [u64; 5],
        data: &Segments,
        target: Option<Segments>,
    ) -> bool {
        let [first, second] = rails;
        let (lender, borrower) = if to == 1 { (first, second) } else { (second, first) };
        let from = PeerId(1 - to as u32);
        let (over, awaits) = (AtomicBool::new(false), target.is_some());
        std::thread::scope(|scope| {
            let (over, looks) = (&over, Instant::now());
            scope.spawn(move || {
                while !over.load(Ordering::Acquire) && looks.elapsed() < Duration::from_secs(90) {
                    borrower.poll(Scope::Peer(from), &mut |event| {
                        let Event::Remote { message, .. } = event else { panic!("{event:?}") };
                        let told = (message.head, message.len);
                        assert_eq!(told, (head.map(u64::to_ne_bytes).as_flattened(), data.len()));
                        *message.taken = target.as_ref().is_some_and(message.fetch);
                    });
                    borrower.poll(Scope::All, &mut |_| ());
                }
            });
            // Now and then another way is tried, and who has no core for a moment takes nothing.
            let bound = if awaits { Duration::from_secs(60) } else { Duration::from_millis(200) };
            let begun = Instant::now();
            let mut lent = false;
            while !lent && begun.elapsed() < bound {
                lent = offer(lender, PeerId(to as u32), &head, data);
            }
            over.store(true, Ordering::Release);
            lent
        })
    }

    #[test]
    fn what_is_lent_is_copied_straight_to_where_it_goes() {
        let mut rails = connected();
        for (turn, len) in [4 << 10, 30_000, 100_001, 256 << 10].into_iter().enumerate() {
            for to in [1, 0] {
                let (memory, target) = (Memory::pattern(len, to as u64), Memory::zeroed(len));
                let lent =
                    lend(&mut rails, to, [turn as u64; 5], &memory.segments(), Some(target.segments()));
                assert!(lent && target.bytes() == memory.bytes(), "{len} B to {to}");
            }
        }
    }

    #[test]
    fn what_nobody_takes_is_not_lent_and_leaves_nothing_behind() {
        let mut rails = connected();
        let memory = Memory::pattern(100_000, 7);
        let nothing = Segments::empty();
        assert!(!lend(&mut rails, 1, [1; 5], &memory.segments(), None), "somebody waits for another one");
        // Who had no core when it was over has not seen the last of them.
        rails[1].poll(Scope::All, &mut |_| ());
        // Nobody looks.
        assert!((0..100).all(|_| !offer(&mut rails[0], PeerId(1), &[1; 5], &memory.segments())));
        assert!(inject(&mut rails[0], PeerId(1), &[3; 5], &nothing));
        let mut came = Vec::new();
        rails[1].poll(Scope::All, &mut |event| match event {
            Event::Arrived { packet, .. } => came.extend_from_slice(packet),
            other => panic!("{other:?}"),
        });
        assert_eq!(came, [3; 5].map(u64::to_ne_bytes).as_flattened(), "and what was sent otherwise");
    }

    #[test]
    fn what_cannot_be_read_though_it_is_lent_ends_the_link() {
        let mut rails = connected();
        let link = rails[1].peers.link_mut(PeerId(0)).expect("a link");
        let lent = Lent { head: [1; 5], address: 4096, loan: 1 };
        loan::offer(link.shared.segment.word(link.shared.end.loan()), lent.loan);
        link.push(cell::LENT_PACKET, 10_040, &lent.encode());
        rails[0].poll(Scope::All, &mut |_| ());
        let target = Memory::zeroed(10_000);
        let (mut asked, mut fetched) = (0, true);
        let told = rails[0].poll(Scope::Peer(PeerId(1)), &mut |event| {
            let Event::Remote { message, .. } = event else { panic!("{event:?}") };
            (asked, fetched) = (asked + 1, (message.fetch)(&target.segments()));
        });
        assert!(!told && asked == 1 && !fetched);
        let why = until(&mut rails, lost);
        assert!(why.contains("cannot be read from"), "{why}");
    }
}
