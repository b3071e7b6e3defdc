//! Half round trip of a short message over one socket, both sides spinning.
use std::io;
use std::time::{Duration, Instant};

use super::Socket;

/// A ping-pong; both sides must use the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Length of a message in bytes, at least 1.
    pub len: usize,
    /// Number of samples; one batch more runs first and does not count.
    pub batches: usize,
    /// Round trips per batch, at least 1: a batch averages the cost of reading the clock away.
    pub rounds: usize,
    /// The whole measurement ends within this time, or fails.
    pub limit: Duration,
}

impl Default for Plan {
    /// 8 bytes, 60 samples of 500 round trips: about 0.2 s.
    fn default() -> Plan {
        Plan { len: 8, batches: 60, rounds: 500, limit: Duration::from_secs(20) }
    }
}

/// The active side: returns half a round trip in microseconds, one sample per batch.
pub fn measure(socket: &mut Socket, plan: &Plan) -> io::Result<Vec<f64>> {
    let deadline = Instant::now() + plan.limit;
    let mut message = vec![0u8; plan.len.max(1)];
    let rounds = plan.rounds.max(1);
    let mut samples = Vec::with_capacity(plan.batches);
    for batch in 0..=plan.batches {
        let start = Instant::now();
        for _ in 0..rounds {
            socket.send_all(&message, deadline)?;
            socket.recv_spinning(&mut message, deadline)?;
        }
        if batch > 0 {
            samples.push(start.elapsed().as_secs_f64() * 1e6 / (2 * rounds) as f64);
        }
    }
    Ok(samples)
}

/// The passive side: sends every message back.
pub fn answer(socket: &mut Socket, plan: &Plan) -> io::Result<()> {
    let deadline = Instant::now() + plan.limit;
    let mut message = vec![0u8; plan.len.max(1)];
    for _ in 0..(plan.batches + 1) * plan.rounds.max(1) {
        socket.recv_spinning(&mut message, deadline)?;
        socket.send_all(&message, deadline)?;
    }
    Ok(())
}
