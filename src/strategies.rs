//! Strategies of the program: they are registered with the options of a session, and supervised.
//!
//! Such a strategy is foreign code that runs under the lock of the engine, where a fault would stop every
//! message. So each of its answers is checked, and its panics are caught: a strategy that fails is named
//! once, and `auto` decides for that peer from then on. It cannot lose a message, since the packet builder
//! takes entries from the window. Strategies of the engine are not supervised.

use nmad_engine::{
    Duration, Instant, PacketBuilder, PeerId, RailId, RailView, Registry, Shares, Strategy, Waiting, Window,
};
use nmad_words::tell_user;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, Weak};

/// Time after which a strategy counts as stuck: it is asked, all rails are idle, messages wait, and it
/// takes none.
const IDLE_MAX: Duration = Duration::from_ms(100);
/// Longest gap between calls that count as continuous; after a longer one the process was stopped or had no
/// messages.
const APART: Duration = Duration::from_ms(20);
/// Interval of the watchdog, and the number of intervals in one call after which it ends the process.
const LOOK: std::time::Duration = std::time::Duration::from_secs(1);
const LOOKS_MAX: u32 = 5;

/// Calls of one strategy: the count is odd during a call.
#[derive(Debug, Default)]
struct Questions {
    count: AtomicU64,
    of: OnceLock<String>,
}

/// Starts the watchdog, which ends the process when a strategy does not return for seconds. Such a strategy
/// loops in a thread that holds the lock of the engine, so no message can continue, and the job would hang
/// without a message.
fn watch(questions: &Arc<Questions>) {
    static WATCHED: Mutex<Vec<Weak<Questions>>> = Mutex::new(Vec::new());
    static THREAD: Once = Once::new();
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(questions));
    THREAD.call_once(|| {
        let look = || {
            let mut open: Vec<(Weak<Questions>, u64, u32)> = Vec::new();
            loop {
                std::thread::sleep(LOOK);
                let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
                open.extend(watched.drain(..).map(|questions| (questions, 0, 0)));
                drop(watched);
                open.retain_mut(|(questions, before, looks)| {
                    let Some(questions) = questions.upgrade() else { return false };
                    let count = questions.count.load(Ordering::Relaxed);
                    *looks = if count == *before && count % 2 == 1 { *looks + 1 } else { 0 };
                    *before = count;
                    if *looks >= LOOKS_MAX {
                        end(&questions);
                    }
                    true
                });
            }
        };
        let started = std::thread::Builder::new().name("nmad-strategies".into()).spawn(look);
        if let Err(why) = started {
            log::warn!("strategies that loop are not noticed: no thread can be started ({why})");
        }
    });
}

/// Ends the process because a strategy loops.
fn end(questions: &Questions) -> ! {
    let of = questions.of.get().map_or("without a name", String::as_str);
    tell_user(format_args!(
        "nmad: strategy {of} has not answered for {LOOKS_MAX} s: it loops. This process ends, since nothing \
         can be sent while it does; NMAD_STRATEGY=auto does without it"
    ));
    std::process::abort()
}

/// A strategy of the program, and the one that replaces it when it fails.
pub(crate) struct Watched {
    name: String,
    peer: Option<PeerId>,
    /// `None` after it has failed.
    own: Option<Box<dyn Strategy>>,
    auto: Box<dyn Strategy>,
    /// Time since which it took no message although some wait and all rails are idle, and the last time at
    /// which this was so.
    idle: Option<(Instant, Instant)>,
    questions: Arc<Questions>,
}

impl Watched {
    /// Supervises a strategy.
    pub(crate) fn new(own: Box<dyn Strategy>) -> Watched {
        let auto = Registry::default().make("auto").expect("a strategy of the engine");
        let questions = Arc::new(Questions::default());
        Watched { name: own.name().into(), peer: None, own: Some(own), auto, idle: None, questions }
    }

    /// Calls the strategy; `None`: it has failed, now or before.
    fn ask<R>(&mut self, what: &str, question: impl FnOnce(&mut dyn Strategy) -> R) -> Option<R> {
        let own = self.own.as_mut()?;
        self.questions.count.fetch_add(1, Ordering::Relaxed);
        let answer = catch_unwind(AssertUnwindSafe(|| question(&mut **own)));
        self.questions.count.fetch_add(1, Ordering::Relaxed);
        match answer {
            Ok(answer) => Some(answer),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
                self.fail(&format!("panicked in {what}: {text}"));
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

    /// Returns whether it has left messages to idle rails for too long.
    fn is_stuck(&mut self, now: Instant, rail: &RailView, window: &Window, packet: &PacketBuilder) -> bool {
        if !packet.is_empty() {
            self.idle = None;
            return false;
        }
        let idle = rail.idle_at <= now && rail.rivals.iter().all(|rival| rival.idle_at <= now);
        if !idle || window.entries(rail.scope(true)).next().is_none() {
            return false;
        }
        let (since, last) = self.idle.get_or_insert((now, now));
        if now.since(*last) > APART {
            *since = now;
        }
        *last = now;
        now.since(*since) >= IDLE_MAX
    }
}

/// Returns the error in the shares of a message; `None` if they are right.
fn wrong(shares: &Shares, len: u64, rails: &[RailView]) -> Option<String> {
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
        let of = format!("'{}', which decides for rank {},", self.name, peer.0);
        if self.questions.of.set(of).is_ok() {
            watch(&self.questions);
        }
        self.ask("meet", |own| own.meet(peer));
    }

    fn chooses(&self) -> bool {
        let chooses = |own: &dyn Strategy| catch_unwind(AssertUnwindSafe(|| own.chooses()));
        self.own.as_deref().is_some_and(|own| chooses(own).unwrap_or(false))
    }

    fn choose(&mut self, now: Instant, rail: RailId, peers: &[Waiting]) -> Option<PeerId> {
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
            let Some(why) = wrong(&shares, len, rails) else { return shares };
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
