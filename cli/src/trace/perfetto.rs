//! A trace for Perfetto and Chrome's viewer, in the trace-event format: a rank is a process; its threads are
//! the calls of MPI, and its rails; arrows lead from send to receive; a counter for each rail says how many
//! bytes it carries.
//!
//! Numbers of processes and threads are not those of ranks and rails: the viewers take 0 for the idle task of
//! the system, and the number of a thread has to be that of one process only.

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
        calls(&mut events, rank);
        events.extend(rank.list.iter().map(|record| mark(process, &rails.rails, record)));
    }
    for (number, message) in messages.iter().enumerate() {
        arrow(&mut events, all, number, message);
    }
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

/// Bytes that a rail carries, whenever they change.
fn counters(process: usize, rail: &str, bars: &[&Bar]) -> Vec<Value> {
    let starts = bars.iter().map(|bar| (bar.start_ns, bar.len as i64));
    let mut changes: Vec<(u64, i64)> =
        starts.chain(bars.iter().map(|bar| (bar.end_ns, -(bar.len as i64)))).collect();
    changes.sort_unstable();
    let mut bytes = 0;
    let counter = |(at_ns, change): (u64, i64)| {
        bytes += change;
        let name = format!("bytes on {rail}");
        json!({ "ph": "C", "name": name, "pid": process, "ts": us(at_ns), "args": { "bytes": bytes } })
    };
    changes.into_iter().map(counter).collect()
}

fn calls(events: &mut Vec<Value>, rank: &Records) {
    let process = process_of(rank.rank);
    for (thread, list) in threads(rank) {
        let track = CALLS + thread as usize;
        events.push(named("thread_name", process, track, &format!("MPI, thread {thread}")));
        events.extend(list.iter().map(|stretch| {
            let name = stretch.call.map_or("computing", |call| &call.call);
            json!({
                "ph": "X", "name": name, "cat": stretch.state.name(),
                "pid": process, "tid": thread_of(process, track),
                "ts": us(stretch.start_ns), "dur": us(stretch.end_ns - stretch.start_ns),
            })
        }));
    }
}

/// From the call that sends to the call that is there when it has arrived; without calls from rail to rail.
fn arrow(events: &mut Vec<Value>, all: &[Records], number: usize, message: &Message) {
    let Some(arrived_ns) = message.arrived_ns else { return };
    let track = |rank: u32, rail: &str| {
        let records = all.iter().find(|records| records.rank == rank)?;
        match records.calls.first() {
            Some(call) => Some(CALLS + call.thread as usize),
            None => Some(records.rails().iter().position(|name| name == rail).unwrap_or(0)),
        }
    };
    let rail = message.carried.first().map_or("", |(rail, _)| rail);
    let (Some(from), Some(to)) = (track(message.from, rail), track(message.to, rail)) else { return };
    let name = format!("{} B, {}", message.len, message.protocol);
    let end = |ph: &str, rank: u32, track: usize, at_ns: u64| {
        let process = process_of(rank);
        json!({
            "ph": ph, "bp": "e", "id": number, "cat": "message", "name": name,
            "pid": process, "tid": thread_of(process, track),
            "ts": us(at_ns), "args": { "tag": message.tag, "why": message.why() },
        })
    };
    events.push(end("s", message.from, from, message.sent_ns));
    events.push(end("f", message.to, to, arrived_ns));
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
