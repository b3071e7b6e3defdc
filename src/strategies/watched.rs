//! A supervised strategy: checks each answer of the strategy, and catches its panics. When the strategy
//! fails, one message names it, and `auto` decides for that peer from then on. The strategy cannot lose a
//! message, since the packet builder moves entries from the window to the packet.

use super::watchdog::Calls;
use nmad_engine::{
    Duration, Instant, PacketBuilder, PeerId, RailId, RailView, Registry, Shares, Strategy, Waiting, Window,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Time after which a strategy counts as stuck: the engine calls it, all rails are idle and the window has
/// entries, but the strategy chooses none.
const IDLE_MAX: Duration = Duration::from_ms(100);
/// Longest gap between two calls that belong to the same idle period. During a longer gap the process was
/// stopped or had no messages, so the idle period starts again.
const GAP_MAX: Duration = Duration::from_ms(20);

/// A strategy that is not part of the library, and the one that replaces it when it fails.
pub(crate) struct Watched {
    name: String,
    peer: Option<PeerId>,
    /// The supervised strategy; `None` after it has failed.
    own: Option<Box<dyn Strategy>>,
    auto: Box<dyn Strategy>,
    /// Set while the strategy chooses no entry although the window has some and all rails are idle.
    idle: Option<Idle>,
    calls: Arc<Calls>,
}

/// A period in which a strategy leaves entries in the window although all rails are idle.
struct Idle {
    since: Instant,
    /// Time of the last call.
    last: Instant,
    /// Rails for which the strategy was called, one bit each. The strategy is stuck only if it was called
    /// for all of them: it may wait for a rail that is idle by prediction, but whose driver accepts no
    /// packet yet.
    asked: u64,
}

/// Panic payload with which [`super::foreign`] reports a wrong answer of a function in C. It unwinds
/// without the panic hook, which would print a second message.
pub(super) struct WrongAnswer(pub(super) String);

impl Watched {
    /// Supervises a strategy.
    pub(crate) fn new(own: Box<dyn Strategy>) -> Watched {
        let auto = Registry::default().make("auto").expect("a strategy of the engine");
        let calls = Arc::new(Calls::default());
        Watched { name: own.name().into(), peer: None, own: Some(own), auto, idle: None, calls }
    }

    /// Calls the strategy; `None`: it has failed, in this call or earlier.
    fn ask<R>(&mut self, what: &str, question: impl FnOnce(&mut dyn Strategy) -> R) -> Option<R> {
        let own = self.own.as_mut()?;
        let answer = self.calls.during(|| catch_unwind(AssertUnwindSafe(|| question(&mut **own))));
        match answer {
            Ok(answer) => Some(answer),
            Err(panic) => {
                let why = if let Some(WrongAnswer(why)) = panic.downcast_ref() {
                    format!("gave a wrong answer in {what}: {why}")
                } else {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
                    format!("panicked in {what}: {text}")
                };
                self.fail(&why);
                None
            }
        }
    }

    /// Marks the strategy as failed: `auto` decides from now on.
    #[cold]
    fn fail(&mut self, why: &str) {
        // Dropping the strategy may panic too.
        let own = self.own.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(own)));
        let whom = self.peer.map_or_else(|| "all ranks".into(), |peer| format!("rank {}", peer.0));
        log::error!("strategy '{}' {why}; 'auto' decides for {whom} from now on", self.name);
    }

    /// Returns whether the strategy has chosen no entry for [`IDLE_MAX`] although all rails were idle.
    fn is_stuck(&mut self, now: Instant, rail: &RailView, window: &Window, packet: &PacketBuilder) -> bool {
        if !packet.is_empty() {
            self.idle = None;
            return false;
        }
        let idle = rail.idle_at <= now && rail.rivals.iter().all(|rival| rival.idle_at <= now);
        if !idle || window.entries(rail.scope(true)).next().is_none() {
            return false;
        }
        let bit = |rail: RailId| 1u64 << (rail.index() % 64);
        let found = self.idle.get_or_insert(Idle { since: now, last: now, asked: 0 });
        if now.since(found.last) > GAP_MAX {
            *found = Idle { since: now, last: now, asked: 0 };
        }
        found.last = now;
        found.asked |= bit(rail.rail);
        let all = rail.rivals.iter().fold(bit(rail.rail), |all, rival| all | bit(rival.rail));
        found.asked & all == all && now.since(found.since) >= IDLE_MAX
    }
}

/// Checks the shares of a message; returns the error, or `None` if they are correct.
fn check_shares(shares: &Shares, len: u64, rails: &[RailView]) -> Option<String> {
    let Shares::Fixed(list) = shares else { return None };
    if let Some((rail, _)) = list.iter().find(|share| rails.iter().all(|view| view.rail != share.0)) {
        return Some(format!("gave a share to rail {}, which is not open to the peer", rail.0));
    }
    let sum: u128 = list.iter().map(|share| u128::from(share.1)).sum();
    (sum != u128::from(len)).then(|| format!("shared {sum} B of a message of {len} B out"))
}

impl Strategy for Watched {
    fn name(&self) -> &str {
        &self.name
    }

    fn meet(&mut self, peer: PeerId) {
        self.peer = Some(peer);
        self.auto.meet(peer);
        self.calls.watch(|| format!("strategy '{}', which decides for rank {},", self.name, peer.0));
        self.ask("meet", |own| own.meet(peer));
    }

    fn chooses(&self) -> bool {
        let chooses = |own: &dyn Strategy| catch_unwind(AssertUnwindSafe(|| own.chooses()));
        self.own.as_deref().is_some_and(|own| chooses(own).unwrap_or(false))
    }

    fn choose(&mut self, now: Instant, rail: RailId, peers: &[Waiting]) -> Option<PeerId> {
        self.calls.watch(|| format!("strategy '{}', which chooses between ranks,", self.name));
        self.ask("choose", |own| own.choose(now, rail, peers)).flatten()
    }

    fn lone(&self, now: Instant, len: u64, rails: &[RailView]) -> Option<RailId> {
        // An invalid rail does no harm: the message then goes through the window.
        let lone = |own: &dyn Strategy| catch_unwind(AssertUnwindSafe(|| own.lone(now, len, rails)));
        match &self.own {
            Some(own) => lone(&**own).ok().flatten(),
            None => self.auto.lone(now, len, rails),
        }
    }

    fn fill(&mut self, now: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        if self.own.is_some() {
            self.ask("fill", |own| own.fill(now, rail, window, packet));
            if packet.is_empty() {
                // Entries that only this rail may carry need no decision.
                packet.coalesce(window, rail.scope(false));
            }
            if self.is_stuck(now, rail, window, packet) && self.own.is_some() {
                let ms = IDLE_MAX.as_ns() / 1_000_000;
                self.fail(&format!("left messages to an idle rail for {ms} ms"));
            }
        }
        if self.own.is_none() && packet.is_empty() {
            self.auto.fill(now, rail, window, packet);
        }
    }

    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        if let Some(shares) = self.ask("split", |own| own.split(now, len, rails)) {
            let Some(why) = check_shares(&shares, len, rails) else { return shares };
            self.fail(&why);
        }
        self.auto.split(now, len, rails)
    }

    fn carried(&mut self, len: u64, rails: usize, took: Duration) {
        if self.own.is_none() {
            return self.auto.carried(len, rails, took);
        }
        self.ask("carried", |own| own.carried(len, rails, took));
    }

    fn relearnt(&mut self) {
        if self.own.is_none() {
            return self.auto.relearnt();
        }
        self.ask("relearnt", |own| own.relearnt());
    }

    fn gathers(&self) -> bool {
        let gathers = |own: &dyn Strategy| catch_unwind(AssertUnwindSafe(|| own.gathers()));
        self.own.as_deref().map_or(self.auto.gathers(), |own| gathers(own).unwrap_or(false))
    }

    fn revises(&self) -> bool {
        let revises = |own: &dyn Strategy| catch_unwind(AssertUnwindSafe(|| own.revises()));
        self.own.as_deref().map_or(self.auto.revises(), |own| revises(own).unwrap_or(false))
    }
}
