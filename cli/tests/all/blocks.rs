//! A derived datatype of small and large blocks on the wire: the small ones in the packet with the request to
//! send, the large ones in place behind it (P1 section 5.3).

use crate::command::{Ended, run};
use crate::install::{self, source};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Pairs of blocks of `mixed.c`, and the bytes of all small and of all large ones.
const PAIRS: u64 = 3;
const SMALL: u64 = PAIRS * 64;
const LARGE: u64 = PAIRS * (256 << 10);
/// Messages that it sends.
const ROUNDS: usize = 3;

/// Requests to send with blocks that rank 0 gave its rails, and the bytes of chunks by rail.
fn posted(folder: &Path) -> (Vec<String>, BTreeMap<String, u64>) {
    let text = std::fs::read_to_string(folder.join("trace.0")).expect("the trace of rank 0");
    let (mut requests, mut chunks) = (Vec::new(), BTreeMap::new());
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let rail = || line["rail"].as_str().expect("a name").to_string();
        match line["what"].as_str() {
            Some("PostPacket") if line["text"].as_str().is_some_and(|text| text.contains("rts")) => {
                requests.push(format!("{}: {}", rail(), line["text"].as_str().expect("text")));
            }
            Some("PostChunk") => {
                *chunks.entry(rail()).or_default() += line["len"].as_u64().expect("bytes");
            }
            _ => {}
        }
    }
    requests.retain(|text| text.contains("blocks"));
    (requests, chunks)
}

/// Runs the program on two hosts with these rails, or with none on this one; `None`: no testbed can be made.
fn job(rails: Option<&str>, (folder, program): &(TempDir, PathBuf)) -> Option<Ended> {
    if rails.is_some()
        && let Err(refused) = nmad_testbed::available()
    {
        eprintln!("skipped: {refused}");
        return None;
    }
    let mpiexec = install::prefix().join("bin/mpiexec");
    let mut command = Command::new(install::prefix().join("bin/nmad"));
    match rails {
        Some(rails) => {
            command.args(["testbed", "--hosts", "2", "--rails", rails, "--"]).arg(&mpiexec);
        }
        None => command = Command::new(&mpiexec),
    }
    command.args(["--timeout", "90", "--env", "NMAD_STATS=1", "-n", "2"]).arg(program);
    command.env("NMAD_SAMPLE", "off").env("NMAD_TRACE", folder.path()).env("NMAD_EXPLAIN", "on");
    // Rails share large messages out by a rule, not by what this machine's other work makes of their times.
    command.env("NMAD_STRATEGY", "iso_split");
    // No profile of an earlier job says that blocks of 64 B cost less in place.
    command.env("XDG_CACHE_HOME", folder.path());
    Some(run(&mut command))
}

#[test]
fn small_blocks_leave_with_the_request_and_large_ones_follow_over_every_rail() {
    for rails in [Some("4gbit"), Some("4gbit,1gbit"), None] {
        let program = install::compiled("mixed", &[source("cli/tests/all/blocks/mixed.c")]);
        let Some(ended) = job(rails, &program) else { return };
        assert_eq!((ended.code, &*ended.out), (Some(0), "all right\n"), "{rails:?}: {}", ended.err);
        let (requests, chunks) = posted(program.0.path());
        println!("{rails:?}: {requests:#?} {chunks:?}");
        let with = format!("rts {} B", SMALL + LARGE);
        let blocks = format!("with {PAIRS} blocks of {SMALL} B");
        // Beside other work the receiver may be late: later messages then go as eager parts.
        assert!((1..=ROUNDS).contains(&requests.len()), "{rails:?}: {requests:?}");
        assert!(requests.iter().all(|text| text.contains(&with) && text.contains(&blocks)), "{requests:?}");
        let sum: u64 = chunks.values().sum();
        assert_eq!(sum, requests.len() as u64 * LARGE, "{rails:?}: {chunks:?}");
        assert_eq!(chunks.len(), rails.map_or(1, |rails| rails.split(',').count()), "{chunks:?}");
        let told = format!("{SMALL} B in {PAIRS} blocks with the request");
        assert_eq!(ended.err.matches(&told).count(), requests.len(), "{rails:?}: {}", ended.err);
    }
}
