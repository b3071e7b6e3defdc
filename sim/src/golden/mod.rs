//! The papers' figures as text, made by the real engine and its strategies on models of the papers' hardware.
//!
//! Each figure is a function from nothing to text, in virtual time and without chance: the same commit gives
//! the same text, so a committed text shows every change of behaviour as a difference. It stands on the world
//! of the simulator like any workload; it knows cards and hosts, never frames.

pub mod adapt;
pub mod card;
pub mod changes;
mod congestion;
mod convergence;
pub mod decisions;
pub mod machines;
pub mod networks;
mod overview;
mod p1;
mod p2;
mod p3;
mod p4;
pub mod p5;
pub mod ping_pong;
pub mod regret;
pub mod sampling;
mod shares;
pub mod show;
pub mod table;

/// One figure, or several that belong together.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// By which it is called, also the name of its file: `p3-8`.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Makes its text.
    pub make: fn() -> String,
    /// Draws it as SVG, if it has a picture.
    pub draw: Option<fn() -> String>,
}

impl Figure {
    /// Name of its file.
    pub fn file(&self) -> String {
        format!("{}.txt", self.name)
    }

    /// Names of its files.
    pub fn names(&self) -> Vec<String> {
        let picture = self.draw.map(|_| format!("{}.svg", self.name));
        [self.file()].into_iter().chain(picture).collect()
    }

    /// Its files and what is in them.
    pub fn files(&self) -> Vec<(String, String)> {
        let picture = self.draw.map(|draw| (format!("{}.svg", self.name), draw()));
        [(self.file(), (self.make)())].into_iter().chain(picture).collect()
    }
}

const fn figure(name: &'static str, title: &'static str, make: fn() -> String) -> Figure {
    Figure { name, title, make, draw: None }
}

/// All figures: our own, then those of the papers in their order.
pub const FIGURES: &[Figure] = &[
    figure("networks", "the models and where their numbers come from", overview::networks),
    figure("congestion", "congestion control over lossy and shared rails", congestion::compared),
    Figure {
        draw: Some(convergence::picture),
        ..figure("adapt", "sampling while messages go, from nominal figures", adapt::table)
    },
    figure(
        "decisions",
        "from recorded observations of real jobs, against those of hindsight",
        decisions::table,
    ),
    figure("adapt-changes", "the same on networks that change during a run", changes::table),
    figure("regret-two", "what auto loses against any other way, two equal rails", regret::equal),
    figure("regret-four-one", "the same over rails of 4 and 1 Gbit/s", regret::unequal),
    figure("regret-three", "the same over three rails", regret::three),
    figure("p1-2", "overhead of the engine, single messages", p1::overhead),
    figure("p1-3", "8 and 16 messages on communicators of their own", p1::aggregation),
    figure("p1-4", "indexed datatype of 64 B and 256 KB blocks", p1::datatype),
    figure("p2-2", "Myri-10G, one, two and four segments", p2::raw_mx),
    figure("p2-3", "Quadrics, one, two and four segments", p2::raw_elan),
    figure("p2-4", "greedy balancing, two segments", p2::greedy_two),
    figure("p2-5", "greedy balancing, four segments", p2::greedy_four),
    figure("p2-6", "small messages joined on the fastest card", p2::fastest),
    figure("p2-7", "packet stripping by sampled ratios", p2::stripping),
    figure("p2-bus", "the I/O bus, where it binds and where it does not", p2::bus),
    figure("p3-2", "which networks take part while some are busy", shares::busy),
    figure("p3-3", "eager packets over one network or two", p3::eager_greedy),
    figure("p3-4", "two eager packets, three ways", p3::offload_diagram),
    figure("p3-8", "one large message split over two networks", p3::bandwidths),
    figure("p3-9", "eager messages submitted from two cores", p3::offload),
    figure("p4-three", "the weighted formula, over three networks", shares::three),
    figure("p4-2", "one length in one to sixteen messages", p4::subdivision),
    figure("p4-4", "iovec thresholds (figures 4 to 8)", p4::iovec),
    figure("p4-9", "rendezvous thresholds (figures 9 to 13)", p4::rendezvous),
    figure("p4-14", "aggregation thresholds (figures 14 to 18)", p4::aggregation),
    figure("p4-19", "two unequal networks on cluster joe (figures 19 and 20)", p4::joe),
    figure("p4-21", "two very unequal networks on cluster jack", p4::jack),
    figure("p5-1", "share of time in communication (tables I and III)", p5::shares),
    Figure {
        draw: Some(p5::sizes_picture),
        ..figure("p5-6", "overlapToy by length and degree (figures 6 and 7)", p5::sizes)
    },
    Figure {
        draw: Some(p5::timelines_picture),
        ..figure("p5-8", "overlapToy: what hosts do when (figures 8 and 9)", p5::timelines)
    },
    Figure {
        draw: Some(p5::patterns_picture),
        ..figure("p5-10", "miniFE: pattern and shares (figures 10 and 11, table II)", p5::patterns)
    },
    Figure {
        draw: Some(p5::limits_picture),
        ..figure("p5-13", "miniFE by eager limit (figures 13 to 15)", p5::limits)
    },
    Figure {
        draw: Some(p5::remedies_picture),
        ..figure("p5-16", "toys with parallel sends and fragments (figures 16 to 18)", p5::remedies)
    },
    Figure {
        draw: Some(p5::scaling_picture),
        ..figure("p5-19", "miniFE with parallel sends and fragments (figures 19 and 20)", p5::scaling)
    },
];

/// Figures whose name is `name`, or begins with it and a dash: `p2` are all of P2. All without a name.
pub fn named(name: Option<&str>) -> Vec<&'static Figure> {
    let belongs = |figure: &&Figure| {
        name.is_none_or(|name| {
            figure.name.strip_prefix(name).is_some_and(|r| r.is_empty() || r.starts_with('-'))
        })
    };
    FIGURES.iter().filter(belongs).collect()
}
