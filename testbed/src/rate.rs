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
#[error("{0}; or max; a rail of a testbed has 1mbit to 1000gbit")]
pub struct InvalidRate(pub String);

/// Below, the burst alone would last a second; above, no machine's memory keeps up.
const ALLOWED: std::ops::RangeInclusive<u64> = 1_000_000..=1_000_000_000_000;

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Rate, InvalidRate> {
        if text.trim().eq_ignore_ascii_case("max") {
            return Ok(Rate::Unlimited);
        }
        match nmad_words::parse_rate(text).map_err(InvalidRate)? {
            bits if ALLOWED.contains(&bits) => Ok(Rate::Limited(bits)),
            _ => Err(InvalidRate(format!("'{text}' is out of range: write 2.8gbit or 500mbit"))),
        }
    }
}

impl fmt::Display for Rate {
    /// As it is written on the command line: `2.8gbit`, `500mbit`, `max`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Rate::Unlimited => write!(out, "max"),
            Rate::Limited(bits) => write!(out, "{}", nmad_words::rate(bits)),
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
            ("4G", 4_000_000_000, "4gbit"),
            ("0.5Gbps", 500_000_000, "500mbit"),
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
        for text in ["", "foo", "4", "-4", "0", "2000gbit", "10kbit", "nan", "inf", "4tbit", "1e30", "4 4"] {
            let error = text.parse::<Rate>().unwrap_err();
            assert!(error.to_string().contains("2.8gbit"), "{text}");
        }
    }
}
