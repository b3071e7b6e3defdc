//! Bulk data over several rails at once: the sum that plain sockets reach, one way.
//!
//! The rails share one message. Each socket takes the next piece of it when it has handed its last one to the
//! kernel, so a fast rail takes more pieces than a slow one and both end together, with no prediction at all.
//! A piece is preceded by its place in the message; the receiver reads it straight into that place.
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::Socket;
use super::wait::Wait;
use piece::{Incoming, Outgoing};

mod piece;

/// A bulk transfer over several rails; both sides must use the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Length of a message in bytes, at least 1.
    pub len: usize,
    /// Longest piece in bytes, at least 1. Small pieces let the rails end together, large ones save calls.
    pub piece: usize,
    /// Number of samples (one message each); one message more goes first and does not count.
    pub batches: usize,
    /// The whole measurement ends within this time, or fails.
    pub limit: Duration,
}

impl Plan {
    /// Seven samples, pieces of 256 KiB: two unequal rails still end within a millisecond of each other.
    pub fn of(len: usize) -> Plan {
        Plan { len: len.max(1), piece: 256 << 10, batches: 7, limit: Duration::from_secs(60) }
    }
}

/// What one message reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// MB/s (millions of bytes per second) over all rails.
    pub total: f64,
    /// The share of each rail in that, in the order of the sockets.
    pub rails: Vec<f64>,
}

/// The active side: sends the messages over `sockets` (one per rail, in the order of the other side's) from
/// `memory`, which gets their length.
pub fn measure(sockets: &mut [Socket], plan: &Plan, memory: &mut Vec<u8>) -> io::Result<Vec<Sample>> {
    require_rails(sockets)?;
    let deadline = Instant::now() + plan.limit;
    memory.clear();
    memory.extend((0..plan.len.max(1)).map(byte_at));
    let mut samples = Vec::with_capacity(plan.batches);
    for batch in 0..=plan.batches {
        let start = Instant::now();
        let carried = send(sockets, memory, plan.piece.max(1), deadline)?;
        sockets[0].recv_all(&mut [0], deadline)?;
        let us = start.elapsed().as_secs_f64() * 1e6;
        if batch > 0 {
            let rails = carried.iter().map(|len| *len as f64 / us).collect();
            samples.push(Sample { total: memory.len() as f64 / us, rails });
        }
    }
    Ok(samples)
}

/// The passive side: receives each message and confirms it with one byte on the first rail. The first
/// message, which does not count, is compared with what was sent.
pub fn answer(sockets: &mut [Socket], plan: &Plan, memory: &mut Vec<u8>) -> io::Result<()> {
    require_rails(sockets)?;
    let deadline = Instant::now() + plan.limit;
    // What an earlier measurement has left there would pass for this one's.
    memory.clear();
    memory.resize(plan.len.max(1), 0);
    for batch in 0..=plan.batches {
        receive(sockets, memory, deadline)?;
        if batch == 0 && !memory.iter().enumerate().all(|(index, byte)| *byte == byte_at(index)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a piece of the message is not what was sent",
            ));
        }
        sockets[0].send_all(&[1], deadline)?;
    }
    Ok(())
}

fn require_rails(sockets: &[Socket]) -> io::Result<()> {
    match sockets.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::InvalidInput, "no rail: give at least one socket")),
        false => Ok(()),
    }
}

/// The byte at a place of the message: a prime period, so that a piece in the wrong place shows.
fn byte_at(index: usize) -> u8 {
    (index % 251) as u8
}

/// Sends `data` over all sockets and returns the bytes of it that each carried.
fn send(sockets: &mut [Socket], data: &[u8], longest: usize, deadline: Instant) -> io::Result<Vec<usize>> {
    let mut places = (0..data.len()).step_by(longest);
    let mut next = || places.next().map(|at| Outgoing::new(at, &data[at..data.len().min(at + longest)]));
    let mut lanes: Vec<Option<Outgoing<'_>>> = sockets.iter().map(|_| None).collect();
    let mut carried = vec![0; sockets.len()];
    let mut wait = Wait::new(sockets[0].spin, deadline);
    loop {
        let mut progressed = false;
        for (rail, socket) in sockets.iter_mut().enumerate() {
            if lanes[rail].is_none() {
                lanes[rail] = next();
            }
            let Some(piece) = &mut lanes[rail] else { continue };
            let allowed = socket.allowed(longest);
            let Some(len) = piece.push(&socket.stream, allowed)? else { continue };
            socket.spend(len);
            carried[rail] += len;
            progressed = true;
            if piece.is_done() {
                lanes[rail] = None;
            }
        }
        let busy: Vec<_> = waiting(sockets, PollFlags::OUT, |rail| lanes[rail].is_some());
        match (progressed, busy.is_empty()) {
            (true, _) => wait.rearm(),
            (false, true) => return Ok(carried),
            (false, false) => wait.pause(&busy)?,
        }
    }
}

/// Receives one message into `data` from all sockets.
fn receive(sockets: &[Socket], data: &mut [u8], deadline: Instant) -> io::Result<()> {
    let mut lanes: Vec<Incoming> = sockets.iter().map(|_| Incoming::default()).collect();
    let mut wait = Wait::new(sockets[0].spin, deadline);
    let mut missing = data.len();
    while missing > 0 {
        let mut progressed = false;
        for (lane, socket) in lanes.iter_mut().zip(sockets) {
            if let Some(len) = lane.pull(&socket.stream, data)? {
                // Saturating, since the other side might send a place twice.
                missing = missing.saturating_sub(len);
                progressed = true;
            }
        }
        match progressed {
            true => wait.rearm(),
            false => wait.pause(&waiting(sockets, PollFlags::IN, |_| true))?,
        }
    }
    Ok(())
}

/// What to sleep on: the sockets of the rails for which `is_waiting` holds.
fn waiting(
    sockets: &[Socket],
    flags: PollFlags,
    is_waiting: impl Fn(usize) -> bool,
) -> Vec<(BorrowedFd<'_>, PollFlags)> {
    let rails = sockets.iter().enumerate().filter(|(rail, _)| is_waiting(*rail));
    rails.map(|(_, socket)| (socket.stream.as_fd(), flags)).collect()
}
