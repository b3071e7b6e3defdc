//! Bulk data over one socket: one way, or back and forth.
use std::io;
use std::time::{Duration, Instant};

use super::Socket;

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The active side sends all messages of a batch back to back; the passive side confirms the batch with
    /// one byte. What a rail carries in the long run; bursts of a shaper average out.
    OneWay,
    /// Each message is answered by one of the same length; the time of one way is half of that.
    PingPong,
}

/// A bulk transfer; both sides must use the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Length of a message in bytes, at least 1.
    pub len: usize,
    /// Which way the data goes.
    pub way: Way,
    /// Number of samples; one batch more runs first and does not count.
    pub batches: usize,
    /// Messages (or round trips) per batch, at least 1.
    pub messages: usize,
    /// The whole measurement ends within this time, or fails.
    pub limit: Duration,
}

impl Plan {
    /// The sizes a table of bandwidths shows: 64 KiB to 64 MiB in steps of four.
    pub const LENS: [usize; 6] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];

    /// Seven samples; a batch moves about 64 MiB each way, in 3 to 60 messages.
    pub fn of(len: usize, way: Way) -> Plan {
        let messages = ((64 << 20) / len.max(1)).clamp(3, 60);
        Plan { len: len.max(1), way, batches: 7, messages, limit: Duration::from_secs(60) }
    }
}

/// The active side: returns MB/s (millions of bytes per second), one sample per batch. Messages lie in
/// `memory`, which gets their length: where its pages lie decides about some percent, so that whatever stands
/// beside uses the same memory.
pub fn measure(socket: &mut Socket, plan: &Plan, memory: &mut Vec<u8>) -> io::Result<Vec<f64>> {
    let deadline = Instant::now() + plan.limit;
    memory.resize(plan.len.max(1), 1);
    let mut samples = Vec::with_capacity(plan.batches);
    for batch in 0..=plan.batches {
        let start = Instant::now();
        active_batch(socket, plan, memory, deadline)?;
        if batch > 0 {
            samples.push(mb_per_s(plan, start.elapsed()));
        }
    }
    Ok(samples)
}

/// The passive side: receives, and sends back what the plan says.
pub fn answer(socket: &mut Socket, plan: &Plan, memory: &mut Vec<u8>) -> io::Result<()> {
    let deadline = Instant::now() + plan.limit;
    memory.resize(plan.len.max(1), 2);
    for _ in 0..=plan.batches {
        for _ in 0..plan.messages.max(1) {
            socket.recv_all(memory, deadline)?;
            if plan.way == Way::PingPong {
                socket.send_all(memory, deadline)?;
            }
        }
        if plan.way == Way::OneWay {
            socket.send_all(&[1], deadline)?;
        }
    }
    Ok(())
}

fn active_batch(socket: &mut Socket, plan: &Plan, data: &mut [u8], deadline: Instant) -> io::Result<()> {
    for _ in 0..plan.messages.max(1) {
        socket.send_all(data, deadline)?;
        if plan.way == Way::PingPong {
            socket.recv_all(data, deadline)?;
        }
    }
    match plan.way {
        Way::OneWay => socket.recv_all(&mut [0], deadline),
        Way::PingPong => Ok(()),
    }
}

fn mb_per_s(plan: &Plan, took: Duration) -> f64 {
    let ways = if plan.way == Way::PingPong { 2 } else { 1 };
    let moved = plan.len.max(1) * plan.messages.max(1) * ways;
    moved as f64 / 1e6 / took.as_secs_f64()
}
