//! Agreement among the ranks of a communicator: all survivors get the same decision, although ranks may
//! fail at any time. This is the state machine of one rank; the caller transports messages and detects
//! failures.
//!
//! Contributions travel up a tree to the *root*, the lowest live rank, and its decision travels down (two
//! passes, 2 log2(n) steps without failures). The protocol follows the early-returning agreement of
//! Herault, Bouteiller, Bosilca and others (SC 2015): a rank returns as soon as it has the decision, and
//! stores the decision for ranks that request it later.
//!
//! The *view* of a rank is the set of ranks that it knows to have failed. A rank collects contributions
//! for one view: it counts only contributions that were sent in the same view, and starts again when it
//! learns of a failure. It drops messages of ranks in its view.
//!
//! These rules make decisions unique. A root decides only after each survivor has contributed in the view
//! of the root, and a rank contributes only while it has no decision. All earlier roots are in that view,
//! so from then on no survivor accepts a decision of an earlier root. A survivor that already has a
//! decision answers with it instead, and the new root adopts it.
//!
//! The failure detector must be accurate (no live rank is in a view) and complete (every failure is
//! detected).

use super::set::Set;

/// The value of an agreement. Each field is combined by its own operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Value {
    /// Combined by bitwise AND.
    pub(crate) flags: i32,
    /// Combined by maximum, element by element.
    pub(crate) most: [i64; 2],
    /// Acknowledged failed ranks, combined by intersection.
    pub(crate) acknowledged: Set,
}

impl Value {
    fn join(&mut self, other: &Value) {
        self.flags &= other.flags;
        self.most.iter_mut().zip(other.most).for_each(|(most, other)| *most = (*most).max(other));
        self.acknowledged.keep_all(&other.acknowledged);
    }
}

/// The result of an agreement, the same in all survivors.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Decision {
    pub(crate) value: Value,
    /// The view of the root that decided.
    pub(crate) failed: Set,
}

/// A message between two ranks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Message {
    /// Combined contributions, sent to the parent.
    Up {
        /// The view of the sender.
        failed: Set,
        /// The ranks whose contributions are in `value`.
        covered: Set,
        value: Value,
    },
    /// The decision, sent to neighbours in the tree and to ranks that request it.
    Down(Decision),
}

/// The state of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Agreement {
    me: usize,
    size: usize,
    failed: Set,
    /// Ranks of this subtree that have contributed in this view.
    covered: Set,
    /// Combination of all contributions, of all views.
    value: Option<Value>,
    has_joined: bool,
    /// Receiver and `covered` of the last contribution that was sent in this view.
    sent: Option<(usize, Set)>,
    decision: Option<Decision>,
    /// Ranks that have sent a contribution to this one, and so wait for the decision.
    requesters: Set,
}

impl Agreement {
    /// Makes the state of rank `me` of `size` with the view `failed`, before the rank contributes.
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
            requesters: none,
        }
    }

    /// Returns the decision; `None` while this rank has none.
    pub(crate) fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// Adds the contribution of this rank. Returns receivers and messages to send.
    pub(crate) fn join(&mut self, value: Value) -> Vec<(usize, Message)> {
        self.has_joined = true;
        self.covered.add(self.me);
        self.contribute(&value);
        self.advance()
    }

    /// Handles the failure of a rank. Returns receivers and messages to send.
    pub(crate) fn on_failed(&mut self, rank: usize) -> Vec<(usize, Message)> {
        self.add_failure(rank);
        match self.decision.clone() {
            // The new parent may start to collect again, and must not make another decision.
            Some(decision) => self.send_decision(decision),
            None => self.advance(),
        }
    }

    /// Handles a message of rank `from`. Adds the view of the sender to [`Agreement::failed`]. Returns
    /// receivers and messages to send.
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
                self.requesters.add(from);
                failed.iter().for_each(|rank| self.add_failure(rank));
                self.contribute(&value);
                if failed == self.failed {
                    self.covered.add_all(&covered);
                }
                self.advance()
            }
        }
    }

    /// Returns the view of this rank.
    pub(crate) fn failed(&self) -> &Set {
        &self.failed
    }

    /// Adds a rank to the view, and discards the contributions that were collected in the old one.
    fn add_failure(&mut self, rank: usize) {
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

    /// Decides or contributes to the parent once the whole subtree has contributed.
    fn advance(&mut self) -> Vec<(usize, Message)> {
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

    /// Stores a decision, and sends it on.
    fn decide(&mut self, decision: Decision) -> Vec<(usize, Message)> {
        self.decision = Some(decision.clone());
        self.send_decision(decision)
    }

    /// Sends a decision to parent and children in the tree, and to all ranks that have requested it.
    fn send_decision(&self, decision: Decision) -> Vec<(usize, Message)> {
        let parent = self.parent_of(self.me);
        let waits = |&rank: &usize| {
            parent == Some(rank) || self.requesters.has(rank) || self.parent_of(rank) == Some(self.me)
        };
        self.alive().filter(waits).map(|rank| (rank, Message::Down(decision.clone()))).collect()
    }

    fn alive(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.size).filter(|rank| !self.failed.has(*rank))
    }

    /// Returns the nearest live ancestor in the binomial tree, or the root if there is none; `None` for the
    /// root itself.
    fn parent_of(&self, rank: usize) -> Option<usize> {
        let up = |rank: &usize| (*rank > 0).then(|| rank & (rank - 1));
        let alive = std::iter::successors(up(&rank), up).find(|rank| !self.failed.has(*rank));
        alive.or_else(|| self.alive().next()).filter(|parent| *parent != rank)
    }

    /// Returns whether a rank is in the subtree of this one. This rank is part of its subtree.
    fn is_below(&self, rank: usize) -> bool {
        std::iter::successors(Some(rank), |rank| self.parent_of(*rank)).any(|above| above == self.me)
    }
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
