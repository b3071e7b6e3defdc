//! Settings of a session: from a configuration file, from the environment, and from the program; later ones
//! take precedence. The table of all settings is [`nmad_words::setting`].

pub(crate) mod check;
mod file;
mod values;

use crate::error::SessionError;
use crate::strategies::{self, PlugIn};
use log::LevelFilter;
use nmad_drivers::network::Network;
use nmad_engine::{Config, CongestionControl, Effort, Feed, Preempt, Registry, Strategy};
use nmad_progress::Progress;
use nmad_seal::Policy;
use nmad_words::setting::{Setting, keys, of_key, of_sessions, seconds, switch};
use std::path::PathBuf;
use std::time::Duration;
use values::{drivers, explain, feed, rails, rate, setting, stats};

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
    /// Name of the strategy, or `FILE.so:NAME` of one in a plug-in; `None` for [`Options::DEFAULT_STRATEGY`].
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
    /// When a core that computes is preempted to post a part of a message.
    pub preempt: Option<Preempt>,
    /// Which links between ranks are encrypted.
    pub encrypt: Policy,
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
    /// The file of observations, written at the end; the rank is appended.
    pub observations: Option<PathBuf>,
    /// The file of the trace; the rank is appended.
    pub trace: Option<PathBuf>,
    /// The lowest level of messages on standard error, if the program has no logger; `None` for warnings.
    pub log: Option<LevelFilter>,
}

/// A setting that the configuration file or the environment sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The setting.
    pub setting: &'static Setting,
    /// Its value, as it is written there.
    pub value: String,
    /// Whether the environment sets it, and not the file.
    pub is_in_environment: bool,
    /// The user's name of it: the variable, or file and key.
    pub(crate) name: String,
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

/// Returns what the configuration file and these variables set, in the order in which it takes effect.
fn given(variable: file::Variable<'_>) -> Result<Vec<Given>, SessionError> {
    let mut all = match file::find(variable)? {
        Some((path, text)) => file::entries(&path, &text)?,
        None => Vec::new(),
    };
    for one in of_sessions() {
        let Some(value) = variable(one.name).filter(|value| !value.is_empty()) else { continue };
        let value = value.into_string().map_err(|_| setting(one.name, "it is not UTF-8".into()))?;
        all.push(Given { setting: one, value, is_in_environment: true, name: one.name.into() });
    }
    Ok(all)
}

impl Options {
    /// The default strategy.
    pub const DEFAULT_STRATEGY: &str = "auto";

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
        for given in given(&variable)? {
            options.apply(&given.name, given.setting, &given.value)?;
        }
        Ok(options)
    }

    /// Returns what the configuration file and the environment set, in the order in which it takes effect.
    ///
    /// # Errors
    /// The configuration file cannot be read, or a value is not text.
    pub fn given() -> Result<Vec<Given>, SessionError> {
        given(&|name| std::env::var_os(name))
    }

    /// Returns the user's name of a setting of unknown origin.
    pub(crate) fn name_of(setting: &Setting) -> String {
        format!("{} ({})", setting.key().unwrap_or_default(), setting.name)
    }

    /// Sets one setting from text, like the configuration file; for bindings and command lines.
    ///
    /// # Errors
    /// [`SessionError::Setting`]: an unknown key or an invalid value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SessionError> {
        let unknown = || setting(key, format!("no such setting (there are: {})", keys()));
        self.apply(key, of_key(key).ok_or_else(unknown)?, value)
    }

    /// Returns the path of the configuration file: the value of `NMAD_CONFIG`, or the user's file, which
    /// need not exist.
    pub fn configuration_path() -> Option<PathBuf> {
        file::path(&|name| std::env::var_os(name))
    }

    /// Sets one setting; `name` is the user's name of it.
    fn apply(&mut self, name: &str, one: &Setting, value: &str) -> Result<(), SessionError> {
        self.read(one, value).map_err(|why| setting(name, why))
    }

    fn read(&mut self, one: &Setting, value: &str) -> Result<(), String> {
        one.check(value)?;
        match one.key().unwrap_or_default().as_str() {
            "strategy" => self.strategy = Some(value.into()),
            "rails" => self.rails = Some(rails(value)?),
            "throttle" => self.throttle = value.split(',').map(rate).collect::<Result<_, _>>()?,
            "driver" => self.drivers = drivers(value)?,
            "feed" => self.feed = Some(feed(value)?),
            "eager_max" => self.eager_max = Some(one.size(value)? as usize),
            "in_place_min" => self.in_place_min = Some(one.size(value)? as usize),
            "credit" => self.credit = Some(one.size(value)?),
            "chunk" => self.chunk = Some(one.size(value)?),
            "congestion" => self.congestion = Some(value.parse()?),
            "encrypt" => self.encrypt = value.parse().unwrap_or_default(),
            "return_within" => self.return_within = Some(seconds(value)?),
            "cross_memory" => self.cross_memory = switch(value),
            "preempt" => self.preempt = Preempt::named(value),
            "progress" => self.progress = Some(value.parse()?),
            "sample" => self.sample = Sampling::named(value).unwrap_or_default(),
            "profile" => self.profile = Some(PathBuf::from(value)),
            "explain" => self.explain = explain(value),
            "stats" => self.stats = stats(value)?,
            "log" => self.log = value.parse().ok(),
            "observations" => self.observations = Some(PathBuf::from(value)),
            "trace" => self.trace = Some(PathBuf::from(value)),
            other => return Err(format!("there is no setting {other}")),
        }
        Ok(())
    }

    /// Adds a strategy of the program, to be chosen by its name like those of the library; a later one of
    /// the same name replaces it. It is made anew for each rank with messages. If one panics, leaves
    /// messages in the window forever, or returns wrong shares, it is named on standard error, and `auto`
    /// decides for that rank from then on.
    pub fn register(&mut self, make: impl Fn() -> Box<dyn Strategy> + Send + Sync + 'static) {
        self.strategies.add(strategies::supervised(make));
    }

    /// Adds a strategy that is a table of functions, for the C interface.
    #[doc(hidden)]
    pub fn register_table(&mut self, table: nmad_plugin::Table) {
        self.strategies.add(strategies::of_table(table.name().into(), table));
    }

    /// Returns the strategies that can be chosen by name: the registered ones, and those that the setting
    /// `strategy` and `more` name in plug-ins, which are loaded.
    ///
    /// # Errors
    /// A plug-in cannot be loaded, or has no such strategy; the text says the cause and the remedy.
    #[doc(hidden)]
    pub fn registry(&self, more: &[String]) -> Result<Registry, String> {
        let mut registry = self.strategies.clone();
        for name in self.strategy.iter().chain(more) {
            if !registry.has(name)
                && let Some(make) = strategies::of_plug_in(name)?
            {
                registry.add(make);
            }
        }
        Ok(registry)
    }

    /// Returns the plug-in that the setting `strategy` names; `None` if it names none.
    ///
    /// # Errors
    /// As [`Options::registry`].
    #[doc(hidden)]
    pub fn plug_in(&self) -> Result<Option<PlugIn>, String> {
        let name = self.strategy.as_ref().filter(|name| !self.strategies.has(name));
        name.map_or(Ok(None), |name| strategies::plug_in(name))
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
    ///
    /// # Errors
    /// Errors of [`Options::registry`].
    pub(crate) fn engine(&self, bandwidths: Vec<u64>) -> Result<Config, String> {
        let defaults = Config::default();
        Ok(Config {
            strategy: self.strategy.clone().unwrap_or_else(|| Self::DEFAULT_STRATEGY.into()),
            registry: self.registry(&[])?,
            feed: self.feed.unwrap_or_default(),
            eager_max: self.eager_max,
            in_place_min: self.in_place_min,
            credit: self.credit.unwrap_or(defaults.credit),
            chunk: self.chunk.unwrap_or(defaults.chunk),
            bandwidths,
            congestion: self.congestion.unwrap_or_default(),
            preempt: self.preempt.unwrap_or_default(),
            adapts: true,
            return_within: self.return_within.map_or(defaults.return_within, |wait| {
                nmad_engine::Duration::from_ns(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
            }),
            ..defaults
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read_file(options: &mut Options, text: &str) -> Result<(), SessionError> {
        let given = file::entries(Path::new("f"), text)?;
        given.iter().try_for_each(|one| options.apply(&one.name, one.setting, &one.value))
    }

    #[test]
    fn limits_of_the_table_are_those_of_the_engine() {
        use nmad_words::setting::{CHUNK, CREDIT, Values};
        assert_eq!(CREDIT.values, Values::Size { least: Config::CREDIT_MIN });
        assert_eq!(CHUNK.values, Values::Size { least: Config::CHUNK_MIN });
        let defaults = Config::default();
        assert_eq!([CREDIT.default, CHUNK.default], [defaults.credit, defaults.chunk].map(|n| n.to_string()));
    }

    #[test]
    fn each_setting_of_the_table_is_applied() {
        for one in of_sessions() {
            let value = match &*one.key().expect("a key") {
                "rails" => "lo=1gbit",
                "driver" => "udp",
                "feed" => "prepare",
                "progress" => "off",
                "throttle" => "1gbit",
                "log" => "info",
                _ => match one.values {
                    nmad_words::setting::Values::Words(words) => words[words.len() - 1],
                    nmad_words::setting::Values::Form(_) => "./x",
                    _ if one.check("off").is_ok() => "off",
                    _ => "1048577",
                },
            };
            let mut options = Options::default();
            options.set(&one.key().expect("a key"), value).expect(one.name);
            assert_ne!(options, Options::default(), "{}", one.name);
        }
    }

    #[test]
    fn settings_are_read_and_wrong_ones_name_themselves() {
        let mut options = Options::default();
        read_file(&mut options, "strategy = 'fifo'\nrails = 'r0,r1=2.8gbit'\nchunk = 4096\ncredit = '8MiB'")
            .unwrap();
        assert_eq!(options.strategy.as_deref(), Some("fifo"));
        assert_eq!(
            options.rails.as_ref().unwrap()[1],
            RailChoice { interface: "r1".into(), driver: None, bandwidth: 350_000_000 }
        );
        let config = options.engine(Vec::new()).unwrap();
        assert_eq!((config.chunk, config.credit), (4096, 8 << 20));
        read_file(&mut options, "rails = 'udp/r0=1gbit'\ndriver = 'tcp,udp'").unwrap();
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
            let error = read_file(&mut options, text).unwrap_err().to_string();
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
