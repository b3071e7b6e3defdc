//! Chunks that this side sends: pushed into the peer's memory, or handed over in parts through the area
//! ([`super::stream`]), unless the peer pulls them.

use super::board::{self, CUT};
use super::cell::{About, Chunk};
use super::claim::{self, Round, Side};
use super::effort::{Effort, copying};
use super::exchange::Exchanges;
use super::layout::CHUNKS;
use super::pace::{Of, Pace, Reach, Way};
use super::quiet::Quiet;
use super::shared::{Obstacle, Shared};
use super::sys::{self, Remote};
use nmad_engine::memory::Segments;
use nmad_engine::packet::Key;
use nmad_engine::transfer::driver::Order;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A chunk that this side sends.
#[derive(Debug)]
pub struct Out {
    order: Order,
    /// Which claim.
    pub place: usize,
    /// And for which chunk it is.
    pub round: Round,
    key: Key,
    offset: u64,
    /// The bytes.
    pub from: Segments,
    /// The pieces of `from`, where the peer reads them.
    _list: board::List,
    target: Option<Arc<Remote>>,
    /// Whether parts of it may still go through the area.
    pub streams: bool,
    /// Bytes that went there.
    streamed: u64,
    /// How it is copied, unless the peer does not do its part.
    pub way: Way,
    /// What it costs, if that tells how good the way is.
    pub effort: Option<Effort>,
    /// The peer sends something long at the same time.
    meets: bool,
    /// That was expected.
    expects: bool,
}

impl Out {
    /// Place and round as cells tell them.
    pub fn name(&self) -> u32 {
        self.place as u32 | (self.round.number() as u32) << 3
    }

    /// Nothing more of it goes through the area.
    fn cut(&mut self, b: &Shared) {
        (self.streams, self.effort) = (false, None);
        self.tell(b);
    }

    /// So many more bytes of it went through the area.
    pub fn streamed(&mut self, b: &Shared, len: u64) {
        self.streamed += len;
        self.tell(b);
    }

    /// Tells the peer what goes through the area.
    fn tell(&self, b: &Shared) {
        let cut = if self.streams { 0 } else { CUT };
        board::streamed(&b.segment, b.end, self.place).store(self.streamed | cut, Ordering::Release);
    }

    /// Whether it was to go across, and neither side can copy it any more.
    fn is_stuck(&self, b: &Shared) -> bool {
        !self.streams && self.target.is_none() && !b.peer_can()
    }

    /// All that is left of it goes through the area.
    fn stream(&mut self, b: &Shared) {
        (self.streams, self.effort) = (true, None);
        self.tell(b);
    }

    /// Learns where it goes, if the peer has told that meanwhile.
    fn look(&mut self, b: &Shared, aims: &mut Aims) {
        if self.target.is_none() && self.key == Key::PUSH && !self.streams {
            let told = b.segment.word(b.end.goes_to(self.place)).load(Ordering::Acquire);
            if told != 0 {
                self.key = Key(told);
                self.target = aims.target(b, self.key, (self.offset, self.from.len()));
            }
        }
    }

    /// Whether the receiver is to copy all that goes across. In an exchange among more processes than cores
    /// each core has enough to do, and what only its receiver's core writes stays in the cache of that one.
    fn is_left(&self, b: &Shared) -> bool {
        b.is_crowded && (self.meets || self.expects) && b.peer_can() && !self.streams
    }

    /// Whether some of it is left for whoever takes it.
    pub fn has_rest(&self, b: &Shared) -> bool {
        !claim::is_claimed(b.segment.word(b.end.claim(self.place)), self.round)
    }
}

/// The landing into which a chunk went that was not the last one of it: the next one finds it known. It may
/// consist of a million pieces.
#[derive(Debug, Default)]
struct Aims {
    last: Option<(Key, Arc<Remote>)>,
}

impl Aims {
    /// Where `len` bytes from `offset` on of the landing with this key can be pushed to; none: nowhere.
    fn target(&mut self, b: &Shared, key: Key, (offset, len): (u64, u64)) -> Option<Arc<Remote>> {
        let pid = b.pid.filter(|_| key != Key::PUSH)?;
        let known = self.last.take().filter(|(of, _)| *of == key).map(|(_, landing)| landing);
        let landing = known.or_else(|| board::find(&b.segment, b.end.other(), pid, key).map(Arc::new))?;
        let end = offset.checked_add(len).filter(|end| *end <= landing.len())?;
        self.last = (end < landing.len()).then(|| (key, landing.clone()));
        Some(landing)
    }
}

/// Chunks that this side sends and the peer has not got yet, in order.
#[derive(Debug, Default)]
pub struct Pushing {
    /// The chunks.
    pub chunks: VecDeque<Out>,
    next: usize,
    /// The last cell about each claim; it serves another chunk when the peer has taken that.
    pub last: [u64; CHUNKS],
    /// The peer takes nothing from the area.
    pub quiet: Quiet,
    aims: Aims,
    pub(super) pace: Pace,
    pub(super) exchanges: Exchanges,
}

impl Pushing {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether another one may begin, if the peer has taken so many cells.
    pub fn has_room(&self, taken: u64) -> bool {
        let place = self.next % CHUNKS;
        self.chunks.iter().all(|out| out.place != place) && (self.next < CHUNKS || taken > self.last[place])
    }

    /// Takes a chunk, whose cell gets this number; what it shall say.
    /// `theirs` is the way of what the peer sends just now.
    pub fn add(
        &mut self,
        b: &Shared,
        order: Order,
        cell: u64,
        theirs: Option<Way>,
    ) -> Option<(About, Chunk)> {
        let Order::Chunk { number, ack, landing, key, offset, ref from, .. } = order else { return None };
        let (from, place, round) = (from.clone(), self.next % CHUNKS, Round::of((self.next / CHUNKS) as u64));
        self.next += 1;
        self.last[place] = cell;
        let (address, pieces, list) = board::describe(&from);
        board::put_list(&b.segment, b.end.pieces(place), &list);
        let chunk = Chunk { number, ack, landing, key, offset, len: from.len(), address, pieces };
        let target = self.aims.target(b, key, (offset, from.len()));
        let reach = match key {
            _ if target.is_none() && !b.peer_can() => Reach::Nobody,
            Key::PUSH => Reach::Receiver,
            _ => Reach::Both,
        };
        let meets = theirs.is_some() || self.exchanges.is_likely();
        // The peer pulls it as soon as he knows where it goes.
        let expects = reach != Reach::Nobody && meets;
        // In a crowd both may be without a core for long, so the way is measured all the same.
        let is_set = expects && !b.is_crowded;
        let (way, of) = match is_set {
            true => (Pace::meeting(from.len()), Of::Chunk(reach)),
            false => self.pace.choose(b, from.len(), reach, theirs),
        };
        if expects {
            // What is expected has its time to come.
            self.quiet.end();
        }
        let mut out = Out {
            order,
            place,
            round,
            key,
            offset,
            from,
            _list: list,
            target,
            streams: way != Way::Across,
            streamed: 0,
            way,
            effort: None,
            meets: theirs.is_some(),
            expects,
        };
        out.tell(b);
        let turned = way == Way::Across && !b.end.has_front();
        b.segment.word(b.end.goes_to(place)).store(0, Ordering::Relaxed);
        claim::begin(b.segment.word(b.end.claim(place)), round, out.from.len(), turned);
        let name = out.name();
        let asks = !is_set && self.pace.ask((way, of), out.from.len(), name);
        out.effort = asks.then(|| Effort::begin(b.is_crowded));
        self.chunks.push_back(out);
        Some((About { name, way, asks, met: self.exchanges.last() }, chunk))
    }

    /// A chunk is coming: what is still to be copied meets it. Its sender says whether his last one has met
    /// one, and had taken so many cells when he sent it: if not the one about our last chunk, that has met
    /// this one as well, though all of it may be in the area since.
    pub fn meet(&mut self, b: &Shared, met: bool, taken: u64) {
        let last = self.next.checked_sub(1).map(|last| self.last[last % CHUNKS]);
        self.exchanges.told(met || last.is_some_and(|cell| cell >= taken));
        for out in self.chunks.iter_mut().filter(|out| out.has_rest(b)) {
            out.meets = true;
        }
    }

    /// Makes way for a packet behind the chunks: nothing more of them goes through the area. False: it does
    /// or has to, so the packet waits. It would not be read before they are complete.
    pub fn make_way(&mut self, b: &Shared) -> bool {
        for out in self.chunks.iter_mut().filter(|out| out.streams && out.has_rest(b)) {
            if !self.quiet.is_long() || (out.target.is_none() && !b.peer_can()) {
                return false;
            }
            out.cut(b);
        }
        true
    }

    /// Whether a part of any is still to go through the area.
    pub fn has_part(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|out| out.streams && out.has_rest(b))
    }

    /// Copies one piece into the peer's memory, if one is left for that. Returns the bytes.
    ///
    /// # Errors
    /// What the system said: then nothing was copied, and others may do it.
    pub fn step(&mut self, b: &Shared) -> Result<u64, Obstacle> {
        let Some(pid) = b.pid else { return Ok(0) };
        for out in &mut self.chunks {
            out.look(b, &mut self.aims);
            let Some(target) = &out.target else { continue };
            let word = b.segment.word(b.end.claim(out.place));
            if claim::is_claimed(word, out.round) {
                continue;
            }
            // The peer pulls while this side is about to do the same.
            let waits = out.streams || (out.expects && !out.meets);
            let comes = match out.is_left(b) {
                true => !self.quiet.is_very_long(),
                false => waits && !self.quiet.is_long(),
            };
            if comes {
                continue;
            }
            let (len, alone) = (out.from.len(), self.quiet.is_patient());
            let Some(range) = claim::claim(word, out.round, Side::Push, len, alone) else { continue };
            if out.streams {
                out.effort = None;
            }
            let part = out.from.slice(range.0, range.1 - range.0);
            let (aim, key) = (b.segment.word(b.end.aim()), out.key);
            let copied = match board::raise(aim, board::key_word(&b.segment, b.end.other(), key), key.0) {
                true => {
                    let at = out.offset + range.0;
                    copying(&mut out.effort, || sys::copy(Side::Push, pid, &part, target, at))
                }
                // Closed: the receiver discards the chunk.
                false => Ok(()),
            };
            board::lower(aim);
            claim::end(word, out.round, Side::Push, range, copied.is_ok());
            return copied.map(|()| part.len()).map_err(|e| Obstacle::of("written to", e));
        }
        Ok(0)
    }

    /// This side cannot access the peer's memory any more.
    pub fn forget_targets(&mut self) {
        self.aims = Aims::default();
        self.chunks.iter_mut().for_each(|out| out.target = None);
    }

    /// Sends through the area what was to go across and cannot any more.
    pub fn turn_back(&mut self, b: &Shared) {
        let stuck = self.chunks.iter_mut().filter(|out| out.is_stuck(b) && out.has_rest(b));
        stuck.for_each(|out| out.stream(b));
    }

    /// Takes away those whose memory nobody needs any more.
    pub fn collect(&mut self, b: &Shared, sent: &mut Vec<Order>) -> bool {
        let before = sent.len();
        while let Some(out) = self.chunks.front() {
            if !claim::is_complete(b.segment.word(b.end.claim(out.place)), out.round) {
                break;
            }
            let Some(out) = self.chunks.pop_front() else { break };
            if b.is_crowded {
                self.quiet.end();
            }
            self.exchanges.note(out.meets);
            self.pace.sent(out.name(), out.effort.as_ref().map(Effort::took));
            // What comes behind another one has its turn when that is done.
            if let Some(Out { effort: Some(effort), .. }) = self.chunks.front_mut() {
                effort.restart();
            }
            sent.push(out.order);
        }
        sent.len() != before
    }

    /// Whether something is left that this side could do.
    pub fn has_work(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|out| {
            let word = b.segment.word(b.end.claim(out.place));
            let can = out.target.is_some() || out.is_stuck(b);
            claim::is_complete(word, out.round) || (can && out.has_rest(b))
        })
    }

    /// Whether some bytes are left for whoever takes them.
    pub fn has_rest(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|out| out.has_rest(b))
    }

    /// Gives up: the peer does not read the memory of any chunk after this, if it lives. The orders.
    pub fn give_up(&mut self, b: &Shared, lives: impl Fn() -> bool) -> Vec<Order> {
        for out in &self.chunks {
            let word = b.segment.word(b.end.claim(out.place));
            claim::abandon(word, out.round);
            claim::wait(&lives, || !claim::is_copying(word, out.round, Side::Pull));
        }
        self.chunks.drain(..).map(|out| out.order).collect()
    }
}
