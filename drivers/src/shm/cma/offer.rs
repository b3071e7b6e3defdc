//! Offers: a message whose sender and receiver both wait for it is copied straight to where it goes.
//!
//! A cell says where the data is. A receiver that waits for the message just then claims it
//! ([`crate::node::claim`]) and copies it with one system call. A receiver that does not wait loses nothing:
//! either side withdraws the offer, which leaves a cell that is passed over, and the message goes another
//! way. Longer messages are chunks, which both sides copy.
//!
//! That is one copy instead of two, and each line goes from core to core once at most. Between cores that
//! share no cache it costs half as much from some KiB on (two cores of a Xeon with AMX: 16 KiB in 1.8 us
//! instead of 3.5, 64 KiB in 3.9 us instead of 9.4). Whether it pays between these two processes is measured
//! ([`crate::shm::selector`]).

use super::Offer;
use crate::node::across::Remote as Memory;
use crate::node::claim::{self, LONGEST, Round, Side};
use crate::shm::layout::PACKET;
use crate::shm::link::Link;
use crate::shm::ring::CONTENT;
use crate::shm::ring::cell::{self, Offered};
use crate::shm::selector::{Contention, LEAST, Method, Selector};
use crate::shm::shared::is_denial;
use crate::shm::turn::Report;
use nmad_engine::memory::Segments;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Event, Remote, Sent};
use nmad_wire::AloneHead;
use std::io;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// From how many bytes on data may be offered, and below how many: longer data does not
/// fit into a packet.
pub const OFFERS: (u64, u64) = (LEAST, PACKET as u64);

/// How long a message is offered to a peer that does not look. A peer that waits claims it some hundred
/// nanoseconds later. Zen 4, when 256 KiB were offered: with half they took 21 us instead of 18.7; twice was
/// within the spread.
const PATIENCE: Duration = Duration::from_micros(2);

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Open,
    Taken,
    Declined,
}

/// Copies an offered message to where it goes. False: it cannot be had (any more).
///
/// # Errors
/// It was claimed, and could not be copied. What the system does not permit is declined; after another
/// failure it stays claimed, which ends the link.
fn fetch(
    word: &AtomicU64,
    pid: Option<i32>,
    (offered, len): (&Offered, u64),
    into: &Segments,
) -> io::Result<bool> {
    let (round, source) = (Round::of(offered.number), Memory::new([(offered.address, len)]));
    let Some((pid, source)) = pid.zip(source) else { return Ok(false) };
    let Some(range) = claim::claim_at_most(word, round, Side::Pull, LONGEST) else { return Ok(false) };
    if let Err(why) = source.read(pid, 0, &into.slice(0, len)) {
        if is_denial(&why) {
            claim::decline(word, round);
        }
        return Err(why);
    }
    claim::end(word, round, Side::Pull, range, true);
    Ok(true)
}

impl Link {
    /// Offers a message to the peer, if the peer waits for it and that was found to be fast; otherwise
    /// nothing is done. [`Link::follow`] tells what becomes of it.
    pub fn offer(
        &mut self,
        number: u32,
        head: &[u64],
        data: &Segments,
        selector: &mut Selector,
    ) -> Result<Sent, &'static str> {
        let (Ok(head), Some(bytes)) = (<&AloneHead>::try_from(head), data.contiguous()) else {
            return Ok(Sent::Retry);
        };
        if !self.may_offer() || !self.has_room()? {
            return Ok(Sent::Retry);
        }
        self.probe.learn(&self.shared, selector);
        let choice = self.probe.choose(selector, (Contention::Idle, data.len()), Method::ALL, false);
        if choice.method != Method::Cma {
            self.chosen = Some((data.len(), choice));
            return Ok(Sent::Retry);
        }
        let begun = Instant::now();
        self.put_offer(head, bytes);
        self.offer = Some(Offer { number, data: data.clone(), begun, choice });
        Ok(Sent::Posted)
    }

    /// Whether nothing waits before it, and the peer can reach it, runs at the same time, and sends nothing
    /// long.
    fn may_offer(&self) -> bool {
        let is_free = self.queue.is_empty() && !self.is_copying() && self.offer.is_none();
        is_free && self.shared.peer_can() && !self.shared.is_oversubscribed && !self.peer_sleeps()
    }

    fn put_offer(&mut self, head: &AloneHead, data: &[u8]) {
        self.offers += 1;
        let end = self.shared.end;
        claim::begin(self.offer_word(), Round::of(self.offers), data.len() as u64, !end.has_front());
        let offered = Offered { head: *head, address: data.as_ptr() as u64, number: self.offers };
        let head = self.head(cell::OFFERED_PACKET, (size_of_val(head) + data.len()) as u32);
        self.producer.push(&self.shared.ours(), head, &offered.encode());
        self.told();
        self.rouse();
    }

    /// As [`Link::follow`], for a caller that waits for that alone; false: nothing is offered.
    pub fn look_at_offer(&mut self, peer: PeerId, selector: &mut Selector, report: Report<'_>) -> bool {
        let offers = self.offer.is_some();
        self.follow(peer, selector, report);
        offers
    }

    /// Looks what becomes of the message that this side offers, copies the sender's part of it, and reports
    /// it when that is known. Whether anything happened.
    #[inline(never)]
    pub fn follow(&mut self, peer: PeerId, selector: &mut Selector, report: Report<'_>) -> bool {
        let Some(offer) = self.offer.take() else { return false };
        let outcome = self.outcome(&offer);
        let (to, number) = (peer, offer.number);
        let took = (outcome == Outcome::Taken).then(|| offer.begun.elapsed());
        match outcome {
            Outcome::Open => {
                self.offer = Some(offer);
                return false;
            }
            Outcome::Taken => {
                // A message that is declined leaves in another way, and is an answer only then.
                self.rhythm.answered();
                report(Event::Sent { to, number, packet: None });
            }
            Outcome::Declined => report(Event::Declined { to, number }),
        }
        selector.note(offer.choice, took);
        true
    }

    fn outcome(&self, offer: &Offer) -> Outcome {
        let (round, word) = (Round::of(self.offers), self.offer_word());
        if claim::is_complete(word, round) {
            return Outcome::Taken;
        }
        if claim::is_abandoned(word, round) {
            return Outcome::Declined;
        }
        if !claim::is_accepted(word, round) && offer.begun.elapsed() > PATIENCE {
            claim::withdraw(word, round, offer.data.len());
        }
        // The receiver needs the line of the word.
        std::hint::spin_loop();
        Outcome::Open
    }

    /// Ends an offer with its link: the peer does not read its memory any more. The number of the message, if
    /// the peer has it.
    pub fn end_offer(&mut self) -> Option<u32> {
        let offer = self.offer.take()?;
        let (word, round) = (self.offer_word(), Round::of(self.offers));
        let is_over = || claim::is_complete(word, round) || claim::is_abandoned(word, round);
        // A receiver that has claimed a part copies all of it, unless it has ended.
        if !claim::withdraw(word, round, offer.data.len()) {
            claim::wait(&|| self.is_there(), is_over);
        }
        if !is_over() {
            claim::revoke(word, round, Side::Push);
        }
        claim::is_complete(word, round).then_some(offer.number)
    }

    fn offer_word(&self) -> &AtomicU64 {
        self.shared.segment.word(self.shared.end.offer())
    }

    /// Lets the waiting call take a message that the peer offers, if that is the next one. A message that is
    /// not taken now is declined: nobody waits for it.
    #[inline(never)]
    pub fn take_offer(&mut self, from: PeerId, report: Report<'_>) -> bool {
        let Some(head) = self.consumer.peek(&self.shared.theirs()) else { return false };
        let (offered, len) = (self.offered(), head.value as usize);
        let Some(data_len) = len.checked_sub(size_of_val(&offered.head)) else { return false };
        if head.kind != cell::OFFERED_PACKET {
            return false;
        }
        let (pid, len, mut fetched, mut taken) = (self.shared.pid, data_len as u64, Ok(false), false);
        let word = self.shared.segment.word(self.shared.end.other().offer());
        let mut fetch = |into: &Segments| {
            fetched = fetch(word, pid, (&offered, len), into);
            matches!(fetched, Ok(true))
        };
        let bytes = offered.head.map(u64::to_ne_bytes);
        let (head, fetch, is_taken) = (bytes.as_flattened(), &mut fetch, &mut taken);
        report(Event::Remote { from, message: Remote { head, len, fetch, taken: is_taken } });
        if !taken {
            claim::withdraw(word, Round::of(offered.number), len);
            if let Some(why) = fetched.err().filter(is_denial) {
                self.lose_access(&why);
                self.wake();
            }
            return false;
        }
        self.is_offered = false;
        self.taken(1);
        self.tell_of_much();
        self.wake();
        self.rhythm.read(1);
        true
    }

    /// Passes over the cell of an offer that is over. False: it may still be taken.
    ///
    /// # Errors
    /// It was claimed and could not be copied.
    pub fn pass_over(&mut self) -> Result<bool, String> {
        let word = self.shared.segment.word(self.shared.end.other().offer());
        let round = Round::of(self.offered().number);
        if claim::is_accepted(word, round) {
            return Err("cannot be read from (has it died?)".into());
        }
        let is_over = claim::is_abandoned(word, round) || claim::is_complete(word, round);
        self.is_offered = !is_over;
        if is_over {
            self.taken(1);
            self.tell_of_much();
        }
        Ok(is_over)
    }

    /// What the cell says that offers a message.
    fn offered(&self) -> Offered {
        let mut content = [0; CONTENT];
        self.consumer.content(&self.shared.theirs(), 0, &mut content);
        Offered::decode(&content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::memory::Memory;
    use crate::shm::ShmRail;
    use crate::shm::tests::{connected, inject, lost, until};
    use nmad_engine::packet::PeerId;
    use nmad_engine::transfer::driver::{Departure, Driver, Event, How, Order, Scope, Sent};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether the other side has copied a message.
    fn offer(rail: &mut ShmRail, to: PeerId, head: &[u64], data: &Segments) -> bool {
        let sent = rail.send(Departure::Message { to, number: 7, head, data, how: How::SingleCopy });
        if sent == Sent::Retry {
            return false;
        }
        let (begun, mut outcome) = (Instant::now(), None);
        for scope in [Scope::Peer(to), Scope::All].into_iter().cycle() {
            rail.poll(scope, &mut |event| match event {
                Event::Sent { number: 7, packet: None, .. } => outcome = Some(true),
                Event::Declined { number: 7, .. } => outcome = Some(false),
                other => panic!("{other:?}"),
            });
            if let Some(outcome) = outcome {
                return outcome;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody tells what became of it");
        }
        unreachable!("the scopes have no end")
    }

    #[test]
    fn an_offer_ends_with_its_link() {
        let mut rails = connected();
        let (memory, to) = (Memory::pattern(10_000, 7), PeerId(1));
        let data = memory.segments();
        let (head, begun) = ([1; 5], Instant::now());
        let offer = || Departure::Message { to, number: 7, head: &head, data: &data, how: How::SingleCopy };
        // Now and then another method is tried.
        while rails[0].send(offer()) != Sent::Posted {
            assert!(begun.elapsed() < Duration::from_secs(60), "never offered");
        }
        rails[0].send(Departure::Order(Order::Close { to }));
        until(&mut rails, |event| match event {
            Event::Lost { unsent, .. } => {
                assert!(unsent.is_empty());
                Some(())
            }
            other => panic!("{other:?}"),
        });
    }

    /// Offers a message while the other side looks for one, to put its data there or to leave it; whether it
    /// was taken.
    fn offer_until_taken(
        rails: &mut [ShmRail; 2],
        to: usize,
        head: [u64; 5],
        data: &Segments,
        target: Option<Segments>,
    ) -> bool {
        let [first, second] = rails;
        let (sender, receiver) = if to == 1 { (first, second) } else { (second, first) };
        let from = PeerId(1 - to as u32);
        let (over, awaits) = (AtomicBool::new(false), target.is_some());
        std::thread::scope(|scope| {
            let (over, looks) = (&over, Instant::now());
            scope.spawn(move || {
                while !over.load(Ordering::Acquire) && looks.elapsed() < Duration::from_secs(90) {
                    receiver.poll(Scope::Peer(from), &mut |event| {
                        let Event::Remote { message, .. } = event else { panic!("{event:?}") };
                        let told = (message.head, message.len);
                        assert_eq!(told, (head.map(u64::to_ne_bytes).as_flattened(), data.len()));
                        *message.taken = target.as_ref().is_some_and(message.fetch);
                    });
                    receiver.poll(Scope::All, &mut |_| ());
                }
            });
            // Now and then another method is tried, and a side without a core for a moment takes nothing.
            let bound = if awaits { Duration::from_secs(60) } else { Duration::from_millis(200) };
            let begun = Instant::now();
            let mut taken = false;
            while !taken && begun.elapsed() < bound {
                taken = offer(sender, PeerId(to as u32), &head, data);
            }
            over.store(true, Ordering::Release);
            taken
        })
    }

    #[test]
    fn an_offered_message_is_copied_straight_to_where_it_goes() {
        let mut rails = connected();
        for (turn, len) in [4 << 10, 16 << 10, 30_001].into_iter().enumerate() {
            for to in [1, 0] {
                let (memory, target) = (Memory::pattern(len, to as u64), Memory::zeroed(len));
                let (head, data, into) = ([turn as u64; 5], memory.segments(), target.segments());
                let taken = offer_until_taken(&mut rails, to, head, &data, Some(into));
                assert!(taken && target.bytes() == memory.bytes(), "{len} B to {to}");
            }
        }
    }

    #[test]
    fn an_offer_that_nobody_takes_leaves_nothing_behind() {
        let mut rails = connected();
        let memory = Memory::pattern(30_000, 7);
        let nothing = Segments::empty();
        let taken = offer_until_taken(&mut rails, 1, [1; 5], &memory.segments(), None);
        assert!(!taken, "the peer waits for another one");
        // A side without a core when it was over has not seen the last of them.
        rails[1].poll(Scope::All, &mut |_| ());
        // Nobody looks.
        assert!((0..100).all(|_| !offer(&mut rails[0], PeerId(1), &[1; 5], &memory.segments())));
        assert!(inject(&mut rails[0], PeerId(1), &[3; 5], &nothing));
        let mut came = Vec::new();
        rails[1].poll(Scope::All, &mut |event| match event {
            Event::Arrived { packet, .. } => came.extend_from_slice(packet),
            other => panic!("{other:?}"),
        });
        assert_eq!(came, [3; 5].map(u64::to_ne_bytes).as_flattened(), "and what was sent in another way");
    }

    #[test]
    fn an_offered_message_that_cannot_be_read_ends_the_link() {
        let mut rails = connected();
        let link = rails[1].peers.link_mut(PeerId(0)).expect("a link");
        let offered = Offered { head: [1; 5], address: 4096, number: 1 };
        claim::begin(link.shared.segment.word(link.shared.end.offer()), Round::of(1), 10_000, false);
        link.push(cell::OFFERED_PACKET, 10_040, &offered.encode());
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
