//! Numbers of bytes as people write them: `8`, `64KiB`, `1.5MiB`, `4MB`.

use crate::number::split;

/// The longest and the most exact units first.
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// Bytes of a size, upper and lower case alike: `KiB`, `MiB`, `GiB`, `TiB` and the letters `K`, `M`, `G`,
/// `T` are powers of 1024, `KB`, `MB`, `GB`, `TB` are powers of 1000, and no unit is bytes. A fraction must
/// make a whole number of bytes.
///
/// # Errors
/// The text names the cause and the remedy.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("'{text}' {why}: write 4096, 64KiB (of 1024), 1.5MiB or 4MB (of 1000)");
    let (number, unit) = split(text).ok_or_else(|| wrong("is not a number of bytes"))?;
    let unit = unit.to_ascii_lowercase();
    let found = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(|| wrong("has an unknown unit"))?;
    number.times(found.1).ok_or_else(|| wrong("is no whole number of bytes, or too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_say_whether_they_are_powers_of_1024_or_of_1000() {
        for (text, bytes) in [
            ("0", 0),
            ("8", 8),
            ("8B", 8),
            ("64KiB", 65_536),
            ("1.5MiB", 1_572_864),
            ("4M", 4 << 20),
            ("4MB", 4_000_000),
            ("0.5kb", 500),
            ("1 gib", 1 << 30),
            ("2t", 2 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "x", "4P", "-1", "99999999999999999999", "99999999999g", "0.3B", "4 M B"] {
            assert!(parse_size(wrong).is_err_and(|why| why.contains("64KiB")), "{wrong}");
        }
    }
}
