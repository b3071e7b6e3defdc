//! The schedules of all ranks of a collective, in little memory, each message with its two ends.

use nmad_mpi_base::algorithm::schedule::{Action, SLOT_BITS, Schedule};

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Sends this message.
    Send(u32),
    /// Receives it.
    Recv(u32),
    /// Copies bytes.
    Copy(u64),
    /// Reduces bytes.
    Reduce(u64),
    /// Nothing.
    Join,
}

/// A step of a rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) what: What,
    pub(crate) rank: u32,
    /// Steps that must have ended before.
    pub(crate) waits: u32,
    /// Where its followers begin; they end where those of the next step begin.
    followers: u32,
}

/// A message from a step to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) send: u32,
    pub(crate) recv: u32,
    pub(crate) len: u64,
}

/// One end of a message, until the other is found: by which both know it, the step, the bytes.
#[derive(Debug, Clone, Copy)]
struct End {
    from: u32,
    to: u32,
    slot: u32,
    step: u32,
    len: u64,
}

impl End {
    fn key(&self) -> (u32, u32, u32) {
        (self.from, self.to, self.slot)
    }
}

/// A collective of all ranks.
#[derive(Debug, Default)]
pub struct Job {
    pub(crate) steps: Vec<Step>,
    followers: Vec<u32>,
    pub(crate) messages: Vec<Message>,
    /// Where the steps of each rank begin.
    pub(crate) firsts: Vec<u32>,
    sends: Vec<End>,
    recvs: Vec<End>,
}

impl Job {
    /// Adds the schedules of the next rank, which run one after the other.
    pub fn add(&mut self, schedules: &[&Schedule]) {
        let rank = self.firsts.len() as u32;
        self.firsts.push(self.steps.len() as u32);
        let mut before: Option<&Schedule> = None;
        for (number, schedule) in (0..).zip(schedules).filter(|(_, schedule)| schedule.len() > 0) {
            if let Some(before) = before {
                self.join(rank, before, schedule);
            }
            self.add_one((rank, number, before.is_some()), schedule);
            before = Some(schedule);
        }
    }

    /// A step between two schedules: the first ones of the next wait for the last ones of the one before.
    fn join(&mut self, rank: u32, before: &Schedule, next: &Schedule) {
        let join = self.steps.len() as u32;
        let followers = self.followers.len() as u32;
        let firsts = next.steps().enumerate().filter(|(_, (_, waits, _))| *waits == 0);
        self.followers.extend(firsts.map(|(step, _)| join + 1 + step as u32));
        let last = before.steps().filter(|(.., followers)| followers.is_empty()).count() as u32;
        self.steps.push(Step { what: What::Join, rank, waits: last, followers });
    }

    fn add_one(&mut self, (rank, number, joins): (u32, u32, bool), schedule: &Schedule) {
        let first = self.steps.len() as u32;
        let end = first + schedule.len() as u32;
        let element = schedule.operator().map_or(1, |operator| operator.len(1));
        for (action, waits, followers) in schedule.steps() {
            let step = self.steps.len() as u32;
            let end_of = |from: u32, to: u32, slot: u32, len: u64| End {
                from,
                to,
                slot: number << SLOT_BITS | slot,
                step,
                len,
            };
            let what = match action {
                Action::Send { to, slot, data } => {
                    self.sends.push(end_of(rank, *to, *slot, data.len()));
                    What::Send(0)
                }
                Action::Recv { from, slot, into } => {
                    self.recvs.push(end_of(*from, rank, *slot, into.len()));
                    What::Recv(0)
                }
                Action::Copy { from, .. } => What::Copy(from.len()),
                Action::Reduce { count, .. } => What::Reduce(*count as u64 * element),
                Action::Write { data, .. } => What::Copy(data.len() as u64),
                Action::Compare { .. } | Action::Join => What::Join,
            };
            let waits = waits + u32::from(joins && waits == 0);
            self.steps.push(Step { what, rank, waits, followers: self.followers.len() as u32 });
            self.followers.extend(followers.iter().map(|follower| first + follower));
            if followers.is_empty() {
                // The step between this schedule and the next, if there is one: see [`Job::is_beyond`].
                self.followers.push(end);
            }
        }
    }

    /// The last steps of a rank are followed by none.
    fn is_beyond(&self, rank: u32, step: u32) -> bool {
        let end = self.firsts.get(rank as usize + 1).map_or(self.steps.len() as u32, |&first| first);
        step >= end
    }

    /// Gives each message its two ends; messages of one slot between two ranks keep their order.
    ///
    /// # Errors
    /// A message that nobody sends or receives, or that is longer on one side.
    pub fn connect(&mut self) -> Result<(), String> {
        let (mut sends, mut recvs) = (std::mem::take(&mut self.sends), std::mem::take(&mut self.recvs));
        sends.sort_by_key(End::key);
        recvs.sort_by_key(End::key);
        if let Some((send, recv)) =
            sends.iter().zip(&recvs).find(|(a, b)| a.key() != b.key() || a.len != b.len)
        {
            return Err(format!("{send:?} meets {recv:?}"));
        }
        if sends.len() != recvs.len() {
            return Err(format!("{} messages are sent, {} received", sends.len(), recvs.len()));
        }
        for (send, recv) in sends.iter().zip(&recvs) {
            let number = self.messages.len() as u32;
            self.messages.push(Message { send: send.step, recv: recv.step, len: send.len });
            self.steps[send.step as usize].what = What::Send(number);
            self.steps[recv.step as usize].what = What::Recv(number);
        }
        Ok(())
    }

    /// Ranks.
    pub fn ranks(&self) -> usize {
        self.firsts.len()
    }

    /// Messages of the ranks so far, until they are connected.
    pub fn sent(&self) -> usize {
        self.sends.len()
    }

    pub(crate) fn followers(&self, step: u32) -> impl Iterator<Item = u32> {
        let Step { rank, followers: start, .. } = self.steps[step as usize];
        let end =
            self.steps.get(step as usize + 1).map_or(self.followers.len(), |next| next.followers as usize);
        let all = self.followers[start as usize..end].iter().copied();
        all.filter(move |&follower| !self.is_beyond(rank, follower))
    }

    /// The number of a step in the schedule of its rank.
    pub(crate) fn place(&self, step: u32) -> (usize, usize) {
        let rank = self.steps[step as usize].rank as usize;
        (rank, (step - self.firsts[rank]) as usize)
    }
}
