//! The settings in force, each with its variable and its origin.

use newmadeleine::Sampling;
use newmadeleine::engine::Config;
use newmadeleine::{Explain, Feed, Options, RailChoice};
use nmad_bench::table::Table;
use serde::Serialize;

/// One setting.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    /// Key of the configuration file; its variable is `NMAD_` and the same in capitals.
    key: &'static str,
    variable: String,
    value: String,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Origin {
    Default,
    ConfigurationFile,
    Environment,
    CommandLine,
}

impl Origin {
    fn name(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::ConfigurationFile => "configuration file",
            Origin::Environment => "environment",
            Origin::CommandLine => "command line",
        }
    }
}

/// All settings, the drivers perhaps named on the command line; see the documentation of [`Options`] for what
/// they mean.
pub(super) fn of(options: &Options, are_drivers_named: bool) -> Vec<Setting> {
    let defaults = Config::default();
    let bytes = |set: Option<u64>, default: u64| (set.map(|n| n.to_string()), default.to_string());
    let measured = |set: Option<usize>, otherwise: usize| {
        (set.map(|n| n.to_string()), format!("as measured, {otherwise} without a profile"))
    };
    let interface = |rail: &RailChoice| match rail.driver {
        Some(driver) => format!("{}/{}", driver.name(), rail.interface),
        None => rail.interface.clone(),
    };
    let drivers: Vec<&str> = options.drivers.iter().map(|driver| driver.name()).collect();
    let drivers = (!drivers.is_empty()).then(|| drivers.join(","));
    let rails = options.rails.as_ref().map(|rails| {
        let rails = rails.iter().map(|rail| match rail.bandwidth {
            0 => interface(rail),
            bandwidth => format!("{}={}", interface(rail), rate(bandwidth)),
        });
        rails.collect::<Vec<_>>().join(",")
    });
    let throttle: Vec<String> = options.throttle.iter().map(|bandwidth| rate(*bandwidth)).collect();
    let wait = std::time::Duration::from_nanos(defaults.return_within.as_ns());
    let values: [(&'static str, (Option<String>, String)); 18] = [
        ("strategy", (options.strategy.clone(), Options::DEFAULT_STRATEGY.into())),
        ("rails", (rails, "all interfaces that lead to a peer".into())),
        ("driver", (drivers, "tcp".into())),
        ("throttle", ((!throttle.is_empty()).then(|| throttle.join(",")), "none".into())),
        ("feed", (options.feed.map(feed), feed(defaults.feed))),
        ("eager_max", measured(options.eager_max, Config::EAGER_MAX)),
        ("in_place_min", measured(options.in_place_min, Config::IN_PLACE_MIN)),
        ("credit", bytes(options.credit, defaults.credit)),
        ("chunk", bytes(options.chunk, defaults.chunk)),
        ("congestion", (options.congestion.map(|set| set.name().into()), defaults.congestion.name().into())),
        ("return_within", (options.return_within.map(seconds), seconds(wait))),
        ("cross_memory", (options.cross_memory.map(|on| if on { "on" } else { "off" }.into()), "on".into())),
        ("progress", (options.progress.as_ref().map(|set| set.to_string()), "auto".into())),
        ("sample", (sampled(options.sample), Sampling::default().name().into())),
        ("profile", (options.profile.as_ref().map(|path| path.display().to_string()), "none".into())),
        ("explain", (explained(&options.explain), "off".into())),
        ("trace", (options.trace.as_ref().map(|path| path.display().to_string()), "none".into())),
        ("log", (options.log.map(|level| level.as_str().to_lowercase()), "warn".into())),
    ];
    let mut all: Vec<Setting> =
        values.into_iter().map(|(key, (set, default))| setting(key, set, default)).collect();
    // The command line wins over all, and has this one only.
    if let Some(driver) = all.iter_mut().find(|setting| setting.key == "driver" && are_drivers_named) {
        driver.origin = Origin::CommandLine;
    }
    all
}

fn setting(key: &'static str, set: Option<String>, default: String) -> Setting {
    let variable = format!("NMAD_{}", key.to_uppercase());
    // The environment wins over the file, so whatever is set and not from there is from the file.
    let is_in_environment = std::env::var(&variable).is_ok_and(|value| !value.is_empty());
    let origin = match &set {
        _ if is_in_environment => Origin::Environment,
        Some(_) => Origin::ConfigurationFile,
        None => Origin::Default,
    };
    Setting { key, variable, value: set.unwrap_or(default), origin }
}

/// The default counts as not set.
fn sampled(mode: Sampling) -> Option<String> {
    (mode != Sampling::default()).then(|| mode.name().into())
}

fn seconds(wait: std::time::Duration) -> String {
    wait.as_secs_f64().to_string()
}

fn explained(explain: &Explain) -> Option<String> {
    match explain {
        Explain::Off => None,
        Explain::StandardError => Some("on standard error".into()),
        Explain::File(path) => Some(path.display().to_string()),
    }
}

fn feed(feed: Feed) -> String {
    match feed {
        Feed::Accumulate => "accumulate".into(),
        Feed::Prepare => "prepare".into(),
        Feed::Backlog(bytes) => format!("backlog:{bytes}"),
    }
}

/// Bytes per second as network people write them.
pub(super) fn rate(bandwidth: u64) -> String {
    nmad_words::rate(bandwidth.saturating_mul(8))
}

pub(super) fn table(settings: &[Setting]) -> Table {
    let title = "settings (NMAD_CONFIG names another configuration file)";
    let mut table = Table::new(title, &["key of the file", "variable", "value", "from"]).words([1, 2, 3]);
    for Setting { key, variable, value, origin } in settings {
        table.row([key.to_string(), variable.clone(), value.clone(), origin.name().to_string()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_without_the_environment_is_from_the_file() {
        let setting = |set: Option<&str>| setting("no_such_key", set.map(str::to_string), "7".into());
        assert_eq!(setting(None).origin, Origin::Default);
        assert_eq!((setting(None).value.as_str(), setting(Some("8")).value.as_str()), ("7", "8"));
        assert_eq!(setting(Some("8")).origin, Origin::ConfigurationFile);
    }

    #[test]
    fn drivers_of_the_command_line_are_told_apart() {
        let options = Options {
            drivers: vec![newmadeleine::Network::named("udp").expect("a driver")],
            ..Options::default()
        };
        let origins = |named: bool| of(&options, named).iter().map(|one| one.origin).collect::<Vec<_>>();
        assert!(origins(true).contains(&Origin::CommandLine));
        assert!(!origins(false).contains(&Origin::CommandLine));
    }

    #[test]
    fn rates_are_bits() {
        assert_eq!((rate(350_000_000).as_str(), rate(62_500).as_str()), ("2.8gbit", "0.5mbit"));
    }
}
