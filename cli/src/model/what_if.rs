//! `--what-if`: changes of the setting.

use newmadeleine::engine::Forecast;
use nmad_bench::phase::outcome::{Rail, Setting};
use nmad_testbed::Rate;
use std::fmt;
use std::str::FromStr;

/// Changes that are made together, as they were written.
#[derive(Debug, Clone)]
pub(super) struct WhatIf {
    text: String,
    changes: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Eager(u64),
    Rails(Vec<Rate>),
    Fragments(u64),
    ParallelSend,
}

impl FromStr for WhatIf {
    type Err = String;

    fn from_str(text: &str) -> Result<WhatIf, String> {
        let changes = text.split('+').map(change).collect::<Result<_, _>>()?;
        Ok(WhatIf { text: text.into(), changes })
    }
}

fn change(text: &str) -> Result<Change, String> {
    let size = nmad_words::parse_size;
    match text.split_once('=') {
        Some(("eager", len)) => Ok(Change::Eager(size(len)?)),
        Some(("fragments", len)) => match size(len)? {
            0 => Err("a fragment has a byte at least".into()),
            len => Ok(Change::Fragments(len)),
        },
        Some(("rails", rates)) => {
            let rates = rates.split(',').map(|rate| rate.parse().map_err(|why| format!("{rate}: {why}")));
            Ok(Change::Rails(rates.collect::<Result<_, String>>()?))
        }
        None if text == "parallel-send" => Ok(Change::ParallelSend),
        _ => Err(format!(
            "`{text}` is no change: write eager=512KiB, rails=4gbit,2.8gbit, fragments=64KiB or parallel-send"
        )),
    }
}

impl WhatIf {
    /// The setting with the changes.
    pub(super) fn applied(&self, setting: &Setting, latency_us: u64) -> Result<Setting, String> {
        let mut setting = setting.clone();
        for change in &self.changes {
            match change {
                Change::Eager(len) => (setting.eager_max, setting.as_traced) = (*len, false),
                Change::Rails(rates) => {
                    setting.rails = nominal(rates, latency_us)?.into_iter().map(Rail::from).collect();
                }
                Change::Fragments(len) => setting.fragment = Some(*len),
                Change::ParallelSend => setting.parallel = true,
            }
        }
        Ok(setting)
    }
}

impl fmt::Display for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Rails by their rates.
pub(super) fn nominal(rates: &[Rate], latency_us: u64) -> Result<Vec<Forecast>, String> {
    let rail = |rate: &Rate| match rate {
        Rate::Limited(bits) => Ok(Forecast::nominal(latency_us * 1000, bits / 8, 1)),
        Rate::Unlimited => {
            Err("a rail without a limit says nothing about its rate: write one, as 10gbit".into())
        }
    };
    rates.iter().map(rail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_made_together() {
        let rails = nominal(&["1gbit".parse().unwrap()], 10).unwrap();
        let setting = Setting::of_sockets(rails, 1);
        let change: WhatIf = "eager=2KiB+rails=4gbit,2.8gbit+parallel-send".parse().unwrap();
        let changed = change.applied(&setting, 10).unwrap();
        assert_eq!((changed.eager_max, changed.rails.len(), changed.parallel), (2048, 2, true));
        assert_eq!(change.to_string(), "eager=2KiB+rails=4gbit,2.8gbit+parallel-send");
    }

    #[test]
    fn what_is_no_change_says_what_is() {
        for wrong in ["", "eager", "eager=lots", "fragments=0", "rails=fast", "faster"] {
            assert!(wrong.parse::<WhatIf>().is_err(), "{wrong}");
        }
        assert!("faster".parse::<WhatIf>().unwrap_err().contains("parallel-send"));
        assert!(nominal(&["max".parse().unwrap()], 1).is_err());
    }
}
