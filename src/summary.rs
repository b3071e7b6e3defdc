//! The summary at the end of a job (`NMAD_STATS`): the traffic of each rail of this process, the accuracy
//! of its predictions, the number of its failures and returns, and the progress while the program computed.

use crate::info::RailInfo;
use crate::options::Stats;
use crate::session::Session;
use nmad_engine::{Accuracy, RailCounters, Taught, Thresholds};
use nmad_progress::Helped;
use std::fmt::Write;
use std::path::Path;

/// Most peers for which corrected profiles are printed.
const LEARNT_MAX: usize = 4;

/// Prints a line for each used rail, or writes a file of counters to a folder, for a program that adds them
/// up; as the user wants.
pub(crate) fn tell(session: &Session) {
    match &session.options.stats {
        Stats::Off => return,
        Stats::StandardError => {}
        Stats::Folder(folder) => return write(session, folder),
    }
    if let Some(line) = helped(&session.helped()) {
        nmad_words::tell_user(format_args!("nmad: rank {}: {line}", session.rank()));
    }
    for (index, rail) in session.rails().iter().enumerate() {
        let accuracies = (0..session.size()).filter_map(|rank| session.accuracy(index as u8, rank));
        if let Some(line) = line(rail, worst(accuracies)) {
            nmad_words::tell_user(format_args!("nmad: rank {}: {line}", session.rank()));
        }
        let others = (0..session.size()).filter_map(|rank| Some((rank, session.learnt(index as u8, rank)?)));
        for (rank, taught) in others.take(LEARNT_MAX) {
            if let Some(text) = learnt(&taught) {
                let (me, name) = (session.rank(), &rail.name);
                nmad_words::tell_user(format_args!("nmad: rank {me}: {name} to rank {rank}: {text}"));
            }
        }
    }
}

/// Checks that files can be written to a folder, before the run.
///
/// # Errors
/// The reason why not.
pub(crate) fn check(folder: &Path) -> Result<(), String> {
    let path = folder.join(format!(".{}", file_name(0)));
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    let _ = made.is_ok().then(|| std::fs::remove_file(&path));
    made.map(drop).map_err(|error| format!("cannot write files into {}: {error}", folder.display()))
}

/// Returns the name of this process's file.
fn file_name(rank: u32) -> String {
    format!("{rank}-{}", std::process::id())
}

fn write(session: &Session, folder: &Path) {
    let path = folder.join(file_name(session.rank()));
    let stall = session.node().with(|engine| engine.inspect().longest_stall());
    let text = counts(stall.as_ns() / 1000, &session.rails());
    if let Err(error) = nmad_words::file::write(&path, text) {
        let path = path.display();
        nmad_words::tell_user(format_args!(
            "nmad: NMAD_STATS: cannot write {path}: {error}; is the folder there, on each host?"
        ));
    }
}

/// Formats the longest stall, and a line for each rail to others: its name, then names and values.
fn counts(stall_us: u64, rails: &[RailInfo]) -> String {
    let mut text = format!("stall_us {stall_us}\n");
    for rail in rails.iter().filter(|rail| !rail.address.is_empty()) {
        let RailCounters { packet_bytes, chunk_bytes, again_bytes, duplicates, left, returned, .. } =
            rail.counters;
        let (name, bytes) = (&rail.name, packet_bytes + chunk_bytes);
        writeln!(
            text,
            "rail {name} bytes {bytes} again_bytes {again_bytes} duplicates {duplicates} left {left} \
             returned {returned}"
        )
        .expect("strings grow");
    }
    text
}

/// Formats the progress while the program computed; `None` without any.
fn helped(helped: &Helped) -> Option<String> {
    let Helped { setting, moved, given_ns, suspensions, .. } = helped;
    let given_ms = *given_ns as f64 / 1e6;
    let stopped = match suspensions {
        0 => String::new(),
        count => format!("; stopped {count} times since it cost more than it gave"),
    };
    let what = format!("progress {setting}: {moved} looks moved messages while the program computed");
    (*moved > 0).then(|| format!("{what}, for {given_ms:.1} ms{stopped}"))
}

/// Returns the worst accuracy of all peers.
fn worst(accuracies: impl Iterator<Item = Accuracy>) -> Option<Accuracy> {
    accuracies.filter(|accuracy| accuracy.count > 0).max_by(|a, b| a.median.total_cmp(&b.median))
}

/// Formats a profile that transfers have corrected: its origin, the time since which it is in use, and its
/// thresholds.
fn learnt(Taught { profile, since, count }: &Taught) -> Option<String> {
    let Thresholds { in_place_min, rendezvous_min, push_min, aggregate_max, .. } = *profile.thresholds()?;
    let from = |len: u64| if len == u64::MAX { "never".into() } else { format!("from {}", size(len)) };
    let shared =
        if aggregate_max == u64::MAX { "always".into() } else { format!("up to {}", size(aggregate_max)) };
    Some(format!(
        "{}, learnt from {count} transfers, in force since {:.2} s: {}/s, data in place {}, packets shared \
         {shared}, large messages {}",
        profile.provenance().how,
        since.as_ns() as f64 / 1e9,
        size(profile.body().bandwidth()),
        from(in_place_min),
        from(rendezvous_min.min(push_min)),
    ))
}

/// Formats the traffic of a rail; `None` without any.
fn line(rail: &RailInfo, accuracy: Option<Accuracy>) -> Option<String> {
    let RailCounters { packets, packet_bytes, entries, chunks, chunk_bytes, resent, replayed, .. } =
        rail.counters;
    let RailCounters { packets_in, chunks_in, duplicates, left, returned, .. } = rail.counters;
    let RailCounters { accesses, access_bytes, .. } = rail.counters;
    if packets + chunks + packets_in + chunks_in + accesses == 0 {
        return None;
    }
    let each = entries as f64 / packets.max(1) as f64;
    let mut text = format!(
        "{}: sent {packets} packets ({} in all, {each:.1} messages and control frames each) and {chunks} \
         chunks of large messages ({}); received {packets_in} packets and {chunks_in} chunks",
        rail.name,
        size(packet_bytes),
        size(chunk_bytes)
    );
    if accesses > 0 {
        write!(text, "; {accesses} accesses to memory of peers ({})", size(access_bytes))
            .expect("strings grow");
    }
    let rare = [
        (resent, "sent again"),
        (replayed, "taken over"),
        (duplicates, "arrived twice"),
        (rail.dropped, "dropped"),
        (left, "times left"),
        (returned, "times used again"),
    ];
    for (count, what) in rare {
        if count > 0 {
            write!(text, "; {count} {what}").expect("strings grow");
        }
    }
    if let Some(cipher) = rail.cipher {
        write!(text, "; encrypted with {cipher}").expect("strings grow");
    }
    if let Some(Accuracy { median, p95, .. }) = accuracy {
        let (median, p95) = (median * 100.0, p95 * 100.0);
        write!(
            text,
            "; times differ from predicted ones by {median:.0} % (median), {p95:.0} % (95th percentile)"
        )
        .expect("strings grow");
    }
    Some(text)
}

/// Formats bytes with the largest unit that leaves a number above one.
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = if bytes < 1024 { 0 } else { (bytes.ilog2() / 10).min(4) };
    match power {
        0 => format!("{bytes} B"),
        _ => format!("{:.1} {}", bytes as f64 / (1_u64 << (10 * power)) as f64, units[power as usize]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_engine::Limits;

    fn rail(counters: RailCounters) -> RailInfo {
        let (name, address) = ("tcp/eth1".into(), String::new());
        RailInfo { name, address, limits: Limits::default(), peers: 1, counters, dropped: 0, cipher: None }
    }

    #[test]
    fn a_rail_that_was_used_has_a_line() {
        assert_eq!(line(&rail(RailCounters::default()), None), None);
        let counters = RailCounters {
            packets: 10,
            packet_bytes: 2048,
            entries: 25,
            chunks: 1,
            chunk_bytes: 3 << 20,
            resent: 4,
            accesses: 7,
            access_bytes: 5 << 20,
            ..RailCounters::default()
        };
        let counts = counts(12_000, &[RailInfo { address: "10.0.0.1:1".into(), ..rail(counters) }]);
        assert!(counts.starts_with("stall_us 12000\nrail tcp/eth1 bytes 3147776 again_bytes 0 "), "{counts}");
        let accuracy = Accuracy { count: 3, median: 0.05, p95: 0.2, load: 1.0 };
        let line = line(&rail(counters), Some(accuracy)).expect("it was used");
        for part in [
            "tcp/eth1: sent 10 packets (2.0 KiB",
            "2.5 messages",
            "(3.0 MiB)",
            "7 accesses to memory of peers (5.0 MiB)",
            "4 sent again",
            "5 % (median)",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(!line.contains("taken over"));
    }

    #[test]
    fn progress_while_the_program_computed_has_a_line() {
        assert_eq!(helped(&Helped::default()), None);
        let found = Helped { moved: 7, given_ns: 2_500_000, suspensions: 2, ..Helped::default() };
        let line = helped(&found).expect("something was moved");
        for part in ["progress auto: 7 looks", "for 2.5 ms", "stopped 2 times"] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!([0, 1023, 1024, 5 << 30].map(size), ["0 B", "1023 B", "1.0 KiB", "5.0 GiB"]);
    }
}
