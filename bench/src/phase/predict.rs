//! From a pattern and profiles to times.
//!
//! Message by message in the order of time, with the rules of the library (ARCHITECTURE.md, "The life of a
//! large message"): up to the eager limit a message is copied into packets and its send ends, or, of a
//! message of several packets, when they have left; above it the receiver is asked, answers when the
//! receive is posted and it does not compute, and the send ends when the body has left, or over several
//! rails when the receiver, not computing, has said that it has everything. What rails and cores are busy
//! with meanwhile is in [`super::rails`].

use super::fragments;
use super::message::Message;
use super::outcome::{Phase, RankPhase, Setting, Stretch, Stuck};
use super::pattern::{Pattern, Step, Way};
use super::rails::{Departure, Hosts, Load};
use super::turns::{Core, SliceUse, Work};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What happens to a message, or to a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// Something comes to a rail of the receiver, and will be taken.
    Reaches(usize, What),
    /// It is there.
    Arrives(usize, What),
    /// The sender may use its memory again.
    Sent(usize),
    /// The receiver has it in its place.
    Received(usize),
    /// A rank's calculation, or copy, ends, unless it has lost its core since that turn.
    Goes(usize, u64),
    /// A rank gets its core.
    Turn(usize),
    /// A rank that waits has copied what it had.
    Rests(usize),
    /// The system looks who should have a core.
    Tick(usize),
}

/// What a rail takes: over which rail, and of data how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Request(usize),
    Answer(usize),
    Data(usize, u64),
    /// The receiver has everything.
    End(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Until an event wakes it: it computes, and gives no answers.
    Computing,
    /// Until an event wakes it: it is in a call that waits for nothing, and gives no answers.
    Busy,
    /// In a call: it answers.
    Calling,
    Done,
}

impl Mode {
    /// It does not look at its rails.
    pub(super) fn is_away(self) -> bool {
        matches!(self, Mode::Computing | Mode::Busy)
    }
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Send(usize),
    /// All sends that have begun.
    Sends,
    /// Everything that has begun.
    All,
    /// Its core.
    Core,
}

#[derive(Debug)]
pub(super) struct Rank {
    steps: Vec<Step>,
    next: usize,
    pub(super) mode: Mode,
    /// Since when it has been in this mode.
    since: u64,
    /// The core that it shares; none: it has one of its own.
    pub(super) core: Option<usize>,
    pub(super) work: Work,
    pub(super) slice: SliceUse,
    awaits: Awaits,
    /// The call has something to wait for.
    waited: bool,
    pub(super) begun: Vec<usize>,
    /// Receives that no message has been sent for.
    unsent: usize,
    phase: RankPhase,
}

pub(super) struct Model<'a> {
    pub(super) setting: &'a Setting,
    pub(super) hosts: Hosts<'a>,
    pub(super) cores: Vec<Core>,
    pub(super) ranks: Vec<Rank>,
    pub(super) messages: Vec<Message>,
    /// By sender and receiver: messages that have no receive, and when receives were posted that have no
    /// message.
    unposted: Vec<VecDeque<usize>>,
    pub(super) unsent: Vec<VecDeque<u64>>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
}

/// What the phase takes.
///
/// # Errors
/// Ranks wait for each other, or for what nobody sends.
pub fn predict(pattern: &Pattern, setting: &Setting) -> Result<Phase, Stuck> {
    let cut = setting.fragment.map(|fragment| fragments::cut(pattern, fragment));
    let mut model = Model::new(cut.as_ref().unwrap_or(pattern), setting);
    (0..model.ranks.len()).for_each(|rank| model.advance(0, rank));
    while let Some(Reverse((now, event))) = model.events.pop() {
        model.happen(now, event);
    }
    match model.ranks.iter().all(|rank| rank.mode == Mode::Done) {
        true => Ok(Phase { ranks: model.ranks.into_iter().map(|rank| rank.phase).collect() }),
        false => Err(Stuck(model.who_waits())),
    }
}

impl<'a> Model<'a> {
    fn new(pattern: &Pattern, setting: &'a Setting) -> Model<'a> {
        let count = pattern.ranks.len();
        let rank = |steps: &Vec<Step>| Rank {
            steps: steps.clone(),
            next: 0,
            mode: Mode::Calling,
            since: 0,
            core: None,
            work: Work::default(),
            slice: SliceUse::default(),
            awaits: Awaits::All,
            waited: false,
            begun: Vec::new(),
            unsent: 0,
            phase: RankPhase::default(),
        };
        Model {
            setting,
            hosts: Hosts::new(count, setting),
            cores: Vec::new(),
            ranks: pattern.ranks.iter().map(rank).collect(),
            messages: Vec::new(),
            unposted: vec![VecDeque::new(); count * count],
            unsent: vec![VecDeque::new(); count * count],
            events: BinaryHeap::new(),
        }
    }

    pub(super) fn pair(&self, from: usize, to: usize) -> usize {
        from * self.ranks.len() + to
    }

    pub(super) fn at(&mut self, when: u64, event: Event) {
        self.events.push(Reverse((when, event)));
    }

    /// A rank goes through its steps as far as it can.
    fn advance(&mut self, now: u64, rank: usize) {
        loop {
            let Some(&step) = self.ranks[rank].steps.get(self.ranks[rank].next) else {
                return self.finish(now, rank);
            };
            self.ranks[rank].next += 1;
            match step {
                Step::Recv(from) => self.post(now, from, rank),
                Step::Send { to, len, blocks, way, carried } => {
                    let by_limit = if len > self.setting.eager_max { Way::Asks } else { Way::Eager };
                    let way = way.filter(|_| self.setting.as_traced).unwrap_or(by_limit);
                    let carried = carried.filter(|_| self.setting.as_traced);
                    let blocks = blocks && !self.setting.parallel;
                    let message = self.send(now, (rank, to), (len, carried), (way, blocks));
                    if blocks {
                        return self.call(now, rank, Awaits::Send(message));
                    }
                }
                // It looks at what waits for it, and its core has no time for anything else.
                Step::Call(ns) => {
                    self.answer(now, rank);
                    self.enter(now, rank, Mode::Busy);
                    return self.work(now, rank, ns);
                }
                Step::Compute(ns) => {
                    // Sends that go on at once are over before the calculation, as in figure 12.
                    if self.setting.parallel && self.has_sends(rank) {
                        self.ranks[rank].next -= 1;
                        return self.call(now, rank, Awaits::Sends);
                    }
                    self.enter(now, rank, Mode::Computing);
                    return self.work(now, rank, ns);
                }
                Step::Wait => return self.call(now, rank, Awaits::All),
                Step::On(core) => {
                    if !self.set_core(now, rank, core) {
                        self.enter(now, rank, Mode::Calling);
                        (self.ranks[rank].awaits, self.ranks[rank].waited) = (Awaits::Core, false);
                        return;
                    }
                }
            }
        }
    }

    fn has_sends(&self, rank: usize) -> bool {
        let open = |&&number: &&usize| self.messages[number].from == rank && !self.messages[number].is_sent;
        self.ranks[rank].begun.iter().any(|number| open(&number))
    }

    /// Notes what the rank did until now.
    fn enter(&mut self, now: u64, rank: usize, mode: Mode) {
        let rank = &mut self.ranks[rank];
        let is_calculation = rank.mode == Mode::Computing;
        if rank.mode != Mode::Done && now > rank.since {
            let stretch = Stretch { start_ns: rank.since, end_ns: now, is_calculation };
            match rank.phase.stretches.last_mut().filter(|last| last.is_calculation == is_calculation) {
                Some(last) => last.end_ns = now,
                None => rank.phase.stretches.push(stretch),
            }
            let sum = match is_calculation {
                true => &mut rank.phase.calculation_ns,
                false => &mut rank.phase.communication_ns,
            };
            *sum += now - rank.since;
        }
        (rank.mode, rank.since) = (mode, now);
    }

    /// Has a message, or what belongs to it, reach the rail of its receiver.
    pub(super) fn reaches(&mut self, at: u64, number: usize, what: What) {
        self.at(at, Event::Reaches(number, what));
    }

    /// Has the data of a message leave.
    pub(super) fn leaves(&mut self, number: usize, Departure { pieces, sent }: &Departure) {
        self.messages[number].missing = pieces.len();
        for piece in pieces {
            self.reaches(piece.reaches, number, What::Data(piece.rail, piece.len));
        }
        let Message { asks, blocks, len, .. } = self.messages[number];
        // Over several rails the receiver says when it has what asked; a blocking send may end earlier with
        // a copy.
        match self.setting.calls.keep_ps {
            _ if !asks || self.setting.rails.len() == 1 => self.at(*sent, Event::Sent(number)),
            keep_ps if blocks && keep_ps > 0 => self.at(*sent + len * keep_ps / 1000, Event::Sent(number)),
            _ => {}
        }
    }

    fn finish(&mut self, now: u64, rank: usize) {
        self.enter(now, rank, Mode::Done);
        self.ranks[rank].phase.end_ns = now;
        self.answer(now, rank);
        self.release_core(now, rank);
        self.ranks[rank].core = None;
    }

    /// Begins to wait, or goes on at once if there is nothing to wait for.
    fn call(&mut self, now: u64, rank: usize, awaits: Awaits) {
        self.enter(now, rank, Mode::Calling);
        self.ranks[rank].awaits = awaits;
        self.ranks[rank].waited = !self.ranks[rank].begun.is_empty() || self.ranks[rank].unsent > 0;
        self.answer(now, rank);
        self.consider(now, rank);
    }

    /// Whether the wait of a rank is over: then it goes on.
    pub(super) fn consider(&mut self, now: u64, rank: usize) {
        if self.ranks[rank].mode != Mode::Calling {
            return;
        }
        let over = match self.ranks[rank].awaits {
            Awaits::Sends => !self.has_sends(rank),
            Awaits::Send(message) => self.messages[message].is_sent,
            Awaits::Core => true,
            Awaits::All => {
                self.ranks[rank].unsent == 0
                    && self.ranks[rank].begun.iter().all(|&number| self.messages[number].is_over(rank))
            }
        };
        if !over {
            self.yield_core(now, rank);
        } else if self.request_core(now, rank) {
            let Model { ranks, messages, .. } = self;
            let waited = ranks[rank].waited;
            ranks[rank].begun.retain(|&number| !messages[number].has_ended(rank));
            match self.setting.calls.leave_ns {
                leave_ns if waited && leave_ns > 0 => {
                    self.enter(now, rank, Mode::Busy);
                    self.work(now, rank, leave_ns);
                }
                _ => self.advance(now, rank),
            }
        }
    }

    fn send(
        &mut self,
        now: u64,
        (from, to): (usize, usize),
        (len, carried): Load,
        (way, blocks): (Way, bool),
    ) -> usize {
        let number = self.messages.len();
        let asks = way != Way::Eager;
        let leaves = now + self.setting.calls.enter_ns;
        self.messages.push(Message {
            from,
            to,
            len,
            carried,
            asks,
            blocks,
            is_kept: way == Way::Kept,
            is_there: false,
            is_whole: false,
            missing: 0,
            unread: Vec::new(),
            placed: 0,
            is_posted: false,
            is_answered: false,
            is_granted: false,
            has_left: false,
            is_taken: false,
            is_sent: false,
            is_received: false,
        });
        let phase = &mut self.ranks[from].phase;
        (phase.messages, phase.bytes) = (phase.messages + 1, phase.bytes + len);
        phase.asked += u64::from(asks);
        self.ranks[from].begun.push(number);
        let pair = self.pair(from, to);
        let posted = self.unsent[pair].pop_front();
        match posted {
            Some(_) => {
                self.messages[number].is_posted = true;
                self.ranks[to].unsent -= 1;
                self.ranks[to].begun.push(number);
            }
            None => self.unposted[pair].push_back(number),
        }
        match (way, posted) {
            (Way::Eager, _) => {
                let departure = self.hosts.eager(leaves, from, (len, carried));
                self.leaves(number, &departure);
            }
            // An invitation that crosses the request is an answer to it.
            (Way::Asks | Way::Kept, Some(invited)) if self.setting.invites => {
                self.messages[number].is_answered = true;
                let invitation = self.hosts.control(invited, to);
                self.at(
                    invitation.reaches.max(leaves),
                    Event::Arrives(number, What::Answer(invitation.rail)),
                );
            }
            _ => {
                let share = self.hosts.control(leaves, from);
                self.reaches(share.reaches, number, What::Request(share.rail));
            }
        }
        number
    }

    fn post(&mut self, now: u64, from: usize, to: usize) {
        let pair = self.pair(from, to);
        match self.unposted[pair].pop_front() {
            Some(number) => {
                self.messages[number].is_posted = true;
                self.ranks[to].begun.push(number);
                self.look(now, number);
            }
            None => {
                self.unsent[pair].push_back(now);
                self.ranks[to].unsent += 1;
            }
        }
    }

    fn happen(&mut self, now: u64, event: Event) {
        match event {
            Event::Goes(rank, turn) => {
                if self.is_done(rank, turn) {
                    self.hosts.core_is_free_at(rank, now);
                    self.advance(now, rank);
                }
            }
            Event::Turn(rank) => self.on_core_granted(now, rank),
            Event::Tick(core) => self.on_tick(now, core),
            Event::Rests(rank) => {
                if self.ranks[rank].mode == Mode::Calling {
                    self.consider(now, rank);
                }
            }
            Event::Reaches(number, what) => {
                let Message { from, to, .. } = self.messages[number];
                let (at, rail, len) = match what {
                    What::Request(rail) => (to, rail, 0),
                    What::Data(rail, len) => (to, rail, len),
                    What::Answer(rail) | What::End(rail) => (from, rail, 0),
                };
                let taken = self.hosts.take(now, at, rail, len);
                self.at(taken, Event::Arrives(number, what));
            }
            Event::Arrives(number, what) => {
                let Message { from, to, .. } = self.messages[number];
                let at = if matches!(what, What::Request(_) | What::Data(..)) { to } else { from };
                let is_calling = self.ranks[at].mode == Mode::Calling;
                let is_ready = is_calling && self.request_core(now, at);
                self.on_wakeup(now, at);
                // A core that copies looks when it is done.
                match self.hosts.core_until(at) {
                    until if until > now && !self.is_away(at) => self.at(until, event),
                    _ => self.arrives(now, number, what),
                }
                if is_ready && self.ranks[at].core.is_some() {
                    self.consider(now, at);
                }
            }
            Event::Received(number) => {
                self.messages[number].is_received = true;
                let to = self.messages[number].to;
                self.consider(now, to);
            }
            Event::Sent(number) => {
                let from = self.messages[number].from;
                match self.hosts.core_until(from) {
                    until if until > now && !self.is_away(from) => self.at(until, event),
                    _ => {
                        self.messages[number].is_sent = true;
                        self.consider(now, from);
                    }
                }
            }
        }
    }
}
