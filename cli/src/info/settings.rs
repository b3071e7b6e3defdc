//! The settings of a session, each with its value, its variable and its origin.

use newmadeleine::setting::of_sessions;
use newmadeleine::{Given, Network};
use nmad_bench::table::Table;
use serde::Serialize;

/// One setting.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    /// Key of the configuration file.
    key: String,
    variable: &'static str,
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

/// Returns all settings of a session, as the configuration file and the environment set them; `drivers` are
/// those of the command line, which win.
pub(super) fn of(given: &[Given], drivers: Option<&[Network]>) -> Vec<Setting> {
    let one = |setting: &'static newmadeleine::setting::Setting| {
        // The last one is in force.
        let set = given.iter().rev().find(|given| given.setting == setting);
        let (value, origin) = match set {
            Some(given) if given.is_in_environment => (given.value.clone(), Origin::Environment),
            Some(given) => (given.value.clone(), Origin::ConfigurationFile),
            None => (setting.default.into(), Origin::Default),
        };
        let key = setting.key().unwrap_or_default();
        let named = drivers.filter(|_| key == "driver");
        let (value, origin) = match named {
            Some(drivers) => {
                let names: Vec<&str> = drivers.iter().map(|driver| driver.name()).collect();
                (names.join(","), Origin::CommandLine)
            }
            None => (value, origin),
        };
        Setting { key, variable: setting.name, value, origin }
    };
    of_sessions().map(one).collect()
}

/// Bytes per second as network people write them.
pub(super) fn rate(bandwidth: u64) -> String {
    nmad_words::rate(bandwidth.saturating_mul(8))
}

pub(super) fn table(settings: &[Setting]) -> Table {
    let title = "settings (nmad info --settings explains them and lists those of MPI and of launchers)";
    let mut table = Table::new(title, &["key of the file", "variable", "value", "from"]).words([1, 2, 3]);
    for Setting { key, variable, value, origin } in settings {
        table.row([key.clone(), variable.to_string(), value.clone(), origin.name().to_string()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_wins() {
        let udp = [Network::named("udp").expect("a driver")];
        let driver = |drivers| {
            let all = of(&[], drivers);
            let found = all.into_iter().find(|setting| setting.key == "driver").expect("it is a setting");
            (found.value, found.origin)
        };
        assert_eq!(driver(None), ("tcp".into(), Origin::Default));
        assert_eq!(driver(Some(&udp[..])), ("udp".into(), Origin::CommandLine));
    }

    #[test]
    fn rates_are_bits() {
        assert_eq!((rate(350_000_000).as_str(), rate(62_500).as_str()), ("2.8gbit", "0.5mbit"));
    }
}
