//! Ways that fail for a while: a rail that carries again is used again within a bound, and both sides of a
//! link agree on whether it is there.

use super::Objection;
use crate::key::Key;
use crate::network::Network;
use nmad_engine::packet::{PeerId, RailId};
use nmad_engine::{Engine, LinkView};
use std::collections::BTreeMap;

/// Longest pause before a link that was left is tried again; each time that it was left may double it, up to
/// the second value.
const PAUSE_NS: u64 = 500_000_000;
const PAUSE_MAX_NS: u64 = 30_000_000_000;
/// What two tries may take: one may have begun before the way carried again.
const TRIES_NS: u64 = 3_000_000_000;
/// Longest time for which one side may use a link that the other one has left, while all other rails between
/// them carry; the same where one of those is silent, which may be the one over which it was told; and where
/// what the other one says of it may get lost.
const AGREE_NS: u64 = 15_000_000;
const AGREE_SILENT_NS: u64 = 100_000_000;
const AGREE_LOSSY_NS: u64 = 1_500_000_000;
/// Times that a link may be left for a run to wait until it is used again.
const AWAITED: u32 = 3;

/// Watches the links of hosts over time.
#[derive(Debug, Default)]
pub struct WaysOracle {
    links: BTreeMap<Key, Link>,
}

/// One side of a link.
#[derive(Debug, Default)]
struct Link {
    is_left: bool,
    /// How often it was left.
    times: u32,
    /// Since when it is left though its way carries.
    unused_since: Option<u64>,
    /// Since when the other side uses it nevertheless.
    apart_since: Option<u64>,
    /// Another rail between them was silent since then, though both use it.
    was_silent: bool,
}

/// What the oracle looks at.
pub struct Sight<'a> {
    /// The time.
    pub now: u64,
    /// The engine of each host.
    pub engine: &'a dyn Fn(usize) -> &'a Engine,
    /// The networks that the rails of each host are on.
    pub rails: &'a [Vec<usize>],
    /// The network.
    pub network: &'a Network,
}

impl Sight<'_> {
    /// What one side thinks of a link.
    fn link(&self, key: Key) -> Option<LinkView> {
        let rail = self.rails[key.me].iter().position(|fabric| *fabric == key.fabric)?;
        (self.engine)(key.me).inspect().link(PeerId(key.peer as u32), RailId(rail as u8))
    }

    /// Whether another link between the two that both use carries, or does not.
    fn has_other(&self, key: Key, carries: bool) -> bool {
        let is_up = |key: Key| matches!(self.link(key), Some(LinkView::Up { .. }));
        self.network.shared(key.me, key.peer).filter(|fabric| *fabric != key.fabric).any(|fabric| {
            let other = Key { fabric, ..key };
            is_up(other) && is_up(other.reverse()) && self.network.carries(other, self.now) == carries
        })
    }
}

impl WaysOracle {
    /// Looks at the links of a host after it has turned its pump.
    ///
    /// # Errors
    /// A link is not used that carries, or that the other side uses.
    pub fn look(&mut self, host: usize, sight: &Sight<'_>) -> Result<(), Objection> {
        let Sight { now, network, .. } = *sight;
        if !network.returns() {
            return Ok(());
        }
        for peer in (0..sight.rails.len()).filter(|peer| *peer != host && !network.severed(host, *peer)) {
            for fabric in network.shared(host, peer) {
                let key = Key { fabric, me: host, peer };
                let (mine, theirs) = (sight.link(key), sight.link(key.reverse()));
                let link = self.links.entry(key).or_default();
                let is_left = mine == Some(LinkView::Left);
                link.times += u32::from(is_left && !link.is_left);
                link.is_left = is_left;
                let is_used = matches!(theirs, Some(LinkView::Up { .. }));
                let is_apart = is_left && is_used && sight.has_other(key, true);
                let is_unused = is_left && network.carries(key, now);
                link.unused_since = is_unused.then(|| link.unused_since.unwrap_or(now));
                link.apart_since = is_apart.then(|| link.apart_since.unwrap_or(now));
                link.was_silent = is_apart && (link.was_silent || sight.has_other(key, false));
                let late_ns = network.doing[host].starved_ns + network.doing[peer].starved_ns;
                link.judge(now, late_ns, network.share_lossy(host, peer))
                    .map_err(|why| format!("h{host} has left its link to h{peer} on net{fabric}, {why}"))?;
            }
        }
        Ok(())
    }

    /// Whether a link is about to be used again.
    pub fn awaits(&self) -> bool {
        self.links.values().any(|link| link.unused_since.is_some() && link.times <= AWAITED)
    }
}

impl Link {
    fn judge(&self, now: u64, late_ns: u64, is_lossy: bool) -> Result<(), Objection> {
        let is_over =
            |since: Option<u64>, bound_ns: u64| since.filter(|since| now > since + bound_ns + late_ns);
        let pause_ns = PAUSE_NS.checked_shl(self.times).unwrap_or(PAUSE_MAX_NS).min(PAUSE_MAX_NS);
        if let Some(since) = is_over(self.unused_since, pause_ns + TRIES_NS) {
            return Err(format!("whose way has carried again for {} ms", (now - since) / 1_000_000));
        }
        let agree_ns = match self.was_silent {
            _ if is_lossy => AGREE_LOSSY_NS,
            true => AGREE_SILENT_NS,
            false => AGREE_NS,
        };
        if let Some(since) = is_over(self.apart_since, agree_ns) {
            return Err(format!("which the other side has used for {} ms since", (now - since) / 1_000_000));
        }
        Ok(())
    }
}
