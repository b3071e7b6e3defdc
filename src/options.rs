//! Settings of a session: from a configuration file, from the environment, and from the program; later ones
//! take precedence.
//!
//! | key of the file | environment | meaning |
//! |---|---|---|
//! | `strategy` | `NMAD_STRATEGY` | strategy that distributes messages over rails |
//! | `rails` | `NMAD_RAILS` | interfaces to use: `eth0,eth1=2.8gbit` (bandwidth), `udp/eth0`, `shm` |
//! | `driver` | `NMAD_DRIVER` | drivers: `tcp` (default), `udp`, `packet`, `verbs`, `ofi:tcp`, `tcp,udp` |
//! | `throttle` | `NMAD_THROTTLE` | slow the rails down in software to these rates: `4gbit,2.8gbit` |
//! | `feed` | `NMAD_FEED` | `accumulate`, `prepare` or `backlog:BYTES` |
//! | `eager_max` | `NMAD_EAGER_MAX` | longest eager message, in bytes |
//! | `in_place_min` | `NMAD_IN_PLACE_MIN` | shortest data that is not copied into its packet, in bytes |
//! | `credit` | `NMAD_CREDIT` | unexpected data that one peer may leave here, in bytes |
//! | `congestion` | `NMAD_CONGESTION` | bound of data in flight on lossy rails: `share`, `newreno`, `swift` |
//! | `return_within` | `NMAD_RETURN_WITHIN` | seconds to wait for a rank whose rails have all failed |
//! | `chunk` | `NMAD_CHUNK` | bytes of a large message that a rail gets at once |
//! | `cross_memory` | `NMAD_CROSS_MEMORY` | `on` or `off`: single copy (CMA) of large data inside a node |
//! | `progress` | `NMAD_PROGRESS` | `off`, `auto`, `idle`, `dedicated:CORES`: progress beside computing |
//! | `sample` | `NMAD_SAMPLE` | `auto`: measure rails without a reliable profile; `off`; `force`: all |
//! | `profile` | `NMAD_PROFILE` | a file of profiles that replace the measured ones |
//! | `explain` | `NMAD_EXPLAIN` | `1`: explain each sent message on standard error; or in FILE.rank |
//! | `stats` | `NMAD_STATS` | `1`: statistics of the rails at the end; or in a folder |
//! | `trace` | `NMAD_TRACE` | write a trace to FILE.rank |
//! | `log` | `NMAD_LOG` | level of messages on standard error: `off`, `error`, `warn`, `info`, `debug` |
//! | | `NMAD_CONFIG` | the file; otherwise `nmad/config.toml` in the user's configuration folder |

pub(crate) mod check;
mod file;
mod values;

use crate::error::SessionError;
use crate::lines;
use crate::strategies::Watched;
use log::LevelFilter;
use nmad_drivers::network::Network;
use nmad_engine::{Config, CongestionControl, Effort, Feed, Registry, Strategy};
use nmad_progress::Progress;
use std::path::PathBuf;
use std::time::Duration;
use values::{
    at_least, drivers, explain, feed, number, rails, rate, sampling, seconds, setting, stats, switch,
};

/// An interface that the user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailChoice {
    /// Name of the interface.
    pub interface: String,
    /// Driver for it; `None` for those of [`Options::drivers`].
    pub driver: Option<Network>,
    /// Bandwidth in bytes per second if the user gave one; zero for the nominal one.
    pub bandwidth: u64,
}

/// Settings of a session. Unset ones have defaults that need no tuning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Name of the strategy; `None` for [`Options::DEFAULT_STRATEGY`].
    pub strategy: Option<String>,
    /// The available strategies; [`Options::register`] adds one.
    pub strategies: Registry,
    /// Interfaces to use; `None` for all that reach a peer.
    pub rails: Option<Vec<RailChoice>>,
    /// Drivers for each interface; empty for the first of [`Network::ALL`], TCP.
    pub drivers: Vec<Network>,
    /// Rates in bytes per second to which software throttles the rails, in their order.
    pub throttle: Vec<u64>,
    /// When rails are fed.
    pub feed: Option<Feed>,
    /// Longest eager message in bytes.
    pub eager_max: Option<usize>,
    /// Shortest data that is not copied into its packet, in bytes.
    pub in_place_min: Option<usize>,
    /// Limit of unexpected data of one peer in this process, in bytes.
    pub credit: Option<u64>,
    /// Longest chunk, in bytes.
    pub chunk: Option<u64>,
    /// Congestion control on lossy rails; `None` for the engine's default.
    pub congestion: Option<CongestionControl>,
    /// Time to wait for a rank whose rails have all failed; `None` for the engine's default.
    pub return_within: Option<Duration>,
    /// Whether large data inside a node uses single copy (CMA); `None`: where the system permits it.
    pub cross_memory: Option<bool>,
    /// Progress while the program computes; `None` for [`Progress::Auto`].
    pub progress: Option<Progress>,
    /// Whether rails are measured when the session opens.
    pub sample: Sampling,
    /// Profiles that replace the measured ones.
    pub profile: Option<PathBuf>,
    /// Effort of measurements; `None` for [`Effort::QUICK`]. For programs only, it has no key.
    pub effort: Option<Effort>,
    /// The two ranks that measure; `None` for any with a common rail. For programs only.
    pub pair: Option<(u32, u32)>,
    /// Whether and where each sent message is explained when it has ended.
    pub explain: Explain,
    /// Whether and where the statistics of the rails are written at the end.
    pub stats: Stats,
    /// The file of the trace; the rank is appended.
    pub trace: Option<PathBuf>,
    /// The lowest level of messages on standard error, if the program has no logger; `None` for warnings.
    pub log: Option<LevelFilter>,
}

/// Whether the session measures its rails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampling {
    /// Measure missing or provisional profiles, for about a second in all.
    #[default]
    Auto,
    /// Measure nothing; use the known profiles.
    Off,
    /// Measure all rails again.
    Force,
}

impl Sampling {
    /// Parses the name in settings.
    pub fn named(name: &str) -> Option<Sampling> {
        [Sampling::Auto, Sampling::Off, Sampling::Force].into_iter().find(|mode| mode.name() == name)
    }

    /// Returns the name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Sampling::Auto => "auto",
            Sampling::Off => "off",
            Sampling::Force => "force",
        }
    }
}

/// Destination of explanations of messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Explain {
    /// Nowhere.
    #[default]
    Off,
    /// On standard error.
    StandardError,
    /// This file; the rank is appended.
    File(PathBuf),
}

/// Destination of the statistics of the rails at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Stats {
    /// Nowhere.
    #[default]
    Off,
    /// On standard error.
    StandardError,
    /// A file of counters of each process in this folder, for programs.
    Folder(PathBuf),
}

impl Options {
    /// The default strategy.
    pub const DEFAULT_STRATEGY: &str = "auto";

    /// The keys of all settings.
    pub const KEYS: [&str; 19] = [
        "strategy",
        "rails",
        "driver",
        "throttle",
        "feed",
        "eager_max",
        "in_place_min",
        "credit",
        "chunk",
        "congestion",
        "return_within",
        "cross_memory",
        "progress",
        "sample",
        "profile",
        "explain",
        "stats",
        "trace",
        "log",
    ];

    /// Reads the configuration file, if there is one, and the environment.
    ///
    /// # Errors
    /// [`SessionError::Setting`] names the setting, the cause and the remedy.
    pub fn load() -> Result<Options, SessionError> {
        Options::load_with(&[])
    }

    /// Reads the settings of a process with these additional variables; the last of one name counts.
    ///
    /// # Errors
    /// Errors of [`Options::load`].
    pub fn load_with(more: &[(String, String)]) -> Result<Options, SessionError> {
        let variable = |name: &str| {
            let set = more.iter().rev().find(|(other, _)| other == name);
            set.map(|(_, value)| value.into()).or_else(|| std::env::var_os(name))
        };
        let mut options = Options::default();
        if let Some((path, text)) = file::find(&variable)? {
            options.read_file(&path, &text)?;
        }
        for key in Options::KEYS {
            let name = Options::variable(key);
            let Some(value) = variable(&name).filter(|value| !value.is_empty()) else { continue };
            let value = value.to_str().ok_or_else(|| setting(&name, "it is not UTF-8".into()))?;
            options.apply(&name, key, value)?;
        }
        Ok(options)
    }

    /// Returns the user's name of a setting of unknown origin.
    pub(crate) fn name_of(key: &str) -> String {
        format!("{key} ({})", Options::variable(key))
    }

    /// Returns the environment variable of a key.
    fn variable(key: &str) -> String {
        format!("NMAD_{}", key.to_uppercase())
    }

    /// Sets one setting from text, like the configuration file; for bindings and command lines.
    ///
    /// # Errors
    /// [`SessionError::Setting`]: an unknown key or an invalid value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SessionError> {
        if !Options::KEYS.contains(&key) {
            return Err(setting(key, format!("no such setting (there are: {})", Options::KEYS.join(", "))));
        }
        self.apply(key, key, value)
    }

    /// Returns the path of the configuration file: the value of `NMAD_CONFIG`, or the user's file, which
    /// need not exist.
    pub fn configuration_path() -> Option<PathBuf> {
        file::path(&|name| std::env::var_os(name))
    }

    /// Sets one setting by its key; `name` is the user's name of it.
    fn apply(&mut self, name: &str, key: &str, value: &str) -> Result<(), SessionError> {
        match key {
            "strategy" => self.strategy = Some(value.into()),
            "rails" => self.rails = Some(rails(name, value)?),
            "throttle" => {
                self.throttle = value.split(',').map(|r| rate(name, r)).collect::<Result<_, _>>()?
            }
            "driver" => self.drivers = drivers(name, value)?,
            "feed" => self.feed = Some(feed(name, value)?),
            "eager_max" => self.eager_max = Some(number(name, value)? as usize),
            "in_place_min" => self.in_place_min = Some(number(name, value)? as usize),
            "credit" => self.credit = Some(at_least(Config::CREDIT_MIN, name, value)?),
            "chunk" => self.chunk = Some(at_least(Config::CHUNK_MIN, name, value)?),
            "congestion" => self.congestion = Some(value.parse().map_err(|why| setting(name, why))?),
            "return_within" => self.return_within = Some(seconds(name, value)?),
            "cross_memory" => self.cross_memory = Some(switch(name, value)?),
            "progress" => self.progress = Some(value.parse().map_err(|why| setting(name, why))?),
            "sample" => self.sample = sampling(name, value)?,
            "profile" => self.profile = Some(PathBuf::from(value)),
            "explain" => self.explain = explain(value),
            "stats" => self.stats = stats(name, value)?,
            "log" => self.log = Some(lines::level(name, value)?),
            _ => self.trace = Some(PathBuf::from(value)),
        }
        Ok(())
    }

    /// Adds a strategy of the program, to be chosen by its name like those of the library; a later one of
    /// the same name replaces it. It is made anew for each rank with messages. If one panics, leaves
    /// messages in the window forever, or returns wrong shares, it is named on standard error, and `auto`
    /// decides for that rank from then on.
    pub fn register(&mut self, make: impl Fn() -> Box<dyn Strategy> + Send + Sync + 'static) {
        self.strategies.add(move || Box::new(Watched::new(make())));
    }

    /// Returns the drivers for interfaces without a choice of their own.
    pub fn drivers(&self) -> &[Network] {
        if self.drivers.is_empty() { &Network::ALL[..1] } else { &self.drivers }
    }

    /// Returns the drivers for an interface that the user chose.
    pub fn drivers_of<'a>(&'a self, choice: &'a RailChoice) -> &'a [Network] {
        choice.driver.as_ref().map_or(self.drivers(), std::slice::from_ref)
    }

    /// Returns the engine's configuration with these settings.
    pub(crate) fn engine(&self, bandwidths: Vec<u64>) -> Config {
        let defaults = Config::default();
        Config {
            strategy: self.strategy.clone().unwrap_or_else(|| Self::DEFAULT_STRATEGY.into()),
            registry: self.strategies.clone(),
            feed: self.feed.unwrap_or_default(),
            eager_max: self.eager_max,
            in_place_min: self.in_place_min,
            credit: self.credit.unwrap_or(defaults.credit),
            chunk: self.chunk.unwrap_or(defaults.chunk),
            bandwidths,
            congestion: self.congestion.unwrap_or_default(),
            adapts: true,
            return_within: self.return_within.map_or(defaults.return_within, |wait| {
                nmad_engine::Duration::from_ns(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
            }),
            ..defaults
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn settings_are_read_and_wrong_ones_name_themselves() {
        let mut options = Options::default();
        options
            .read_file(
                Path::new("f"),
                "strategy = 'fifo'\nrails = 'r0,r1=2.8gbit'\nchunk = 4096\ncredit = '8MiB'",
            )
            .unwrap();
        assert_eq!(options.strategy.as_deref(), Some("fifo"));
        assert_eq!(
            options.rails.as_ref().unwrap()[1],
            RailChoice { interface: "r1".into(), driver: None, bandwidth: 350_000_000 }
        );
        let config = options.engine(Vec::new());
        assert_eq!((config.chunk, config.credit), (4096, 8 << 20));
        options.read_file(Path::new("f"), "rails = 'udp/r0=1gbit'\ndriver = 'tcp,udp'").unwrap();
        assert_eq!(options.rails.as_ref().unwrap()[0].driver, Network::named("udp").ok());
        assert_eq!(options.drivers, Network::ALL[..2]);
        for (text, word) in [
            ("strategi = 'x'", "strategi"),
            ("driver = 'ucp'", "tcp, udp"),
            ("driver = 'udp,tcp,udp'", "udp is named twice"),
            ("rails = 'x/r0'", "tcp, udp"),
            ("feed = 'x'", "backlog:BYTES"),
            ("congestion = 'cubic'", "share, newreno, swift"),
            ("return_within = '-1'", "no number of seconds"),
            ("progress = 'on'", "dedicated:CORES"),
            ("log = 'loud'", "off, error, warn"),
            ("stats = 'sums'", "./sums"),
            ("cross_memory = 'maybe'", "neither on nor off"),
            ("credit = 262143", "at least 262144"),
            ("chunk = 4095", "at least 4096"),
            ("rails = 'a=7'", "2.8gbit"),
        ] {
            let error = options.read_file(Path::new("f"), text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn settings_have_keys_for_programs() {
        let mut options = Options::default();
        options.set("chunk", "4096").unwrap();
        assert_eq!(options.chunk, Some(4096));
        for (text, is_on) in [("1", true), ("yes", true), ("True", true), ("off", false), ("no", false)] {
            options.set("explain", text).unwrap();
            options.set("stats", text).unwrap();
            assert_eq!(options.explain == Explain::StandardError, is_on, "{text}");
            assert_eq!(options.stats, if is_on { Stats::StandardError } else { Stats::Off }, "{text}");
        }
        options.set("stats", "./sums").unwrap();
        assert_eq!(options.stats, Stats::Folder("./sums".into()));
        for (key, value, word) in [
            ("chunks", "1", "in_place_min"),
            ("chunk", "x", "number of bytes"),
            ("credit", "1.5", "whole number"),
        ] {
            let error = options.set(key, value).unwrap_err().to_string();
            assert!(error.contains(key) && error.contains(word), "{error}");
        }
    }
}
