//! Canaries: strategies, a network and hosts that are broken on purpose. An oracle that does not catch them
//! is blind.

use nmad_engine::{Entry, Instant, PacketBuilder, RailView, Shares, Strategy, Window};

/// A way of being broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canary {
    /// Now and then throws a message or control frame away.
    Loses,
    /// Lets the rails stand idle for long while the window is full.
    Starves,
    /// Puts more into a packet than the rail takes.
    Overfills,
    /// Never carries messages of low priority.
    Neglects,
    /// No strategy: the wire changes a byte of a large message now and then, which no checksum sees.
    Corrupts,
    /// No strategy: drivers of datagrams take what was damaged on its way as it comes.
    Unchecked,
    /// No strategy: hosts combine data with their exposed memory twice now and then.
    Doubles,
    /// No strategy: hosts do not close contexts when another host has died.
    Forgets,
    /// No strategy: owners read files and overlook what they have not written.
    Overlooks,
    /// No strategy: one owner of a file writes nothing when all synchronise.
    Skips,
    /// No strategy: hosts do not forget what they have read of a file when they communicate.
    Remembers,
    /// No strategy: owners do what others want between two parts of an atomic access.
    Splits,
    /// No strategy: owners of files write nothing in what all do together once a host has died.
    Abandons,
    /// No strategy: hosts do not say that an owner of a file is gone.
    Hushes,
}

impl Canary {
    /// All of them.
    pub const ALL: [Canary; 14] = [
        Canary::Loses,
        Canary::Starves,
        Canary::Overfills,
        Canary::Neglects,
        Canary::Corrupts,
        Canary::Unchecked,
        Canary::Doubles,
        Canary::Forgets,
        Canary::Overlooks,
        Canary::Skips,
        Canary::Remembers,
        Canary::Splits,
        Canary::Abandons,
        Canary::Hushes,
    ];

    /// The name by which it is chosen.
    pub fn name(self) -> &'static str {
        match self {
            Canary::Loses => "canary-loses",
            Canary::Starves => "canary-starves",
            Canary::Overfills => "canary-overfills",
            Canary::Neglects => "canary-neglects",
            Canary::Corrupts => "canary-corrupts",
            Canary::Unchecked => "canary-unchecked",
            Canary::Doubles => "canary-doubles",
            Canary::Forgets => "canary-forgets",
            Canary::Overlooks => "canary-overlooks",
            Canary::Skips => "canary-skips",
            Canary::Remembers => "canary-remembers",
            Canary::Splits => "canary-splits",
            Canary::Abandons => "canary-abandons",
            Canary::Hushes => "canary-hushes",
        }
    }

    /// Whether what is broken is in the protocol of files.
    pub fn is_of_files(self) -> bool {
        use Canary::{Abandons, Hushes, Overlooks, Remembers, Skips, Splits};
        matches!(self, Overlooks | Skips | Remembers | Splits | Abandons | Hushes)
    }

    /// Whether it shows only when hosts die.
    pub fn is_of_deaths(self) -> bool {
        matches!(self, Canary::Forgets | Canary::Abandons | Canary::Hushes)
    }

    /// The canary of that name, with or without `canary-`.
    pub fn by_name(name: &str) -> Option<Canary> {
        Canary::ALL.into_iter().find(|c| c.name() == name || c.name().strip_prefix("canary-") == Some(name))
    }

    /// What the engine's registry takes; none if it is not a strategy that is broken.
    pub fn maker(self) -> Option<fn() -> Box<dyn Strategy>> {
        match self {
            Canary::Loses => Some(|| Box::new(Broken { canary: Canary::Loses, entries: 0 })),
            Canary::Starves => Some(|| Box::new(Broken { canary: Canary::Starves, entries: 0 })),
            Canary::Overfills => Some(|| Box::new(Broken { canary: Canary::Overfills, entries: 0 })),
            Canary::Neglects => Some(|| Box::new(Broken { canary: Canary::Neglects, entries: 0 })),
            _ => None,
        }
    }
}

struct Broken {
    canary: Canary,
    entries: u64,
}

impl Strategy for Broken {
    fn name(&self) -> &'static str {
        self.canary.name()
    }

    fn fill(&mut self, now: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        // Awake for a hundredth of the time.
        if self.canary == Canary::Starves && now.as_ns() % 50_000_000 > 500_000 {
            return;
        }
        let canary = self.canary;
        let wants = |entry: &Entry, packet: &PacketBuilder| match canary {
            Canary::Overfills => true,
            Canary::Neglects => entry.priority() >= 0 && packet.fits(entry),
            _ => packet.fits(entry),
        };
        while let Some(entry) = window.take_first(rail.scope(true), |entry| wants(entry, packet)) {
            self.entries += 1;
            if self.canary == Canary::Loses && self.entries.is_multiple_of(29) {
                drop(entry);
            } else {
                packet.push(entry);
            }
        }
    }

    fn split(&mut self, _: Instant, _: u64, _: &[RailView]) -> Shares {
        Shares::FirstIdle
    }
}
