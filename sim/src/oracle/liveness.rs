//! Nothing stands still: no rail idle while the window of its peer is full, no request that waits for a
//! peer known to be gone, and an end within bounds.

use super::Objection;
use super::ledger::Ledger;
use crate::network::Network;
use nmad_engine::packet::PeerId;
use nmad_engine::{Config, Engine};
use std::collections::BTreeMap;

/// Longest time for which all rails to a peer may be idle while something waits for it.
const IDLE_NS: u64 = 3_000_000;
/// The same where rails lose packets and may have to wait for a timeout.
const IDLE_LOSSY_NS: u64 = 1_500_000_000;
/// Longest time for which requests may wait for a peer after the loss of its last link was reported.
const GONE_NS: u64 = 10_000_000;

/// Watches hosts over time.
#[derive(Debug, Default)]
pub struct LivenessOracle {
    /// Since when the rails from one host to another stand idle with something waiting.
    idle: BTreeMap<(usize, usize), u64>,
    /// Since when one host knows that another is gone.
    gone: BTreeMap<(usize, usize), u64>,
}

impl LivenessOracle {
    /// Looks at a host after it has turned its pump.
    ///
    /// # Errors
    /// The part that stands still.
    pub fn look(
        &mut self,
        now: u64,
        host: usize,
        engine: &Engine,
        network: &Network,
        ledger: &Ledger,
    ) -> Result<(), Objection> {
        for peer in (0..network.doing.len()).filter(|&peer| peer != host) {
            self.rails(now, host, peer, engine, network)?;
            if !network.knows_severed(host, peer) {
                continue;
            }
            let since = *self.gone.entry((host, peer)).or_insert(now);
            let waits = |entry: &&super::ledger::Entry| entry.host == host && entry.peer() == Some(peer);
            // Links that may come back are waited for.
            let is_told = network.doing[host].told_dead.contains(&peer);
            let wait_ns =
                if network.returns() && !is_told { Config::default().return_within.as_ns() } else { 0 };
            if now > since + GONE_NS + wait_ns
                && let Some(entry) = ledger.open().find(waits)
            {
                let ms = (GONE_NS + wait_ns) / 1_000_000;
                return Err(format!("{entry} still waits {ms} ms after the last link was lost"));
            }
        }
        Ok(())
    }

    fn rails(
        &mut self,
        now: u64,
        host: usize,
        peer: usize,
        engine: &Engine,
        network: &Network,
    ) -> Result<(), Objection> {
        let view = engine.inspect().peer_view(PeerId(peer as u32));
        let waits = view.filter(|view| view.links_up > 0 && view.backlog as u64 + view.body_backlog > 0);
        let Some(view) = waits.filter(|_| network.waiting(host, peer) == 0 && !network.opening(host, peer))
        else {
            self.idle.remove(&(host, peer));
            return Ok(());
        };
        let since = *self.idle.entry((host, peer)).or_insert(now);
        let bound = if network.share_lossy(host, peer) { IDLE_LOSSY_NS } else { IDLE_NS };
        let starved: u64 = [host, peer].iter().map(|&id| network.doing[id].starved_ns).sum();
        if now <= since + bound + starved {
            return Ok(());
        }
        let (window, bodies, rails) = (view.backlog, view.body_backlog, view.links_up);
        let us = (now - since) / 1000;
        Err(format!(
            "h{host} has {window} + {bodies} B (window, large) for h{peer}, {rails} rails idle for {us} us"
        ))
    }
}

/// What an engine must not hold when everything is over. Whether it holds none of it.
///
/// On reliable links acknowledgements are lazy, so some packets stay retained; their number is bounded.
pub fn is_settled(host: usize, engine: &Engine, network: &Network) -> bool {
    const LAZY: usize = 64;
    if engine.inspect().pending() > 0 {
        return false;
    }
    for peer in (0..network.doing.len()).filter(|&p| p != host && !network.severed(host, p)) {
        let Some(view) = engine.inspect().peer_view(PeerId(peer as u32)) else { continue };
        if view.backlog > 0 || view.body_backlog > 0 {
            return false;
        }
        let all_lossy = network.shared(host, peer).all(|fabric| network.model(fabric).limits().lossy);
        let bound = if all_lossy { 0 } else { LAZY * (view.links_up + 1) };
        if view.in_flight > bound {
            return false;
        }
    }
    true
}
