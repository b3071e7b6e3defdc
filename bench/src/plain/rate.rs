//! Rate of short messages over one socket: a system call for each, as a program without a library does.
use std::io;
use std::time::{Duration, Instant};

use super::Socket;

/// Windows of messages; both sides must use the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Length of a message in bytes, at least 1.
    pub len: usize,
    /// Messages before one byte of answer is waited for, at least 1.
    pub window: usize,
    /// Number of samples; one batch more runs first and does not count.
    pub batches: usize,
    /// Windows per batch, at least 1.
    pub rounds: usize,
    /// The whole measurement ends within this time, or fails.
    pub limit: Duration,
}

/// The active side: returns millions of messages per second, one sample per batch.
pub fn measure(socket: &mut Socket, plan: &Plan) -> io::Result<Vec<f64>> {
    let deadline = Instant::now() + plan.limit;
    let message = vec![1u8; plan.len.max(1)];
    let (window, rounds) = (plan.window.max(1), plan.rounds.max(1));
    let mut samples = Vec::with_capacity(plan.batches);
    for batch in 0..=plan.batches {
        let start = Instant::now();
        for _ in 0..rounds {
            (0..window).try_for_each(|_| socket.send_all(&message, deadline))?;
            socket.recv_spinning(&mut [0], deadline)?;
        }
        if batch > 0 {
            samples.push((window * rounds) as f64 / 1e6 / start.elapsed().as_secs_f64());
        }
    }
    Ok(samples)
}

/// The passive side: receives one message at a time, and answers every window with one byte.
pub fn answer(socket: &mut Socket, plan: &Plan) -> io::Result<()> {
    let deadline = Instant::now() + plan.limit;
    let mut message = vec![0u8; plan.len.max(1)];
    for _ in 0..(plan.batches + 1) * plan.rounds.max(1) {
        (0..plan.window.max(1)).try_for_each(|_| socket.recv_spinning(&mut message, deadline))?;
        socket.send_all(&[1], deadline)?;
    }
    Ok(())
}
