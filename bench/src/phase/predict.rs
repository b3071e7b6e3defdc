//! From a pattern and profiles to times.
//!
//! Message by message in the order of time, with the rules of the library (ARCHITECTURE.md, "The life of a
//! large message"): up to the eager limit a message is copied and its send ends; above it the receiver is
//! asked, answers when the receive is posted and it does not compute, and the send ends when the body has
//! left, or over several rails when the receiver, not computing, has said that it has everything. Rails
//! carry one thing after the other and share bodies so that all finish together.

use super::outcome::{Phase, RankPhase, Setting, Stretch, Stuck};
use super::pattern::{Pattern, Step};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A message.
#[derive(Debug)]
struct Message {
    from: usize,
    to: usize,
    len: u64,
    asks: bool,
    /// The request to send, or the data, is at the receiver.
    is_there: bool,
    /// All of it is at the receiver.
    is_whole: bool,
    is_posted: bool,
    /// The receiver has answered.
    is_answered: bool,
    /// The receiver has all of it and puts it in its place.
    is_taken: bool,
    /// The send has ended; the receive has.
    is_sent: bool,
    is_received: bool,
}

impl Message {
    /// Whether it has ended for this rank.
    fn has_ended(&self, rank: usize) -> bool {
        if self.from == rank { self.is_sent } else { self.is_received }
    }
}

/// What happens to a message, or to a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request to send, or eager data, arrives.
    Arrives(usize),
    /// The answer to a request arrives.
    Answered(usize),
    /// The body is at the receiver.
    Whole(usize),
    /// The sender may use its memory again.
    Sent(usize),
    /// The receiver has it in its place.
    Received(usize),
    /// A rank's calculation, or copy, ends.
    Goes(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Until an event wakes it: it computes, and answers nobody.
    Computing,
    /// In a call: it answers.
    Calling,
    Done,
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Send(usize),
    /// All sends that have begun.
    Sends,
    /// Everything that has begun.
    All,
}

#[derive(Debug)]
struct Rank {
    steps: Vec<Step>,
    next: usize,
    mode: Mode,
    /// Since when it has been in this mode.
    since: u64,
    awaits: Awaits,
    begun: Vec<usize>,
    idle_at: Vec<u64>,
    phase: RankPhase,
}

struct Model<'a> {
    setting: &'a Setting,
    ranks: Vec<Rank>,
    messages: Vec<Message>,
    /// By sender and receiver: messages that have no receive, and receives that have no message.
    unposted: Vec<VecDeque<usize>>,
    unsent: Vec<VecDeque<usize>>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
}

/// What the phase takes.
///
/// # Errors
/// Ranks wait for each other, or for what nobody sends.
pub fn predict(pattern: &Pattern, setting: &Setting) -> Result<Phase, Stuck> {
    let mut model = Model::new(pattern, setting);
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
            steps: cut(steps, setting.fragment),
            next: 0,
            mode: Mode::Calling,
            since: 0,
            awaits: Awaits::All,
            begun: Vec::new(),
            idle_at: vec![0; setting.rails.len()],
            phase: RankPhase::default(),
        };
        let mut model = Model {
            setting,
            ranks: pattern.ranks.iter().map(rank).collect(),
            messages: Vec::new(),
            unposted: vec![VecDeque::new(); count * count],
            unsent: vec![VecDeque::new(); count * count],
            events: BinaryHeap::new(),
        };
        if let Some(fragment) = setting.fragment {
            model.cut_receives(pattern, fragment);
        }
        model
    }

    /// A receive of a message that is cut becomes one for each fragment.
    fn cut_receives(&mut self, pattern: &Pattern, fragment: u64) {
        for to in 0..pattern.ranks.len() {
            let mut taken = vec![0; pattern.ranks.len()];
            let mut steps = Vec::new();
            for step in std::mem::take(&mut self.ranks[to].steps) {
                let Step::Recv(from) = step else {
                    steps.push(step);
                    continue;
                };
                let sends = pattern.ranks[from].iter().filter_map(|step| match *step {
                    Step::Send { to: other, len, .. } if other == to => Some(len),
                    _ => None,
                });
                let len = sends.clone().nth(taken[from]).unwrap_or(0);
                taken[from] += 1;
                steps.extend((0..len.div_ceil(fragment).max(1)).map(|_| Step::Recv(from)));
            }
            self.ranks[to].steps = steps;
        }
    }

    fn pair(&self, from: usize, to: usize) -> usize {
        from * self.ranks.len() + to
    }

    fn at(&mut self, when: u64, event: Event) {
        self.events.push(Reverse((when, event)));
    }

    /// What a short frame takes from rank to rank.
    fn latency_ns(&self) -> u64 {
        self.setting.rails.iter().map(|rail| rail.eager_ns(64)).min().unwrap_or(0)
    }

    fn copy_ns(&self, len: u64) -> u64 {
        let measured = self.setting.rails.iter().find_map(|rail| Some(rail.profile().memcpy()?.ns(len)));
        // Four bytes in a nanosecond, where nobody has measured it.
        measured.unwrap_or(len / 4)
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
                Step::Send { to, len, blocks } => {
                    let message = self.send(now, (rank, to), len);
                    if blocks && !self.setting.parallel {
                        return self.call(now, rank, Awaits::Send(message));
                    }
                }
                Step::Compute(ns) => {
                    // Sends that go on at once are over before the calculation, as in figure 12.
                    if self.setting.parallel && self.has_sends(rank) {
                        self.ranks[rank].next -= 1;
                        return self.call(now, rank, Awaits::Sends);
                    }
                    self.enter(now, rank, Mode::Computing);
                    return self.at(now + ns, Event::Goes(rank));
                }
                Step::Wait => return self.call(now, rank, Awaits::All),
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

    fn finish(&mut self, now: u64, rank: usize) {
        self.enter(now, rank, Mode::Done);
        self.ranks[rank].phase.end_ns = now;
        self.answer(now, rank);
    }

    /// Begins to wait, or goes on at once if there is nothing to wait for.
    fn call(&mut self, now: u64, rank: usize, awaits: Awaits) {
        self.enter(now, rank, Mode::Calling);
        self.ranks[rank].awaits = awaits;
        self.answer(now, rank);
        self.consider(now, rank);
    }

    /// Whether the wait of a rank is over: then it goes on.
    fn consider(&mut self, now: u64, rank: usize) {
        if self.ranks[rank].mode != Mode::Calling {
            return;
        }
        let mut unsent = (0..self.ranks.len()).map(|from| &self.unsent[self.pair(from, rank)]);
        let over = match self.ranks[rank].awaits {
            Awaits::Sends => !self.has_sends(rank),
            Awaits::Send(message) => self.messages[message].is_sent,
            Awaits::All => {
                unsent.all(VecDeque::is_empty)
                    && self.ranks[rank].begun.iter().all(|&number| self.messages[number].has_ended(rank))
            }
        };
        if over {
            let Model { ranks, messages, .. } = self;
            ranks[rank].begun.retain(|&number| !messages[number].has_ended(rank));
            self.advance(now, rank);
        }
    }

    fn send(&mut self, now: u64, (from, to): (usize, usize), len: u64) -> usize {
        let number = self.messages.len();
        let asks = len > self.setting.eager_max;
        self.messages.push(Message {
            from,
            to,
            len,
            asks,
            is_there: false,
            is_whole: false,
            is_posted: false,
            is_answered: false,
            is_taken: false,
            is_sent: false,
            is_received: false,
        });
        let phase = &mut self.ranks[from].phase;
        (phase.messages, phase.bytes) = (phase.messages + 1, phase.bytes + len);
        phase.asked += u64::from(asks);
        self.ranks[from].begun.push(number);
        let pair = self.pair(from, to);
        match self.unsent[pair].pop_front() {
            Some(_) => {
                self.messages[number].is_posted = true;
                self.ranks[to].begun.push(number);
            }
            None => self.unposted[pair].push_back(number),
        }
        if asks {
            self.at(now + self.latency_ns(), Event::Arrives(number));
            return number;
        }
        // Copied, so the send ends; rails carry it after what they have.
        let copied = now + self.copy_ns(len);
        let arrives = self.carry(copied, from, len, true);
        self.at(copied, Event::Sent(number));
        self.at(arrives, Event::Arrives(number));
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
            None => self.unsent[pair].push_back(to),
        }
    }

    /// When rails that are idle later have carried a message: all finish together, or, of one that is not
    /// shared, the first that does.
    fn carry(&mut self, now: u64, from: usize, len: u64, whole: bool) -> u64 {
        let rails = &self.setting.rails;
        let idle_at = &mut self.ranks[from].idle_at;
        let finish = |rail: usize, idle: u64, len: u64| {
            let ns = if whole { rails[rail].eager_ns(len) } else { rails[rail].body_ns(len) };
            idle.max(now) + ns
        };
        if whole && len <= PACKET || rails.len() == 1 {
            let best = (0..rails.len()).min_by_key(|&rail| finish(rail, idle_at[rail], len)).unwrap_or(0);
            let end = finish(best, idle_at[best], len);
            idle_at[best] = idle_at[best].max(now) + rails[best].busy_ns(len);
            return end;
        }
        let can = |end: u64| -> u64 {
            let of = |rail: usize| rails[rail].body_bytes(end.saturating_sub(idle_at[rail].max(now)));
            (0..rails.len()).map(of).sum()
        };
        let longest = (0..rails.len()).map(|rail| finish(rail, idle_at[rail], len)).min().unwrap_or(now);
        let (mut below, mut above) = (now, longest);
        while above - below > 100 {
            let middle = below.midpoint(above);
            if can(middle) >= len { above = middle } else { below = middle }
        }
        for rail in 0..rails.len() {
            let start = idle_at[rail].max(now);
            let share = rails[rail].body_bytes(above.saturating_sub(start)).min(len);
            if share > 0 {
                idle_at[rail] = start + rails[rail].busy_ns(share);
            }
        }
        above
    }

    fn happen(&mut self, now: u64, event: Event) {
        match event {
            Event::Goes(rank) => self.advance(now, rank),
            Event::Arrives(number) => {
                self.messages[number].is_there = true;
                self.messages[number].is_whole = !self.messages[number].asks;
                self.look(now, number);
            }
            Event::Whole(number) => {
                self.messages[number].is_whole = true;
                self.look(now, number);
            }
            Event::Answered(number) => {
                let Message { from, len, .. } = self.messages[number];
                let end = self.carry(now, from, len, false);
                self.at(end, Event::Whole(number));
                if self.setting.rails.len() == 1 {
                    self.at(end, Event::Sent(number));
                }
            }
            Event::Received(number) => {
                self.messages[number].is_received = true;
                let to = self.messages[number].to;
                self.consider(now, to);
            }
            Event::Sent(number) => {
                self.messages[number].is_sent = true;
                let from = self.messages[number].from;
                self.consider(now, from);
            }
        }
    }

    /// What a receiver does about a message, if it does not compute.
    fn look(&mut self, now: u64, number: usize) {
        let Message { to, len, asks, is_there, is_whole, is_posted, is_answered, is_taken, .. } =
            self.messages[number];
        if self.ranks[to].mode == Mode::Computing || !is_there || !is_posted {
            return;
        }
        if asks && !is_answered {
            self.messages[number].is_answered = true;
            self.at(now + self.latency_ns(), Event::Answered(number));
        }
        if is_whole && !is_taken {
            self.messages[number].is_taken = true;
            if asks && self.setting.rails.len() > 1 {
                self.at(now + self.latency_ns(), Event::Sent(number));
            }
            // Eager data is copied to its place.
            let copy_ns = if asks { 0 } else { self.copy_ns(len) };
            self.at(now + copy_ns, Event::Received(number));
        }
    }

    /// A rank has come into the library: it looks at all that waits for it.
    fn answer(&mut self, now: u64, rank: usize) {
        let begun = self.ranks[rank].begun.clone();
        let incoming = begun.into_iter().filter(|number| self.messages[*number].to == rank);
        for number in incoming.collect::<Vec<_>>() {
            self.look(now, number);
        }
    }

    /// What the ranks that are not done wait for: the cycle, if there is one.
    fn who_waits(&self) -> Vec<String> {
        let waits = |rank: usize| -> Option<(usize, String)> {
            let of = &self.ranks[rank];
            if of.mode == Mode::Done {
                return None;
            }
            let open = of.begun.iter().map(|&number| &self.messages[number]);
            let sent = open.clone().find(|message| message.from == rank && !message.is_sent);
            if let Some(Message { to, len, .. }) = sent {
                let why = format!("rank {rank} sends {len} B to rank {to}, which posts no receive for it");
                return Some((*to, why));
            }
            let missing = (0..self.ranks.len()).find(|&from| !self.unsent[self.pair(from, rank)].is_empty());
            let from = missing.or_else(|| open.clone().find(|m| !m.is_received).map(|m| m.from))?;
            let sender = &self.ranks[from];
            let why = match sender.mode {
                Mode::Done => format!("rank {rank} waits for a message of rank {from}, which sends no more"),
                _ => {
                    format!("rank {rank} waits for a message of rank {from}, which does not come to send it")
                }
            };
            Some((from, why))
        };
        let Some(start) = (0..self.ranks.len()).find(|&rank| waits(rank).is_some()) else {
            return Vec::new();
        };
        let mut path: Vec<(usize, String)> = Vec::new();
        let mut rank = start;
        while let Some((next, why)) = waits(rank) {
            if let Some(place) = path.iter().position(|(known, _)| *known == rank) {
                path.drain(..place);
                break;
            }
            path.push((rank, why));
            rank = next;
        }
        path.into_iter().map(|(_, why)| why).collect()
    }
}

/// Longer eager data goes in parts over several rails.
const PACKET: u64 = 72 << 10;

/// Sends that are longer than a fragment, cut.
fn cut(steps: &[Step], fragment: Option<u64>) -> Vec<Step> {
    let Some(fragment) = fragment else { return steps.to_vec() };
    let pieces = |step: &Step| match *step {
        Step::Send { to, len, blocks } if len > fragment => {
            let of = |index: u64| Step::Send { to, len: fragment.min(len - index * fragment), blocks };
            (0..len.div_ceil(fragment)).map(of).collect()
        }
        step => vec![step],
    };
    steps.iter().flat_map(pieces).collect()
}
