//! Agreement among the ranks of a communicator of which some may fail at any time: all that survive get
//! the same decision. The state machine of one rank, without messages and clocks of its own.
//!
//! Contributions go up a tree to the lowest rank that is alive, the *root*, and its decision comes down
//! (two passes, 2 log2(n) steps without failures). The idea is that of the early-returning agreement of
//! Herault, Bouteiller, Bosilca and others (SC 2015): a rank returns as soon as it has the decision, and
//! keeps it for those that ask later.
//!
//! What a rank collects belongs to a *view*: the set of ranks that it knows to have failed. A
//! contribution counts only in the view in which it was sent, and a rank that learns of a failure
//! collects anew. Messages of a rank in the view are dropped. Together these give the one property that
//! matters: a root that decides has heard from each survivor, in its own view, that it has no decision;
//! from then on no survivor takes one from an earlier root, since all earlier roots are in that view. A
//! survivor that has a decision answers with it, and the new root takes it over.
//!
//! Failures must be detected correctly (no rank that is alive is in a view), and completely.

use super::set::Set;

/// What ranks agree upon, each field by an operation of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Value {
    /// Joined by AND, bit by bit.
    pub(crate) flags: i32,
    /// The greatest of each.
    pub(crate) most: [i64; 2],
    /// Failed ranks that all participants have acknowledged.
    pub(crate) acknowledged: Set,
}

impl Value {
    fn join(&mut self, other: &Value) {
        self.flags &= other.flags;
        self.most.iter_mut().zip(other.most).for_each(|(most, other)| *most = (*most).max(other));
        self.acknowledged.keep_all(&other.acknowledged);
    }
}

/// What all survivors get.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Decision {
    pub(crate) value: Value,
    /// The view in which it was made.
    pub(crate) failed: Set,
}

/// A message between two ranks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Message {
    /// The contributions of some ranks, to the parent.
    Up {
        /// The view of the sender.
        failed: Set,
        /// The ranks whose contributions are in `value`.
        covered: Set,
        value: Value,
    },
    /// The decision.
    Down(Decision),
}

/// The state of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Agreement {
    me: usize,
    size: usize,
    failed: Set,
    /// The ranks that have contributed in this view, as far as they are below this one.
    covered: Set,
    /// Everything that was contributed, in any view.
    value: Option<Value>,
    has_joined: bool,
    /// The parent that has got `covered`, and how much of it.
    sent: Option<(usize, Set)>,
    decision: Option<Decision>,
    /// Ranks that have asked and wait for the decision.
    askers: Set,
}

impl Agreement {
    /// The state of rank `me` of `size`, which has not joined and knows that `failed` have failed.
    pub(crate) fn new(me: usize, size: usize, failed: Set) -> Agreement {
        let none = Set::none(size);
        Agreement {
            me,
            size,
            failed,
            covered: none.clone(),
            value: None,
            has_joined: false,
            sent: None,
            decision: None,
            askers: none,
        }
    }

    /// Returns the decision, when there is one.
    pub(crate) fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// Contributes: the program has called. Returns what is to be sent, and to which ranks.
    pub(crate) fn join(&mut self, value: Value) -> Vec<(usize, Message)> {
        self.has_joined = true;
        self.covered.add(self.me);
        self.contribute(&value);
        self.go_on()
    }

    /// A rank has failed.
    pub(crate) fn on_failed(&mut self, rank: usize) -> Vec<(usize, Message)> {
        self.learn(rank);
        match self.decision.clone() {
            // The new parent may collect anew, and must not decide otherwise.
            Some(decision) => self.pass_on(decision),
            None => self.go_on(),
        }
    }

    /// A message of rank `from` has arrived. The ranks that its sender knows to have failed are in
    /// [`Agreement::failed`] afterwards.
    pub(crate) fn on_message(&mut self, from: usize, message: Message) -> Vec<(usize, Message)> {
        if self.failed.has(from) {
            return Vec::new();
        }
        match message {
            Message::Down(decision) => {
                if self.decision.is_some() {
                    return Vec::new();
                }
                self.decide(decision)
            }
            Message::Up { .. } if let Some(decision) = &self.decision => {
                vec![(from, Message::Down(decision.clone()))]
            }
            Message::Up { failed, covered, value } => {
                self.askers.add(from);
                failed.iter().for_each(|rank| self.learn(rank));
                self.contribute(&value);
                if failed == self.failed {
                    self.covered.add_all(&covered);
                }
                self.go_on()
            }
        }
    }

    /// The ranks that this one knows to have failed.
    pub(crate) fn failed(&self) -> &Set {
        &self.failed
    }

    fn learn(&mut self, rank: usize) {
        if self.failed.has(rank) || rank == self.me {
            return;
        }
        self.failed.add(rank);
        self.covered.clear();
        if self.has_joined {
            self.covered.add(self.me);
        }
        self.sent = None;
    }

    fn contribute(&mut self, value: &Value) {
        match &mut self.value {
            Some(own) => own.join(value),
            none => *none = Some(value.clone()),
        }
    }

    fn go_on(&mut self) -> Vec<(usize, Message)> {
        let Some(value) = self.value.clone().filter(|_| self.has_joined && self.decision.is_none()) else {
            return Vec::new();
        };
        if !self.alive().filter(|&rank| self.is_below(rank)).all(|rank| self.covered.has(rank)) {
            return Vec::new();
        }
        let Some(parent) = self.parent_of(self.me) else {
            return self.decide(Decision { value, failed: self.failed.clone() });
        };
        let now = (parent, self.covered.clone());
        if self.sent.as_ref() == Some(&now) {
            return Vec::new();
        }
        self.sent = Some(now);
        let (failed, covered) = (self.failed.clone(), self.covered.clone());
        vec![(parent, Message::Up { failed, covered, value })]
    }

    /// Takes a decision, and passes it on.
    fn decide(&mut self, decision: Decision) -> Vec<(usize, Message)> {
        self.decision = Some(decision.clone());
        self.pass_on(decision)
    }

    /// Sends a decision to the neighbours in the tree, and to those that have asked.
    fn pass_on(&self, decision: Decision) -> Vec<(usize, Message)> {
        let parent = self.parent_of(self.me);
        let waits = |&rank: &usize| {
            parent == Some(rank) || self.askers.has(rank) || self.parent_of(rank) == Some(self.me)
        };
        self.alive().filter(waits).map(|rank| (rank, Message::Down(decision.clone()))).collect()
    }

    fn alive(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.size).filter(|rank| !self.failed.has(*rank))
    }

    /// The nearest ancestor in the binomial tree that is alive, or else the root; `None` for the root.
    fn parent_of(&self, rank: usize) -> Option<usize> {
        let up = |rank: &usize| (*rank > 0).then(|| rank & (rank - 1));
        let alive = std::iter::successors(up(&rank), up).find(|rank| !self.failed.has(*rank));
        alive.or_else(|| self.alive().next()).filter(|parent| *parent != rank)
    }

    /// Whether a rank is in the part of the tree below this one, which itself is.
    fn is_below(&self, rank: usize) -> bool {
        std::iter::successors(Some(rank), |rank| self.parent_of(*rank)).any(|above| above == self.me)
    }
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
