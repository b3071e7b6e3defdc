//! Parsers of setting values. Each function gets the user's name of the setting.

use super::{Explain, Network, RailChoice, Sampling, Stats};
use crate::error::SessionError;
use nmad_engine::Feed;
use nmad_words::{parse_rate, parse_size};
use std::path::PathBuf;
use std::time::Duration;

pub(super) fn setting(setting: &str, why: String) -> SessionError {
    SessionError::Setting { setting: setting.into(), why }
}

pub(super) fn number(name: &str, value: &str) -> Result<u64, SessionError> {
    parse_size(value).map_err(|why| setting(name, why))
}

/// Parses a number of bytes that is at least `least`.
pub(super) fn at_least(least: u64, name: &str, value: &str) -> Result<u64, SessionError> {
    let bytes = number(name, value)?;
    match bytes < least {
        true => Err(setting(name, format!("'{value}' is too little: at least {least} B"))),
        false => Ok(bytes),
    }
}

/// Parses a number of seconds, which may be a fraction.
pub(super) fn seconds(name: &str, value: &str) -> Result<Duration, SessionError> {
    let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let why = || format!("'{value}' is no number of seconds: write 3, 0.5");
    seconds.ok_or_else(|| setting(name, why()))
}

/// Parses the words for on and off.
fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => Some(true),
        "0" | "off" | "no" | "false" => Some(false),
        _ => None,
    }
}

pub(super) fn switch(name: &str, value: &str) -> Result<bool, SessionError> {
    truth(value).ok_or_else(|| setting(name, format!("'{value}' is neither on nor off")))
}

pub(super) fn sampling(name: &str, value: &str) -> Result<Sampling, SessionError> {
    Sampling::named(value).ok_or_else(|| setting(name, format!("'{value}' is none of auto, off, force")))
}

pub(super) fn explain(value: &str) -> Explain {
    match truth(value) {
        Some(false) => Explain::Off,
        Some(true) => Explain::StandardError,
        None => Explain::File(PathBuf::from(value)),
    }
}

pub(super) fn stats(name: &str, value: &str) -> Result<Stats, SessionError> {
    match truth(value) {
        Some(false) => Ok(Stats::Off),
        Some(true) => Ok(Stats::StandardError),
        None if value.contains('/') => Ok(Stats::Folder(PathBuf::from(value))),
        None => {
            let why = format!("'{value}' is neither on, off nor a folder (write ./{value} for that one)");
            Err(setting(name, why))
        }
    }
}

pub(super) fn feed(name: &str, value: &str) -> Result<Feed, SessionError> {
    match value.split_once(':') {
        None if value == "accumulate" => Ok(Feed::Accumulate),
        None if value == "prepare" => Ok(Feed::Prepare),
        Some(("backlog", bytes)) => Ok(Feed::Backlog(number(name, bytes)? as usize)),
        _ => Err(setting(name, format!("'{value}' is none of accumulate, prepare, backlog:BYTES"))),
    }
}

pub(super) fn rails(name: &str, value: &str) -> Result<Vec<RailChoice>, SessionError> {
    let choice = |entry: &str| {
        let (interface, bandwidth) = match entry.split_once('=') {
            Some((interface, speed)) => (interface, rate(name, speed)?),
            None => (entry, 0),
        };
        if interface.is_empty() {
            return Err(setting(
                name,
                format!("an interface is missing in '{value}' (for example eth0,eth1=2.8gbit)"),
            ));
        }
        let (driver, interface) = match interface.split_once('/') {
            Some((driver, interface)) => {
                (Some(Network::named(driver).map_err(|why| setting(name, why))?), interface)
            }
            None => (None, interface),
        };
        Ok(RailChoice { interface: interface.into(), driver, bandwidth })
    };
    value.split(',').map(choice).collect()
}

pub(super) fn drivers(name: &str, value: &str) -> Result<Vec<Network>, SessionError> {
    let named = |word: &str| Network::named(word.trim()).map_err(|why| setting(name, why));
    let drivers: Vec<Network> = value.split(',').map(named).collect::<Result<_, _>>()?;
    Network::all_different(&drivers).map_err(|why| setting(name, why))?;
    Ok(drivers)
}

pub(super) fn rate(name: &str, value: &str) -> Result<u64, SessionError> {
    parse_rate(value).map(|bits| bits / 8).map_err(|why| setting(name, why))
}
