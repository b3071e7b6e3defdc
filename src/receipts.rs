//! Receipts as text: the course of each message and the reasons (`NMAD_EXPLAIN`).

use crate::error::SessionError;
use crate::latest::Latest;
use crate::written;
use nmad_engine::{RailId, Receipt};
use nmad_progress::{Node, OnReceipt, Purpose};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{LineWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Writes a line for each message that this rank sends: to standard error, or to `file`.RANK.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(node: &Node, (job, rank): (&str, u32), file: Option<&Path>) -> Result<(), SessionError> {
    let names: Vec<String> = node.with_rails(|rails| rails.iter().map(|rail| rail.name().into()).collect());
    let mut out: Box<dyn Write + Send> = match file {
        None => Box::new(LineWriter::new(std::io::stderr())),
        Some(file) => {
            let path = written::name(file, job, rank);
            let wrong = |error| SessionError::Setting {
                setting: nmad_words::setting::EXPLAIN.name.into(),
                why: format!("cannot write {}: {error}", path.display()),
            };
            Box::new(LineWriter::new(
                written::create(nmad_words::setting::EXPLAIN.name, &path, rank).map_err(wrong)?,
            ))
        }
    };
    // Ciphers that were known before, for receipts that end while another thread works with a rail.
    let mut known = HashMap::new();
    let tell: OnReceipt = Box::new(move |receipt, cipher| {
        for &(rail, _) in &receipt.carried {
            known.extend(cipher(rail).map(|cipher| ((receipt.envelope.peer, rail), cipher)));
        }
        let cipher = |rail| known.get(&(receipt.envelope.peer, rail)).copied();
        // A failure to explain a message must not affect it.
        let _ = writeln!(out, "nmad: rank {rank}: {}", in_words(receipt, &names, &cipher));
    });
    node.on_receipt(Purpose::Told, Some(tell));
    Ok(())
}

/// Receipts for the program to fetch.
#[derive(Debug, Clone)]
pub(crate) struct Kept(Arc<Mutex<Latest<Receipt>>>);

/// Most receipts; the oldest of more are dropped.
const KEPT: usize = 4_096;

impl Default for Kept {
    fn default() -> Kept {
        Kept(Arc::new(Mutex::new(Latest::of(KEPT))))
    }
}

impl Kept {
    /// Removes and returns the oldest receipt.
    pub(crate) fn next(&self) -> Option<Receipt> {
        self.lock().pop()
    }

    fn lock(&self) -> MutexGuard<'_, Latest<Receipt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts to keep receipts in `kept`; `None` stops, and drops those not fetched.
pub(crate) fn keep(node: &Node, kept: Option<Kept>) {
    if let Some(kept) = &kept {
        kept.lock().clear();
    }
    let tell =
        kept.map(|kept| -> OnReceipt { Box::new(move |receipt, _| kept.lock().push(receipt.clone())) });
    node.on_receipt(Purpose::Told, tell);
}

/// Formats a receipt as one line; `cipher` returns the cipher of the link over a rail.
fn in_words(receipt: &Receipt, names: &[String], cipher: &dyn Fn(RailId) -> Option<&'static str>) -> String {
    let Receipt { envelope, protocol, eager_max, candidates, carried, predicted_ns, actual_ns, .. } = receipt;
    let Receipt { blocks, blocks_bytes, .. } = receipt;
    let name = |rail: RailId| names.get(rail.index()).map_or("?", |name| name);
    let us = |ns: u64| ns as f64 / 1e3;
    let (len, to, tag) = (envelope.len, envelope.peer.0, envelope.tag.0);
    let protocol = protocol.name();
    let mut text = format!("{len} B to rank {to} (tag {tag:#x}), {protocol} (eager up to {eager_max} B)");
    if *blocks > 0 {
        let _ = write!(text, ", {blocks_bytes} B in {blocks} blocks with the request");
    }
    for (index, &(rail, bytes)) in carried.iter().enumerate() {
        let _ = write!(text, "{} {} {bytes} B", if index == 0 { ":" } else { " +" }, name(rail));
        if let Some(cipher) = cipher(rail) {
            let _ = write!(text, " ({cipher})");
        }
    }
    let _ = write!(text, "; predicted {:.1} us, took {:.1} us", us(*predicted_ns), us(*actual_ns));
    for (index, candidate) in candidates.iter().enumerate() {
        let _ = write!(
            text,
            "{} {} {:.1} us",
            if index == 0 { "; alone:" } else { "," },
            name(candidate.rail),
            us(candidate.alone_ns)
        );
        if candidate.busy_ns > 0 {
            let _ = write!(text, " (busy {:.1} us)", us(candidate.busy_ns));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_engine::{Candidate, Context, Envelope, PeerId, Protocol, RequestId, Tag};

    #[test]
    fn a_receipt_names_rails_bytes_and_times() {
        let envelope = Envelope { peer: PeerId(1), context: Context(0), tag: Tag(5), len: 300, seq: 0 };
        let candidate = |rail, busy_ns, alone_ns| Candidate { rail: RailId(rail), busy_ns, alone_ns };
        let receipt = Receipt {
            request: Some(RequestId(0)),
            envelope,
            protocol: Protocol::Rendezvous,
            eager_max: 99,
            candidates: vec![candidate(0, 0, 4_000), candidate(1, 500, 9_000)],
            began: nmad_engine::Instant::default(),
            carried: vec![(RailId(0), 200), (RailId(1), 80)],
            blocks: 2,
            blocks_bytes: 20,
            predicted_ns: 2_500,
            actual_ns: 2_700,
        };
        assert_eq!(
            in_words(&receipt, &["tcp/r0".into(), "tcp/r1".into()], &|rail| {
                (rail == RailId(1)).then_some("AES-256-GCM")
            }),
            "300 B to rank 1 (tag 0x5), rendezvous (eager up to 99 B), 20 B in 2 blocks with the \
             request: tcp/r0 200 B + tcp/r1 80 B (AES-256-GCM); predicted 2.5 us, took 2.7 us; alone: \
             tcp/r0 4.0 us, tcp/r1 9.0 us (busy 0.5 us)"
        );
    }
}
