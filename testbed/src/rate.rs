//! How fast a rail may send.

use std::fmt;
use std::str::FromStr;

/// The rate of a rail, in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// As fast as the machine copies.
    Unlimited,
    /// Bits per second, counting Ethernet frames with their headers.
    Limited(u64),
}

/// A text that is no rate, with what would be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no rate: write 4gbit, 2.8gbit, 500mbit, plain 4 (Gbit/s, 1mbit to 1000gbit) or max")]
pub struct InvalidRate(pub String);

const UNITS: [(&str, f64); 3] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)];
/// Below, the burst alone would last a second; above, no machine's memory keeps up.
const ALLOWED: std::ops::RangeInclusive<f64> = 1e6..=1e12;

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Rate, InvalidRate> {
        let lower = text.trim().to_ascii_lowercase();
        if lower == "max" {
            return Ok(Rate::Unlimited);
        }
        let (digits, unit) = UNITS
            .iter()
            .find_map(|(name, unit)| lower.strip_suffix(name).map(|digits| (digits, *unit)))
            .unwrap_or((&lower, 1e9));
        let bits = digits.trim().parse::<f64>().ok().map(|number| number * unit);
        match bits {
            Some(bits) if ALLOWED.contains(&bits) => Ok(Rate::Limited(bits.round() as u64)),
            _ => Err(InvalidRate(text.to_owned())),
        }
    }
}

impl fmt::Display for Rate {
    /// As it is written on the command line: `2.8gbit`, `500mbit`, `max`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Rate::Unlimited => write!(out, "max"),
            Rate::Limited(bits) if bits >= 1_000_000_000 => write!(out, "{}gbit", bits as f64 / 1e9),
            Rate::Limited(bits) => write!(out, "{}mbit", bits as f64 / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_written_back() {
        for (text, bits, written) in [
            ("4gbit", 4_000_000_000, "4gbit"),
            ("2.8gbit", 2_800_000_000, "2.8gbit"),
            ("4", 4_000_000_000, "4gbit"),
            ("0.5", 500_000_000, "500mbit"),
            ("500mbit", 500_000_000, "500mbit"),
            (" 2500 kbit ", 2_500_000, "2.5mbit"),
        ] {
            let rate = text.parse::<Rate>().unwrap();
            assert_eq!(rate, Rate::Limited(bits), "{text}");
            assert_eq!(rate.to_string(), written);
        }
        assert_eq!("max".parse(), Ok(Rate::Unlimited));
    }

    #[test]
    fn nonsense_is_refused_with_examples() {
        for text in ["", "foo", "-4", "0", "nan", "inf", "4tbit", "1e30", "4 4"] {
            let error = text.parse::<Rate>().unwrap_err();
            assert!(error.to_string().contains("2.8gbit"), "{text}");
        }
    }
}
