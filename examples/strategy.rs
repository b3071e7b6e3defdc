//! A strategy of one's own: small messages never wait behind large ones.
//!
//! `express` keeps the rail with the lowest latency for small messages, as far as it can: they go first
//! there, several in a packet, while large bodies are shared out among the other rails. No crate of the
//! library is changed for it: it is registered with the options of the session and chosen by its name.
//!
//! ```text
//! cargo build --example strategy && nmad run -n 2 target/debug/examples/strategy
//! ```

use newmadeleine::strategy::{Entry, Instant, PacketBuilder, RailView, ShareList, Shares, Strategy, Window};
use newmadeleine::{Hints, Options, Session, SessionError};

/// Longest entry, header included, that counts as small.
const SMALL: usize = 1 << 10;

struct Express;

impl Strategy for Express {
    fn name(&self) -> &str {
        "express"
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        let scope = rail.scope(true);
        let is_small = |entry: &Entry| entry.len() <= SMALL;
        if !rail.fastest {
            // Only what is not small; leaving the packet empty means: nothing for this rail now.
            packet.take(window, scope, |_, entry| !is_small(entry));
            return;
        }
        while packet.take(window, scope, |packet, entry| is_small(entry) && packet.fits(entry)) {}
        // Other rails may be down, and this one cannot know: what nobody takes would wait for ever.
        if packet.is_empty() {
            packet.take(window, scope, |_, _| true);
        }
    }

    fn split(&mut self, _: Instant, len: u64, rails: &[RailView]) -> Shares {
        let others = || rails.iter().filter(|rail| !rail.fastest);
        let sum: u64 = others().map(|rail| rail.bandwidth).sum();
        let (mut shares, mut left) = (ShareList::default(), len);
        for (index, rail) in others().enumerate() {
            let share = u128::from(len) * u128::from(rail.bandwidth) / u128::from(sum.max(1));
            // Rounding must not lose a byte: the last one takes what is left.
            let share = if index + 1 == others().count() { left } else { share as u64 };
            shares.push(rail.rail, share);
            left -= share;
        }
        if shares.is_empty() { Shares::FirstIdle } else { Shares::Fixed(shares) }
    }
}

/// Rank 0 sends a large message and small ones behind it; rank 1 receives them.
pub fn main() -> Result<(), SessionError> {
    let mut options = Options::load()?;
    options.register(|| Box::new(Express));
    options.strategy = Some("express".into());
    let session = Session::open_with(&options)?;
    let (large, small) = (vec![7u8; 3 << 20], [1u8; 200]);
    if session.rank() == 0 && session.size() > 1 {
        // One message may have another strategy than the rest.
        let usual = Hints { strategy: Some(session.strategy("auto")?), ..Hints::default() };
        session.scope(|scope| {
            scope.send(1, 0, &large)?;
            (1..=6).try_for_each(|tag| scope.send(1, tag, &small).map(drop))?;
            scope.send_with(1, 7, &small, usual).map(drop)
        })?;
        for rail in session.rails() {
            let carried = rail.counters;
            println!(
                "{}: {} messages in {} packets, {} B of the large one",
                rail.name, carried.entries, carried.packets, carried.chunk_bytes
            );
        }
    }
    if session.rank() == 1 {
        let mut memory = vec![0; large.len()];
        session.recv(0, 0, &mut memory)?;
        assert_eq!(memory, large, "it arrives whole");
        for tag in 1..=7 {
            let message = session.recv(0, tag, &mut memory)?;
            assert_eq!(memory[..message.len], small);
        }
    }
    session.close()
}
