//! The measurements: messages there and back, or many in one direction.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// A way to move bytes.
pub trait Way {
    /// Prepares for messages of `len` bytes.
    fn prepare(&mut self, len: usize);
    /// Sends one message and returns when it has left.
    fn send(&mut self, len: usize);
    /// Waits for one message.
    fn recv(&mut self, len: usize);
    /// Sends `count` messages, as many at once as is good, and returns when all have left.
    fn stream(&mut self, len: usize, count: usize) {
        (0..count).for_each(|_| self.send(len));
    }
}

/// Times of each way, in nanoseconds per message (half a round trip, or one of a stream).
pub fn measure(
    ways: &mut [&mut dyn Way; 2],
    control: &mut TcpStream,
    first: bool,
    len: usize,
    one_way: bool,
    repeat: usize,
) -> Result<Vec<[f64; 2]>, Box<dyn Error>> {
    // Some milliseconds each: short enough to fall between the disturbances of a busy machine.
    let count = (50_000_000 / (len + 20_000)).clamp(2, 1000);
    let mut times = Vec::new();
    for round in 0..=repeat {
        let mut pair = [0.0; 2];
        // In turn, so that a machine that slows down slows both.
        for at in [round % 2, 1 - round % 2] {
            let way = &mut *ways[at];
            way.prepare(len);
            control.write_all(&[0])?;
            control.read_exact(&mut [0])?;
            pair[at] = if one_way { stream(way, first, len, count) } else { ping(way, first, len, count) };
        }
        if round > 0 {
            times.push(pair);
        }
    }
    Ok(times)
}

fn ping(way: &mut dyn Way, first: bool, len: usize, count: usize) -> f64 {
    let begun = Instant::now();
    for _ in 0..count {
        if first {
            way.send(len);
            way.recv(len);
        } else {
            way.recv(len);
            way.send(len);
        }
    }
    begun.elapsed().as_nanos() as f64 / (2 * count) as f64
}

fn stream(way: &mut dyn Way, first: bool, len: usize, count: usize) -> f64 {
    let begun = Instant::now();
    if first {
        way.stream(len, count);
        way.recv(48);
    } else {
        (0..count).for_each(|_| way.recv(len));
        way.send(48);
    }
    begun.elapsed().as_nanos() as f64 / count as f64
}
