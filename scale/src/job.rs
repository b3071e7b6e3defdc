//! The schedules of all ranks of a collective, in little memory, each message with its two ends.

use nmad_mpi::algorithm::schedule::{Action, Schedule};

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
    /// Adds the schedule of the next rank.
    pub fn add(&mut self, schedule: &Schedule) {
        let (rank, first) = (self.firsts.len() as u32, self.steps.len() as u32);
        self.firsts.push(first);
        let element = schedule.operator().map_or(1, |operator| operator.len(1));
        for (action, waits, followers) in schedule.steps() {
            let step = self.steps.len() as u32;
            let what = match action {
                Action::Send { to, slot, data } => {
                    self.sends.push(End { from: rank, to: *to, slot: *slot, step, len: data.len() });
                    What::Send(0)
                }
                Action::Recv { from, slot, into } => {
                    self.recvs.push(End { from: *from, to: rank, slot: *slot, step, len: into.len() });
                    What::Recv(0)
                }
                Action::Copy { from, .. } => What::Copy(from.len()),
                Action::Reduce { count, .. } => What::Reduce(*count as u64 * element),
                Action::Write { data, .. } => What::Copy(data.len() as u64),
                Action::Compare { .. } | Action::Join => What::Join,
            };
            self.steps.push(Step { what, rank, waits, followers: self.followers.len() as u32 });
            self.followers.extend(followers.iter().map(|follower| first + follower));
        }
    }

    /// Gives each message its two ends; messages of one slot between two ranks keep their order.
    ///
    /// # Errors
    /// A message that nobody sends or receives, or that is longer on one side.
    pub fn connect(&mut self) -> Result<(), String> {
        let (mut sends, mut recvs) = (std::mem::take(&mut self.sends), std::mem::take(&mut self.recvs));
        sends.sort_by_key(End::key);
        recvs.sort_by_key(End::key);
        if let Some((send, recv)) = sends.iter().zip(&recvs).find(|(a, b)| a.key() != b.key() || a.len != b.len) {
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

    /// Messages.
    pub fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// Steps of all ranks.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn followers(&self, step: u32) -> &[u32] {
        let start = self.steps[step as usize].followers as usize;
        let end = self.steps.get(step as usize + 1).map_or(self.followers.len(), |next| next.followers as usize);
        &self.followers[start..end]
    }

    /// The number of a step in the schedule of its rank.
    pub(crate) fn place(&self, step: u32) -> (usize, usize) {
        let rank = self.steps[step as usize].rank as usize;
        (rank, (step - self.firsts[rank]) as usize)
    }
}
