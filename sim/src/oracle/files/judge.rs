//! What reads have found, and what the file has at the end.

use super::{Book, Done, What, Writer};
use crate::files::system::Server;
use crate::oracle::Objection;
use crate::workload::files::writer;
use nmad_file::{Kind, Piece};

impl Book {
    /// Calls `judge` for each run of bytes that have the same writers and the same that is found there.
    pub(super) fn runs(
        &self,
        pieces: &[Piece],
        found: &[u8],
        mut judge: impl FnMut(u64, Option<u8>) -> Result<(), Objection>,
    ) -> Result<(), Objection> {
        let places = pieces.iter().flat_map(|piece| piece.offset..piece.end());
        let mut before: Option<(u64, Option<u8>)> = None;
        for (at, &byte) in places.zip(found) {
            let number = match byte {
                0 => None,
                byte => Some(writer(byte, at).unwrap_or(u8::MAX)),
            };
            let goes_on = before.is_some_and(|(last, same)| last + 1 == at && same == number)
                && self.edges.binary_search(&at).is_err();
            before = Some((at, number));
            if !goes_on {
                judge(at, number)?;
            }
        }
        Ok(())
    }

    /// What was found at a place may have been written there.
    fn found(&self, at: u64, number: Option<u8>, writers: &[Writer]) -> Result<Vec<Writer>, Objection> {
        match number {
            None => {
                Ok(writers.iter().copied().filter(|writer| !matches!(writer, Writer::Write(_))).collect())
            }
            Some(number) => {
                let place = self.writes.get(&number).copied().map(Writer::Write);
                let place = place.filter(|place| writers.contains(place));
                place.map(|place| vec![place]).ok_or_else(|| {
                    format!("byte {at} is that of write {number}, which nobody has made there")
                })
            }
        }
    }

    /// Judges what a read has found.
    pub(super) fn judge(&mut self, place: usize, refused: u64) -> Result<(), Objection> {
        let read = &self.accesses[place];
        self.judge_len(read, refused)?;
        let mut settled = Vec::new();
        self.runs(read.access.pieces.list(), &read.found, |at, number| {
            let writers = self.writers(at);
            let candidates = self.found(at, number, &writers)?;
            let overwritten = |candidate: &Writer| {
                writers.iter().copied().find(|&other| {
                    self.is_sure(other, at, refused)
                        && self.follows(other, *candidate)
                        && self.precedes(other, read)
                })
            };
            let Some(writer) = candidates.iter().copied().find(|writer| overwritten(writer).is_none()) else {
                let by = candidates.first().and_then(overwritten);
                return Err(format!(
                    "byte {at} is that of {}, which {} has overwritten before",
                    self.name(candidates.first().copied()),
                    self.name(by)
                ));
            };
            for &other in writers.iter().filter(|&&other| {
                self.was_accepted(other, refused) && self.follows(other, writer) && self.precedes(other, read)
            }) {
                self.judge_loss(read, other, at)?;
            }
            if writers.iter().all(|&other| self.precedes(other, read) && self.is_sure(other, at, refused)) {
                settled.push((at, writers.len(), writer));
            }
            Ok(())
        })?;
        for (at, count, writer) in settled {
            let is_zero = |writer: Writer| !matches!(writer, Writer::Write(_));
            let first = *self.settled.entry((at, count)).or_insert(writer);
            if first != writer && !(is_zero(first) && is_zero(writer)) {
                return Err(format!(
                    "byte {at} is that of {}, and was that of {} with no write between",
                    self.name(Some(writer)),
                    self.name(Some(first))
                ));
            }
        }
        Ok(())
    }

    pub(super) fn name(&self, writer: Option<Writer>) -> String {
        match writer {
            None | Some(Writer::Nobody) => "nobody".into(),
            Some(Writer::Size(step)) => format!("a change of the length in step {step}"),
            Some(Writer::Write(place)) => {
                let done = &self.accesses[place];
                format!("write {} (task {} of h{})", done.access.write, done.number, done.host)
            }
        }
    }

    /// Judges how much a read says that there was.
    fn judge_len(&self, read: &Done, refused: u64) -> Result<(), Objection> {
        let sizes = self.together.iter().filter_map(|(number, step)| match step.what {
            What::Size(size) => Some((*number, size)),
            _ => None,
        });
        let sizes: Vec<(usize, u64)> = sizes.collect();
        let is_known = |writer, at| self.precedes(writer, read) && self.is_sure(writer, at, refused);
        let before = sizes.iter().rfind(|(step, _)| is_known(Writer::Size(*step), 0));
        let (mut least, mut most) = before.map_or((0, 0), |(_, size)| (*size, *size));
        let later = sizes.iter().filter(|(step, _)| before.is_none_or(|(other, _)| step > other));
        for (_, size) in later {
            (least, most) = (least.min(*size), most.max(*size));
        }
        let unsettled = sizes.last() != before;
        for (place, done) in self.accesses.iter().enumerate() {
            let Some((_, end)) = done.access.pieces.hull().filter(|_| done.access.kind == Kind::Write) else {
                continue;
            };
            let writer = Writer::Write(place);
            let is_cut = before.is_some_and(|(step, _)| self.follows(Writer::Size(*step), writer));
            if !is_cut {
                most = most.max(end);
            }
            let is_there = before.is_none_or(|(step, _)| self.follows(writer, Writer::Size(*step)));
            if is_there && !unsettled && is_known(writer, end.saturating_sub(1)) {
                least = least.max(end);
            }
        }
        let [least, most] = [least, most].map(|end| read.access.pieces.inside(end));
        let found = read.found.len() as u64;
        if found < least || found > most {
            return Err(format!("it says that there were {found} B, and there are {least} to {most}"));
        }
        Ok(())
    }

    /// Judges the file at the end.
    pub(super) fn finish(&self, server: &Server) -> Result<(), Objection> {
        let bytes = server.bytes();
        let whole = [Piece { offset: 0, len: bytes.len() as u64 }];
        // Without the deaths of hosts, what a last synchronisation has not told of may wait somewhere.
        let refused = if self.died.is_empty() { u64::MAX } else { server.refused() };
        let is_there = |writer, at| self.is_sure(writer, at, refused) && !self.may_wait(writer);
        self.runs(&whole, bytes, |at, number| {
            let writers = self.writers(at);
            let candidates = self.found(at, number, &writers)?;
            let overwritten = |candidate: &Writer| {
                let follows = |&other: &Writer| is_there(other, at) && self.follows(other, *candidate);
                writers.iter().copied().find(follows)
            };
            if candidates.iter().any(|candidate| overwritten(candidate).is_none()) {
                return Ok(());
            }
            let by = candidates.first().and_then(overwritten);
            let (found, by) = (self.name(candidates.first().copied()), self.name(by));
            Err(format!("at the end byte {at} is that of {found}, which {by} has overwritten"))
        })?;
        // Behind the end nothing must be missing.
        for (place, done) in self.accesses.iter().enumerate() {
            let writer = Writer::Write(place);
            let end = done.access.pieces.hull().map_or(0, |(_, end)| end);
            let is_missing = done.access.kind == Kind::Write
                && end > bytes.len() as u64
                && is_there(writer, end - 1)
                && !self.together.iter().any(|(number, step)| {
                    matches!(step.what, What::Size(_)) && !self.follows(writer, Writer::Size(*number))
                });
            if is_missing {
                let (name, len) = (self.name(Some(writer)), bytes.len());
                return Err(format!("at the end the file has {len} B, and {name} has written up to {end}"));
            }
        }
        Ok(())
    }
}
