//! A trace for Paraver: what happened (`.prv`), names and colours (`.pcf`), names of rows (`.row`).
//!
//! The formats are those of "Paraver: parallel program visualization and analysis tool, tracefile
//! description" (BSC tools). A rank is a task on a node of its own; each thread that called MPI is a thread,
//! and the last thread of each task holds what its rails did. Times are nanoseconds from the beginning.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use super::messages::Message;
use super::records::{Records, What, span_ns};
use super::states::{State, threads};

/// Type of the event whose value is the function of MPI that runs; 0 ends it.
const CALL: u32 = 50_000_001;
/// Types of the events whose value is a number of bytes that a rail was given: one for each rail.
const RAIL: u32 = 60_000_000;
/// Type of the event, at the sending of a message, whose value is its protocol.
const PROTOCOL: u32 = 61_000_000;

/// States as Paraver's own tracers number them.
fn number(state: State) -> u32 {
    match state {
        State::Computing => 1,
        State::Sending => 4,
        State::Beginning => 10,
        State::Waiting => 3,
        State::Testing => 6,
        State::Synchronizing => 13,
        State::OneSided => 17,
    }
}

/// A job as the three files need it.
struct Job<'a> {
    all: &'a [Records],
    messages: &'a [Message],
    origin_ns: u64,
    end_ns: u64,
    /// Names of functions, rails and protocols; their values begin with 1.
    calls: Vec<String>,
    rails: Vec<String>,
    protocols: Vec<String>,
}

/// Writes STEM.prv, STEM.pcf and STEM.row.
pub(super) fn write(all: &[Records], messages: &[Message], stem: &Path) -> Result<(), String> {
    let job = Job::new(all, messages);
    let write = |ending: &str| {
        let path = stem.with_added_extension(ending);
        let written = nmad_words::file::create(&path).and_then(|file| {
            let mut out = io::BufWriter::new(file);
            match ending {
                "prv" => job.prv(&mut out)?,
                "pcf" => job.pcf(&mut out)?,
                _ => job.row(&mut out)?,
            }
            out.flush()
        });
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    ["prv", "pcf", "row"].into_iter().try_for_each(write)
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names
}

fn value(names: &[String], name: &str) -> usize {
    names.binary_search_by(|other| other.as_str().cmp(name)).map_or(0, |place| place + 1)
}

impl<'a> Job<'a> {
    fn new(all: &'a [Records], messages: &'a [Message]) -> Job<'a> {
        let (origin_ns, end_ns) = span_ns(all).unwrap_or_default();
        let arrived = messages.iter().filter_map(|message| message.arrived_ns);
        Job {
            all,
            messages,
            origin_ns,
            end_ns: arrived.fold(end_ns, u64::max),
            calls: sorted(all.iter().flat_map(|rank| rank.calls.iter().map(|call| call.call.clone()))),
            rails: sorted(all.iter().flat_map(Records::rails)),
            protocols: sorted(messages.iter().map(|message| message.protocol.clone())),
        }
    }

    fn at(&self, at_ns: u64) -> u64 {
        at_ns.clamp(self.origin_ns, self.end_ns) - self.origin_ns
    }

    /// Threads of each task: those that called MPI, or one, and one for the rails.
    fn threads(&self, rank: &Records) -> usize {
        threads(rank).len().max(1) + 1
    }

    fn prv(&self, out: &mut impl Write) -> io::Result<()> {
        let count = self.all.len();
        let tasks = self.all.iter().enumerate();
        let tasks: Vec<String> =
            tasks.map(|(place, rank)| format!("{}:{}", self.threads(rank), place + 1)).collect();
        // The date is that of no run: a trace of the same records is the same file.
        writeln!(
            out,
            "#Paraver (01/01/2000 at 00:00):{}_ns:{count}({}):1:{count}({})",
            self.end_ns - self.origin_ns,
            vec!["1"; count].join(","),
            tasks.join(",")
        )?;
        // Paraver wants the records in the order of time.
        let mut lines: Vec<(u64, String)> = Vec::new();
        for (place, rank) in self.all.iter().enumerate() {
            self.states(place + 1, rank, &mut lines);
            self.on_rails(place + 1, rank, &mut lines);
        }
        self.messages.iter().for_each(|message| self.message(message, &mut lines));
        lines.sort();
        lines.iter().try_for_each(|(_, line)| writeln!(out, "{line}"))
    }

    /// `1:cpu:appl:task:thread:begin:end:state`, and events where calls begin and end.
    fn states(&self, task: usize, rank: &Records, lines: &mut Vec<(u64, String)>) {
        for (place, (_, list)) in threads(rank).into_iter().enumerate() {
            let who = format!("{task}:1:{task}:{}", place + 1);
            for stretch in list {
                let (start, end) = (self.at(stretch.start_ns), self.at(stretch.end_ns));
                lines.push((start, format!("1:{who}:{start}:{end}:{}", number(stretch.state))));
                if let Some(call) = stretch.call {
                    let value = value(&self.calls, &call.call);
                    lines.push((start, format!("2:{who}:{start}:{CALL}:{value}")));
                    lines.push((end, format!("2:{who}:{end}:{CALL}:0")));
                }
            }
        }
    }

    /// `2:cpu:appl:task:thread:time:type:value` for each packet and chunk.
    fn on_rails(&self, task: usize, rank: &Records, lines: &mut Vec<(u64, String)>) {
        let thread = self.threads(rank);
        for record in &rank.list {
            if matches!(record.what, What::PostPacket | What::PostChunk) {
                let (at, kind) = (self.at(record.at_ns), RAIL as usize + value(&self.rails, &record.rail));
                lines.push((at, format!("2:{task}:1:{task}:{thread}:{at}:{kind}:{}", record.len)));
            }
        }
    }

    /// `3:` sender, logical and physical send, receiver, logical and physical receive, bytes, tag.
    fn message(&self, message: &Message, lines: &mut Vec<(u64, String)>) {
        let task = |rank: u32| self.all.iter().position(|each| each.rank == rank).map(|place| place + 1);
        let Some(from) = task(message.from) else { return };
        let sent = self.at(message.sent_ns);
        let protocol = value(&self.protocols, &message.protocol);
        lines.push((sent, format!("2:{from}:1:{from}:1:{sent}:{PROTOCOL}:{protocol}")));
        let (Some(to), Some(arrived)) = (task(message.to), message.arrived_ns) else { return };
        let arrived = self.at(arrived).max(sent);
        let (len, tag) = (message.len, message.tag);
        let line = format!("3:{from}:1:{from}:1:{sent}:{sent}:{to}:1:{to}:1:{arrived}:{arrived}:{len}:{tag}");
        lines.push((sent, line));
    }

    fn pcf(&self, out: &mut impl Write) -> io::Result<()> {
        let mut text = String::from(
            "DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\n\
             LOOK_BACK           100\nSPEED               1\nFLAG_ICONS          ENABLED\n\
             NUM_OF_STATE_COLORS 1000\nYMAX_SCALE          37\n\nDEFAULT_SEMANTIC\n\n\
             THREAD_FUNC         State As Is\n\nSTATES\n0    Idle\n",
        );
        let mut states = State::ALL.map(|state| (number(state), state));
        states.sort_by_key(|(number, _)| *number);
        for (number, state) in states {
            let _ = writeln!(text, "{number}    {}", state.name());
        }
        text += "\nSTATES_COLOR\n0    {117,195,255}\n";
        for (number, state) in states {
            let [red, green, blue] = state.colour();
            let _ = writeln!(text, "{number}    {{{red},{green},{blue}}}");
        }
        values(&mut text, CALL, "function of MPI", &self.calls);
        values(&mut text, PROTOCOL, "protocol of a message", &self.protocols);
        for (place, rail) in self.rails.iter().enumerate() {
            let _ = write!(text, "\nEVENT_TYPE\n0    {}    bytes to {rail}\n\n", RAIL as usize + place + 1);
        }
        out.write_all(text.as_bytes())
    }

    fn row(&self, out: &mut impl Write) -> io::Result<()> {
        let mut levels: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for rank in self.all {
            let name = format!("rank {}", rank.rank);
            levels.entry("1 NODE").or_default().push(rank.name.clone());
            levels.entry("2 TASK").or_default().push(name.clone());
            let threads = self.threads(rank);
            let numbered = (1..threads).map(|thread| match (threads, thread) {
                (2, _) => name.clone(),
                _ => format!("{name}, thread {thread}"),
            });
            let named = levels.entry("3 THREAD").or_default();
            named.extend(numbered);
            named.push(format!("{name}, rails"));
        }
        for (level, names) in levels {
            writeln!(out, "LEVEL {} SIZE {}\n{}\n", &level[2..], names.len(), names.join("\n"))?;
        }
        Ok(())
    }
}

fn values(text: &mut String, kind: u32, name: &str, names: &[String]) {
    let _ = write!(text, "\nEVENT_TYPE\n0    {kind}    {name}\nVALUES\n0    none\n");
    for (place, name) in names.iter().enumerate() {
        let _ = writeln!(text, "{}    {name}", place + 1);
    }
    text.push('\n');
}
