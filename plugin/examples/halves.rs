//! A plug-in in Rust: `halves` splits large messages into equal parts, and sends small ones over the rail
//! with the lowest latency.
//!
//! ```text
//! cargo build -p nmad-plugin --example halves
//! NMAD_STRATEGY=target/debug/examples/libhalves.so:halves nmad bench bandwidth --rails 4gbit,2.8gbit
//! ```

use nmad_plugin::{Split, Strategy, Waiting, Way};

struct Halves;

impl Strategy for Halves {
    fn fill(&mut self, _: u32, rail: &Way<'_>, waiting: &[Waiting], room: u64, chosen: &mut Vec<usize>) {
        if !rail.is_fastest() {
            return;
        }
        let mut left = room;
        for (place, entry) in waiting.iter().enumerate() {
            if chosen.is_empty() || entry.size <= left {
                left = left.saturating_sub(entry.size);
                chosen.push(place);
            }
        }
    }

    fn split(&mut self, _: u32, len: u64, ways: &[Way<'_>], shares: &mut [u64]) -> Split {
        shares.fill(len / ways.len() as u64);
        // The shares must add up to `len`.
        shares[0] += len % ways.len() as u64;
        Split::Shares
    }
}

nmad_plugin::strategies! { version: "1.0", "halves" => Halves }
