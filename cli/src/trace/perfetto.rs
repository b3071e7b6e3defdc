//! A trace for Perfetto and Chrome's viewer, in the trace-event format: a rank is a process; its threads are
//! the threads that call MPI, and its rails; an arrow leads from the call that sends a message to the call
//! during which it arrives; a counter for each rail shows how many bytes it carries.
//!
//! Numbers of processes and threads are not those of ranks and rails: the viewers take 0 for the idle task of
//! the system, and the number of a thread has to be that of one process only. A slice of a track may contain
//! another one, but they may not overlap otherwise, and an arrow must begin and end within a slice: Perfetto
//! drops slices and arrows that break these rules.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::bars::{Bar, bars};
use super::links::Links;
use super::messages::Message;
use super::records::{Record, Records};
use super::states::threads;

/// Threads that call MPI come after the rails.
const CALLS: usize = 1_000;
/// Numbers of the threads of one rank.
const THREADS: usize = 100_000;

/// The process of a rank.
fn process_of(rank: u32) -> usize {
    rank as usize + 1
}

/// The number of a track of a process: of a rail, or from [`CALLS`] on of a thread.
fn thread_of(process: usize, track: usize) -> usize {
    process * THREADS + track
}

pub(super) fn events(all: &[Records], messages: &[Message]) -> Value {
    let links = Links::of(all);
    let mut events = Vec::new();
    let mut tracks = HashMap::new();
    for rank in all {
        let process = process_of(rank.rank);
        events.push(named("process_name", process, 0, &format!("rank {} ({})", rank.rank, rank.name)));
        let rails = bars(rank, &links);
        for (thread, rail) in rails.rails.iter().enumerate() {
            events.push(named("thread_name", process, thread, rail));
            let own: Vec<&Bar> = rails.of(thread).collect();
            events.extend(own.iter().map(|bar| carried(process, thread, bar)));
            events.extend(counters(process, rail, &own));
        }
        tracks.insert(rank.rank, calls(&mut events, rank));
        events.extend(rank.list.iter().map(|record| mark(process, &rails.rails, record)));
    }
    let arrows = messages.iter().enumerate().filter_map(|(number, message)| arrow(&tracks, number, message));
    events.extend(arrows.flatten());
    let first = all.first();
    let program = first.map_or("", |rank| &rank.command);
    let began = first.map_or("", |rank| &rank.date);
    json!({
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": { "program": program, "began": began },
    })
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn carried(process: usize, thread: usize, bar: &Bar) -> Value {
    json!({
        "ph": "X", "name": format!("{} B", bar.len), "pid": process, "tid": thread_of(process, thread),
        "ts": us(bar.start_ns), "dur": us(bar.end_ns - bar.start_ns),
    })
}

/// Returns the number of bytes that a rail carries, at each change.
fn counters(process: usize, rail: &str, bars: &[&Bar]) -> Vec<Value> {
    let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
    for bar in bars {
        *changes.entry(bar.start_ns).or_default() += bar.len as i64;
        *changes.entry(bar.end_ns).or_default() -= bar.len as i64;
    }
    let mut bytes = 0;
    let counter = |(at_ns, change): (u64, i64)| {
        bytes += change;
        let name = format!("bytes on {rail}");
        json!({ "ph": "C", "name": name, "pid": process, "ts": us(at_ns), "args": { "bytes": bytes } })
    };
    changes.into_iter().filter(|(_, change)| *change != 0).map(counter).collect()
}

/// The track of the first thread of a rank that calls MPI, with begin and end of its slices.
struct Track {
    thread: usize,
    slices: Vec<(u64, u64)>,
}

impl Track {
    /// Returns whether a slice of this track is open at this time.
    fn is_open(&self, at_ns: u64) -> bool {
        let began = self.slices.partition_point(|(start_ns, _)| *start_ns <= at_ns);
        began > 0 && at_ns < self.slices[began - 1].1
    }
}

/// Adds the calls of a rank to the events; returns the track of its first thread that calls MPI.
fn calls(events: &mut Vec<Value>, rank: &Records) -> Option<Track> {
    let process = process_of(rank.rank);
    let mut first = None;
    for (number, list) in threads(rank) {
        let track = CALLS + number as usize;
        events.push(named("thread_name", process, track, &format!("MPI, thread {number}")));
        let thread = thread_of(process, track);
        events.extend(list.iter().map(|stretch| {
            let name = stretch.call.map_or("computing", |call| &call.call);
            json!({
                "ph": "X", "name": name, "cat": stretch.state.name(), "pid": process, "tid": thread,
                "ts": us(stretch.start_ns), "dur": us(stretch.end_ns - stretch.start_ns),
            })
        }));
        let slices = || list.iter().map(|stretch| (stretch.start_ns, stretch.end_ns)).collect();
        first.get_or_insert_with(|| Track { thread, slices: slices() });
    }
    first
}

/// Returns an arrow from the call that sends a message to the call during which it arrives; `None` if there
/// is no such call on either side.
fn arrow(tracks: &HashMap<u32, Option<Track>>, number: usize, message: &Message) -> Option<[Value; 2]> {
    let arrived_ns = message.arrived_ns.filter(|arrived| *arrived >= message.sent_ns)?;
    let name = format!("{} B, {}", message.len, message.protocol);
    let end = |ph: &str, rank: u32, at_ns: u64| {
        let track = tracks.get(&rank)?.as_ref().filter(|track| track.is_open(at_ns))?;
        Some(json!({
            "ph": ph, "bp": "e", "id": number, "cat": "message", "name": name,
            "pid": process_of(rank), "tid": track.thread,
            "ts": us(at_ns), "args": { "tag": message.tag, "why": message.why() },
        }))
    };
    Some([end("s", message.from, message.sent_ns)?, end("f", message.to, arrived_ns)?])
}

fn mark(process: usize, rails: &[String], r: &Record) -> Value {
    let thread = rails.iter().position(|rail| *rail == r.rail).unwrap_or(0);
    json!({
        "ph": "i", "s": "t", "name": format!("{} #{}", r.what.name(), r.number),
        "pid": process, "tid": thread_of(process, thread),
        "ts": us(r.at_ns), "args": { "peer": r.peer, "len": r.len, "text": r.text },
    })
}

fn named(what: &str, process: usize, thread: usize, name: &str) -> Value {
    let thread = thread_of(process, thread);
    json!({ "ph": "M", "name": what, "pid": process, "tid": thread, "args": { "name": name } })
}
