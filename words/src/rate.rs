//! Rates of networks as people write them: `10gbit`, `10G`, `10Gbps`, `1.25GB/s`.

use crate::number::split;

/// Prefixes of units.
const PREFIXES: [(&str, u64); 4] =
    [("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000), ("t", 1_000_000_000_000)];
/// What may follow a prefix: bits per second, in upper and lower case.
const BITS: [&str; 5] = ["", "bit", "bits", "bit/s", "bits/s"];
/// Bits per second as well. The small letter tells them from bytes.
const SMALL: [&str; 3] = ["b", "b/s", "bps"];
/// Bytes per second.
const CAPITAL: [&str; 3] = ["B", "B/s", "Bps"];
/// A petabit per second; more is a typing error.
const MOST: u64 = 1_000_000_000_000_000;

/// Bits per second of a rate: a number and a unit, of which `k`, `M`, `G` and `T`, upper and lower case
/// alike, are powers of 1000. `G`, `Gb`, `Gbit`, `Gbps` and the same with `/s` are bits; `GB`, `GB/s` and
/// `GBps`, with a capital B, are bytes. The unit must be written: a plain number may mean anything.
///
/// # Errors
/// The text names the cause and the remedy.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("'{text}' {why}: write 2.8gbit, 500mbit, 10G, 10Gbps or 1.25GB/s");
    let (number, unit) = split(text).ok_or_else(|| wrong("is not a rate"))?;
    if unit.is_empty() {
        return Err(wrong("has no unit"));
    }
    let unit = bits_of(unit).ok_or_else(|| wrong("has an unknown unit"))?;
    let bits = number.times(unit).filter(|bits| (1..=MOST).contains(bits));
    bits.ok_or_else(|| wrong("is zero, no whole number of bits, or too much"))
}

/// Bits per second of a unit.
fn bits_of(unit: &str) -> Option<u64> {
    let (first, rest) = unit.split_at_checked(1)?;
    let prefix = PREFIXES.iter().find(|(name, _)| first.eq_ignore_ascii_case(name));
    let (scale, rest) = prefix.map_or((1, unit), |(_, scale)| (*scale, rest));
    if CAPITAL.contains(&rest) {
        return Some(8 * scale);
    }
    let is_bits = SMALL.contains(&rest) || BITS.iter().any(|name| rest.eq_ignore_ascii_case(name));
    is_bits.then_some(scale)
}

/// Bits per second in the form that [`parse_rate`] reads: `2.8gbit`, `500mbit`.
pub fn rate(bits: u64) -> String {
    match bits {
        1_000_000_000.. => format!("{}gbit", bits as f64 / 1e9),
        _ => format!("{}mbit", bits as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_bits_and_bytes() {
        for text in ["10G", "10g", "10Gb", "10Gbps", "10gbit", "10 GBIT", "10Gbit/s", "10Gb/s", "1.25GB/s"] {
            assert_eq!(parse_rate(text), Ok(10_000_000_000), "{text}");
        }
        let others = [
            ("500mbit", 500_000_000),
            ("0.5 mbit", 500_000),
            ("2500kbit", 2_500_000),
            ("8bit", 8),
            ("1MBps", 8_000_000),
        ];
        for (text, bits) in others {
            assert_eq!(parse_rate(text), Ok(bits), "{text}");
        }
        for wrong in
            ["", "4", "-1gbit", "gbit", "0gbit", "nangbit", "4 gigs", "4xbit", "2000tbit", "4GiB/s", "4GBPS"]
        {
            assert!(parse_rate(wrong).is_err_and(|why| why.contains("2.8gbit")), "{wrong}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        for (bits, text) in [(2_800_000_000, "2.8gbit"), (500_000_000, "500mbit"), (62_500, "0.0625mbit")] {
            assert_eq!((rate(bits).as_str(), parse_rate(text)), (text, Ok(bits)));
        }
    }
}
