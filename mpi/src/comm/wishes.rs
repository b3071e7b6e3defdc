//! What a program wishes for the messages of a communicator: info keys that become hints of the engine.
//!
//! | key | values |
//! |---|---|
//! | `nmad_strategy` | name of a strategy, as `NMAD_STRATEGY` |
//! | `nmad_rail` | number or name of the only rail to be used: `1`, `tcp/eth0`, `eth0` |
//! | `nmad_priority` | -128 to 127; waiting messages with a higher one leave first |
//! | `nmad_prefer` | `latency`, `bandwidth` or `either` |
//!
//! An empty value takes a wish back. They are local: other ranks may have other wishes, or none.

use crate::error::{Class, Result};
use crate::info::Infos;
use crate::world::world;
use newmadeleine::{Hints, Prefer, RailId, Session, StrategyId};
use std::sync::atomic::{AtomicU32, Ordering};

/// What all keys of this library begin with.
const OURS: &str = "nmad_";
const KEYS: [&str; 4] = ["nmad_strategy", "nmad_rail", "nmad_priority", "nmad_prefer"];

/// Wishes, in one word that is read with every message; zero: none. From the lowest byte on: the strategy's
/// place and the rail's number, counted from one, the priority, the preference.
#[derive(Debug, Default)]
pub(crate) struct Wishes(AtomicU32);

impl Wishes {
    /// What a message is given, with the wishes added.
    #[inline(always)]
    pub(crate) fn of(&self, hints: Hints) -> Hints {
        match self.0.load(Ordering::Relaxed) {
            0 => hints,
            word => with(hints, word.to_le_bytes()),
        }
    }

    /// Takes over the wishes among these entries.
    ///
    /// # Errors
    /// A key or a value of this library's is unknown; then nothing has changed.
    pub(crate) fn take(&self, infos: &Infos) -> Result<()> {
        let mut word = self.0.load(Ordering::Relaxed).to_le_bytes();
        for key in (0..infos.len()).filter_map(|index| infos.key(index)).filter(|key| key.starts_with(OURS)) {
            let value = infos.get(&key).unwrap_or_default();
            let place = KEYS.iter().position(|known| *known == key).ok_or_else(|| {
                Class::INFO_KEY.error(format!("there is no info key '{key}' (known: {})", KEYS.join(", ")))
            })?;
            word[place] = if value.is_empty() { 0 } else { parse(place, &value, world()?.session())? };
        }
        self.0.store(u32::from_le_bytes(word), Ordering::Relaxed);
        Ok(())
    }
}

#[cold]
fn with(hints: Hints, [strategy, rail, priority, prefer]: [u8; 4]) -> Hints {
    Hints {
        strategy: usize::from(strategy).checked_sub(1).and_then(StrategyId::at),
        rail: rail.checked_sub(1).map(RailId),
        priority: priority as i8,
        prefer: Prefer::ALL[usize::from(prefer)],
        ..hints
    }
}

/// The value of the key at this place.
fn parse(place: usize, value: &str, session: &Session) -> Result<u8> {
    let wrong = |why: String| Class::INFO_VALUE.error(format!("{}: {why}", KEYS[place]));
    match place {
        0 => {
            let strategy = session.strategy(value).map_err(|error| wrong(error.to_string()))?;
            Ok(strategy.place() as u8 + 1)
        }
        1 => rail(value, session).map(|rail| rail as u8 + 1).map_err(wrong),
        2 => {
            let priority: std::result::Result<i8, _> = value.parse();
            let text = || format!("'{value}' is no whole number from -128 to 127");
            priority.map(|priority| priority as u8).map_err(|_| wrong(text()))
        }
        _ => {
            let found = Prefer::ALL.iter().position(|prefer| prefer.name() == value);
            let known = Prefer::ALL.map(Prefer::name).join(", ");
            found.map(|prefer| prefer as u8).ok_or_else(|| wrong(unknown(value, &known)))
        }
    }
}

fn unknown(value: &str, known: &str) -> String {
    format!("'{value}' is unknown (known: {known})")
}

fn rail(value: &str, session: &Session) -> std::result::Result<usize, String> {
    let names: Vec<String> = session.rails().into_iter().map(|rail| rail.name).collect();
    let is_meant = |name: &String| name == value || name.split_once('/').is_some_and(|(_, own)| own == value);
    let number = value.parse().ok().filter(|number| *number < names.len());
    let numbered = || names.iter().enumerate().map(|(number, name)| format!("{number} or {name}"));
    let found = number.or_else(|| names.iter().position(is_meant));
    found.ok_or_else(|| unknown(value, &numbered().collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_holds_all_wishes_and_leaves_the_rest_alone() {
        let wishes = Wishes::default();
        let synchronous = Hints { synchronous: true, ..Hints::default() };
        assert_eq!(wishes.of(synchronous), synchronous);
        wishes.0.store(u32::from_le_bytes([3, 2, -7i8 as u8, 1]), Ordering::Relaxed);
        let hints = wishes.of(synchronous);
        assert_eq!((hints.strategy, hints.rail), (StrategyId::at(2), Some(RailId(1))));
        assert_eq!((hints.priority, hints.prefer, hints.synchronous), (-7, Prefer::Latency, true));
        wishes.0.store(u32::from_le_bytes([0, 0, 1, 0]), Ordering::Relaxed);
        let hints = wishes.of(synchronous);
        assert_eq!((hints.strategy, hints.rail, hints.priority), (None, None, 1));
    }

    #[test]
    fn keys_of_others_are_none_of_ours_and_wrong_ones_change_nothing() {
        let (wishes, infos) = (Wishes::default(), Infos::default());
        infos.set("mpi_assert_no_any_tag", "true");
        wishes.take(&infos).expect("others' keys");
        infos.set("nmad_priorty", "1");
        let error = wishes.take(&infos).expect_err("misspelt");
        assert!(error.class() == Class::INFO_KEY && error.text().contains("nmad_priority"), "{error}");
        assert_eq!(wishes.of(Hints::default()), Hints::default());
    }
}
