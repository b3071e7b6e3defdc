//! `nmad trace --json`: the output must obey the rules of trace_processor, which reads traces for Perfetto.
//! It drops slices that overlap on a track, arrows that begin or end outside a slice, and counters without a
//! number, and shows threads without a name as numbers.

use crate::command::{nmad, run};
use crate::trace::trace;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// A process and a thread of it.
type Track = (u64, u64);

fn field(event: &Value, name: &str) -> Result<u64, String> {
    event[name].as_u64().filter(|number| *number > 0).ok_or_else(|| format!("no number {name}: {event}"))
}

fn text<'a>(event: &'a Value, name: &str) -> Result<&'a str, String> {
    event[name].as_str().filter(|text| !text.is_empty()).ok_or_else(|| format!("no text {name}: {event}"))
}

/// A time in nanoseconds; the format has microseconds.
fn time(event: &Value, name: &str) -> Result<u64, String> {
    let us =
        event[name].as_f64().filter(|us| *us >= 0.0).ok_or_else(|| format!("no time {name}: {event}"))?;
    let ns = us * 1e3;
    // A double has 53 bits.
    if (ns - ns.round()).abs() > 0.01 {
        Err(format!("a part of a nanosecond: {event}"))
    } else {
        Ok(ns.round() as u64)
    }
}

/// A reader of the format that checks its rules.
#[derive(Default)]
struct Reader {
    /// Ends of the slices that are open, the innermost last.
    open: BTreeMap<Track, Vec<u64>>,
    /// The process of each thread.
    owners: BTreeMap<u64, u64>,
    /// Threads and processes (thread 0) that have a name.
    names: BTreeMap<Track, String>,
    /// Arrows by their number: the time at which each begins, and whether it has ended.
    arrows: BTreeMap<u64, (u64, bool)>,
    counts: BTreeMap<String, usize>,
}

impl Reader {
    /// Reads all events as trace_processor does: sorted by time, and events of equal time in their order.
    fn read(events: &[Value]) -> Result<Reader, String> {
        let mut reader = Reader::default();
        let (names, rest): (Vec<&Value>, Vec<&Value>) = events.iter().partition(|event| event["ph"] == "M");
        names.into_iter().try_for_each(|event| reader.name(event))?;
        let mut timed = Vec::new();
        for event in rest {
            timed.push((time(event, "ts")?, event));
        }
        timed.sort_by_key(|(at, _)| *at);
        timed.into_iter().try_for_each(|(at, event)| reader.event(at, event))?;
        match reader.arrows.iter().find(|(_, (_, is_over))| !is_over) {
            Some((id, _)) => Err(format!("arrow {id} does not end")),
            None => Ok(reader),
        }
    }

    fn name(&mut self, event: &Value) -> Result<(), String> {
        let process = field(event, "pid")?;
        let thread = match text(event, "name")? {
            "process_name" => 0,
            "thread_name" => field(event, "tid")?,
            other => return Err(format!("{other} names nothing")),
        };
        let name = text(&event["args"], "name")?.to_string();
        match self.names.insert((process, thread), name) {
            Some(before) => Err(format!("a second name beside {before}: {event}")),
            None => Ok(()),
        }
    }

    fn event(&mut self, at: u64, event: &Value) -> Result<(), String> {
        let (kind, name, process) = (text(event, "ph")?, text(event, "name")?, field(event, "pid")?);
        *self.counts.entry(kind.to_string()).or_default() += 1;
        if !self.names.contains_key(&(process, 0)) {
            return Err(format!("its process has no name: {event}"));
        }
        if kind == "C" {
            let values = event["args"].as_object().filter(|values| !values.is_empty());
            let is_right =
                |values: &serde_json::Map<String, Value>| values.values().all(|value| value.is_u64());
            return if values.is_some_and(is_right) {
                Ok(())
            } else {
                Err(format!("no counter {name}: {event}"))
            };
        }
        let track = (process, field(event, "tid")?);
        if *self.owners.entry(track.1).or_insert(process) != process || !self.names.contains_key(&track) {
            return Err(format!("its thread has no name, or two processes: {event}"));
        }
        let open = self.open.entry(track).or_default();
        while open.last().is_some_and(|end| *end <= at) {
            open.pop();
        }
        match kind {
            "X" => {
                let end = at + time(event, "dur")?;
                if open.last().is_some_and(|around| *around < end) {
                    return Err(format!("overlaps the slice before it: {event}"));
                }
                open.push(end);
                Ok(())
            }
            "i" if ["t", "p", "g"].contains(&text(event, "s")?) => Ok(()),
            "s" | "f" => {
                let id = event["id"].as_u64().ok_or_else(|| format!("an arrow without a number: {event}"))?;
                text(event, "cat")?;
                if open.is_empty() {
                    return Err(format!("an arrow outside a slice: {event}"));
                }
                let known = self.arrows.get(&id).copied();
                let is_end = kind == "f";
                match known {
                    None if !is_end => self.arrows.insert(id, (at, false)),
                    Some((began, false)) if is_end && began <= at && event["bp"] == "e" => {
                        self.arrows.insert(id, (began, true))
                    }
                    _ => return Err(format!("an arrow without its other end: {event}")),
                };
                Ok(())
            }
            _ => Err(format!("no kind of event: {event}")),
        }
    }

    fn count(&self, kind: &str) -> usize {
        self.counts.get(kind).copied().unwrap_or(0)
    }
}

/// The events of an export.
fn events(out: &str) -> Vec<Value> {
    let mut all: Value = serde_json::from_str(out).expect("one object");
    assert!(all["displayTimeUnit"] == "ns" && all["otherData"].is_object());
    match all["traceEvents"].take() {
        Value::Array(events) => events,
        other => panic!("no list: {other}"),
    }
}

#[test]
fn perfetto_gets_calls_arrows_and_counters() {
    let (_folder, ended) = trace(&["--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let events = events(&ended.out);
    let read = Reader::read(&events).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((read.count("s"), read.count("f")), (2, 2));
    assert!(read.count("X") > 0 && read.count("C") > 0 && read.count("i") > 0, "{:?}", read.counts);
    let ends: Vec<_> = events.iter().filter(|event| event["ph"] == "f").collect();
    assert!(ends[1]["args"]["why"].as_str().expect("a reason").contains("above the eager limit"));
}

#[test]
fn perfetto_takes_the_trace_of_a_program_with_many_messages_under_way() {
    let program = env!("CARGO_BIN_EXE_nmad");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("t");
    let trace = file.to_str().expect("text");
    let bench = ["run", "-n", "2", "--timeout", "60", program, "bench"];
    for (words, rails) in [(&["rate", "--repeat", "1"][..], "shm"), (&["bandwidth", "--repeat", "1"], "lo")] {
        let mut command = Command::new(program);
        command.args(bench).args(words).env("NMAD_TRACE", trace).env("NMAD_RAILS", rails);
        let ended = run(&mut command);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let ended = nmad(&["trace", trace, "--json"]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let read = Reader::read(&events(&ended.out)).unwrap_or_else(|why| panic!("{words:?}: {why}"));
        assert!(read.count("X") > 100 && read.count("C") > 100, "{:?}", read.counts);
    }
}

#[test]
fn what_perfetto_drops_is_found() {
    let (_folder, ended) = trace(&["--json"]);
    let all = events(&ended.out);
    let place = |kind: &str| all.iter().position(|event| event["ph"] == kind).expect("there is one");
    let without = |kind: &str| {
        let mut events = all.clone();
        events.remove(place(kind));
        events
    };
    let with = |kind: &str, name: &str, value: Value| {
        let mut events = all.clone();
        events[place(kind)][name] = value;
        events
    };
    // The second slice of a track that begins within the first, and ends behind it.
    let mut overlapping = all.clone();
    let mut slice = all[place("X")].clone();
    slice["ts"] =
        (slice["ts"].as_f64().expect("a time") + slice["dur"].as_f64().expect("a time") / 2.0).into();
    overlapping.push(slice);
    for (events, why) in [
        (overlapping, "overlaps"),
        (without("M"), "has no name"),
        (without("f"), "does not end"),
        (with("f", "ts", 1e9.into()), "outside a slice"),
        (with("C", "args", Value::Null), "no counter"),
        (with("i", "tid", 7.into()), "its thread has no name"),
        (with("X", "dur", Value::Null), "no time dur"),
        (with("X", "ph", "B".into()), "no kind"),
    ] {
        let told = Reader::read(&events).err().unwrap_or_default();
        assert!(told.contains(why), "{why}: {told:?}");
    }
}
