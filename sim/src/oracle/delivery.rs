//! Every message once, intact, to a receive that takes it, with the right envelope.

use super::Objection;
use super::fates::Fates;
use super::files::FileOracle;
use super::ledger::{Entry, Ledger, What};
use super::memory::MemoryOracle;
use crate::payload::payload;
use nmad_engine::packet::RequestId;
use nmad_engine::{Completion, Envelope, Error};

/// Judges each completion as it comes, and the rest at the end.
#[derive(Debug, Default)]
pub struct DeliveryOracle {
    /// The books.
    pub ledger: Ledger,
    /// Memory that is accessed without a receive.
    pub memory: MemoryOracle,
    /// Files that hosts share.
    pub files: FileOracle,
    scratch: Vec<u8>,
}

impl DeliveryOracle {
    /// A request has ended. Returns the entry in the ledger.
    ///
    /// # Errors
    /// The objection to it.
    pub fn ended(
        &mut self,
        host: usize,
        at: u64,
        completion: &Completion,
        fates: &dyn Fates,
    ) -> Result<usize, Objection> {
        let Completion { request, result } = *completion;
        let index = self
            .ledger
            .end(host, request, at, result)
            .ok_or_else(|| format!("h{host} completed {request:?}, which does not run (twice?)"))?;
        let entry = &self.ledger.entries[index];
        let objection = match (entry.what, result) {
            (What::Send { .. }, Ok(envelope)) => return self.sent(index, &envelope).map(|()| index),
            (What::Recv { .. }, Ok(envelope)) => {
                return self.received(index, &envelope, None).map(|()| index);
            }
            (What::Recv { .. }, Err(Error::Truncated { envelope, capacity })) => {
                return self.received(index, &envelope, Some(capacity)).map(|()| index);
            }
            (What::Recv { cancelled: true, .. }, Err(Error::Cancelled)) => return Ok(index),
            (What::Recv { context, .. }, Err(Error::Revoked)) if fates.closed(host, context) => {
                return Ok(index);
            }
            (_, Err(Error::PeerLost(peer))) => {
                let peer = peer.0 as usize;
                // A receive from anybody may have taken the message that is lost.
                if entry.peer().is_none_or(|named| named == peer) && fates.severed(host, peer) {
                    return Ok(index);
                }
                format!("ended with 'peer {peer} is gone', which it is not")
            }
            (_, Err(error)) => format!("ended with '{error}', without a cause"),
        };
        Err(format!("{entry} {objection}"))
    }

    /// Somebody tries to cancel a request.
    pub fn cancelled(&mut self, host: usize, request: RequestId) {
        if let Some(index) = self.ledger.running(host, request)
            && let What::Recv { cancelled, .. } = &mut self.ledger.entries[index].what
        {
            *cancelled = true;
        }
    }

    /// Messages submitted, and their bytes.
    pub fn messages(&self) -> (u64, u64) {
        let sends = self.ledger.entries.iter().filter(|entry| matches!(entry.what, What::Send { .. }));
        sends.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.len))
    }

    fn sent(&mut self, index: usize, envelope: &Envelope) -> Result<(), Objection> {
        let entry = &mut self.ledger.entries[index];
        entry.buffer.poison();
        let What::Send { to, context, tag, seq, .. } = entry.what else { return Ok(()) };
        let right = (to, context, tag, entry.len, seq.unwrap_or(0));
        if parts(envelope) == right {
            Ok(())
        } else {
            Err(format!("{entry} ended with another envelope: {envelope:?}"))
        }
    }

    fn received(
        &mut self,
        index: usize,
        envelope: &Envelope,
        capacity: Option<u64>,
    ) -> Result<(), Objection> {
        let entry = &self.ledger.entries[index];
        let send = self.find(entry, envelope)?;
        let message = &self.ledger.entries[send];
        if !takes(entry, message) {
            return Err(format!("{entry} got what it does not take: {message}"));
        }
        if let Some(other) = message.partner {
            return Err(format!(
                "{entry} got a message again that [{}] had got: {message}",
                self.ledger.entries[other]
            ));
        }
        match capacity {
            None if message.len > entry.len => {
                return Err(format!("{entry} ended well although too short for {message}"));
            }
            Some(capacity) if message.len <= entry.len || capacity != entry.len => {
                return Err(format!("{entry} reports a truncation to {capacity} B, got {message}"));
            }
            _ => {}
        }
        let What::Send { payload: id, .. } = message.what else { return Ok(()) };
        if !entry.buffer.is_shared() {
            payload(id, message.len.min(entry.len) as usize, &mut self.scratch);
            entry.buffer.check(&self.scratch).map_err(|e| format!("{entry} got {message}, but {e}"))?;
        }
        self.ledger.entries[index].partner = Some(send);
        self.ledger.entries[send].partner = Some(index);
        Ok(())
    }

    /// The message that an envelope speaks of: the ordered one with its number, or the first unordered one
    /// like it that nobody has got.
    fn find(&self, recv: &Entry, envelope: &Envelope) -> Result<usize, Objection> {
        let (from, context, tag, len, number) = parts(envelope);
        let flow = self.ledger.flows.get(&(from, recv.host, context)).map(Vec::as_slice).unwrap_or_default();
        let alike = |&&index: &&usize| {
            let message = &self.ledger.entries[index];
            let What::Send { tag: t, seq, .. } = message.what else { return false };
            let same = t == tag && message.len == len;
            same && seq.map_or(number == 0 && message.partner.is_none(), |seq| seq == number)
        };
        let fresh = |&&index: &&usize| self.ledger.entries[index].partner.is_none();
        let found = flow.iter().filter(alike).find(fresh).or_else(|| flow.iter().find(alike));
        found.copied().ok_or_else(|| format!("{recv} got a message that no host sent: {envelope:?}"))
    }

    /// Judges what is left at the end of the run.
    ///
    /// # Errors
    /// A message is missing, or changed after its request had ended.
    pub fn finish(&mut self, fates: &dyn Fates) -> Result<(), Objection> {
        let mut scratch = Vec::new();
        for entry in &self.ledger.entries {
            if fates.dead(entry.host) {
                continue;
            }
            let lost = entry.peer().is_some_and(|peer| fates.severed(entry.host, peer));
            match (&entry.ended, entry.what) {
                (None, _) => return Err(format!("{entry} never ended")),
                (Some((_, Ok(_))), What::Send { to, context, synchronous, .. }) => {
                    if entry.partner.is_none() && !lost && !fates.closed(to, context) {
                        return Err(format!("{entry} was never received"));
                    }
                    self.matched_in_time(entry, synchronous)?;
                    if !entry.buffer.is_poisoned() {
                        return Err(format!("{entry}: its memory was written to"));
                    }
                }
                (_, What::Recv { .. }) => self.unchanged(entry, &mut scratch)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn matched_in_time(&self, entry: &Entry, synchronous: bool) -> Result<(), Objection> {
        let (Some(partner), Some((at, _)), true) = (entry.partner, &entry.ended, synchronous) else {
            return Ok(());
        };
        let recv = &self.ledger.entries[partner];
        if recv.submitted <= *at {
            return Ok(());
        }
        Err(format!(
            "{entry} is synchronous and ended at {at}, before its receive was posted at {}",
            recv.submitted
        ))
    }

    fn unchanged(&self, entry: &Entry, scratch: &mut Vec<u8>) -> Result<(), Objection> {
        if entry.buffer.is_shared() {
            return Ok(());
        }
        let message = entry.partner.map(|send| &self.ledger.entries[send]);
        match message.map(|message| (message.what, message.len)) {
            Some((What::Send { payload: id, .. }, len)) => payload(id, len.min(entry.len) as usize, scratch),
            // A peer that died may have left part of a message.
            _ if matches!(entry.ended, Some((_, Err(Error::PeerLost(_))))) => return Ok(()),
            _ => scratch.clear(),
        }
        entry.buffer.check(scratch).map_err(|e| format!("{entry}: changed after its end: {e}"))
    }
}

fn parts(envelope: &Envelope) -> (usize, u32, u64, u64, u32) {
    (envelope.peer.0 as usize, envelope.context.0, envelope.tag.0, envelope.len, envelope.seq)
}

/// Whether a receive takes a message.
pub fn takes(recv: &Entry, message: &Entry) -> bool {
    let (What::Recv { from, context, tag, .. }, What::Send { to, context: c, tag: t, .. }) =
        (recv.what, message.what)
    else {
        return false;
    };
    to == recv.host
        && context == c
        && from.is_none_or(|from| from == message.host)
        && tag.is_none_or(|tag| tag == t)
}
