//! Parsers of values that the table of settings describes only in words.

use super::{Explain, Network, RailChoice, Stats};
use crate::error::SessionError;
use nmad_engine::Feed;
use nmad_words::setting::switch;
use nmad_words::{parse_rate, parse_size};
use std::path::PathBuf;

pub(super) fn setting(setting: &str, why: String) -> SessionError {
    SessionError::Setting { setting: setting.into(), why }
}

pub(super) fn explain(value: &str) -> Explain {
    match switch(value) {
        Some(false) => Explain::Off,
        Some(true) => Explain::StandardError,
        None => Explain::File(PathBuf::from(value)),
    }
}

pub(super) fn stats(value: &str) -> Result<Stats, String> {
    match switch(value) {
        Some(false) => Ok(Stats::Off),
        Some(true) => Ok(Stats::StandardError),
        None if value.contains('/') => Ok(Stats::Folder(PathBuf::from(value))),
        None => Err(format!("'{value}' is neither on, off nor a folder (write ./{value} for that one)")),
    }
}

pub(super) fn feed(value: &str) -> Result<Feed, String> {
    match value.split_once(':') {
        None if value == "accumulate" => Ok(Feed::Accumulate),
        None if value == "prepare" => Ok(Feed::Prepare),
        Some(("backlog", bytes)) => Ok(Feed::Backlog(parse_size(bytes)? as usize)),
        _ => Err(format!("'{value}' is none of accumulate, prepare, backlog:BYTES")),
    }
}

pub(super) fn rails(value: &str) -> Result<Vec<RailChoice>, String> {
    let choice = |entry: &str| {
        let (interface, bandwidth) = match entry.split_once('=') {
            Some((interface, speed)) => (interface, rate(speed)?),
            None => (entry, 0),
        };
        if interface.is_empty() {
            return Err(format!("an interface is missing in '{value}' (for example eth0,eth1=2.8gbit)"));
        }
        let (driver, interface) = match interface.split_once('/') {
            Some((driver, interface)) => (Some(Network::named(driver)?), interface),
            None => (None, interface),
        };
        Ok(RailChoice { interface: interface.into(), driver, bandwidth })
    };
    value.split(',').map(choice).collect()
}

pub(super) fn drivers(value: &str) -> Result<Vec<Network>, String> {
    let drivers: Vec<Network> =
        value.split(',').map(|word| Network::named(word.trim())).collect::<Result<_, _>>()?;
    Network::all_different(&drivers)?;
    Ok(drivers)
}

/// Parses a rate into bytes per second.
pub(super) fn rate(value: &str) -> Result<u64, String> {
    parse_rate(value).map(|bits| bits / 8)
}
