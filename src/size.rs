//! Numbers of bytes as people write them: `8`, `64KiB`, `4M`.

use serde::Deserialize;

const UNITS: [(&str, u64); 9] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
];

/// Bytes of a size; units are powers of 1024 however they are written. None: it is no size, or too large.
pub fn parse_size(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| lower.strip_suffix(name).map(|digits| (digits, *unit)))
        .unwrap_or((lower.strip_suffix('b').unwrap_or(&lower), 1));
    digits.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(unit))
}

/// A size in the configuration file, with a unit or as a plain number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Written {
    Number(u64),
    Text(String),
}

impl Written {
    pub(crate) fn text(self) -> String {
        match self {
            Written::Number(bytes) => bytes.to_string(),
            Written::Text(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in
            [("0", 0), ("8", 8), ("8B", 8), ("64KiB", 65536), ("4M", 4 << 20), ("1 gib", 1 << 30)]
        {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for wrong in ["", "x", "4T", "-1", "99999999999999999999", "99999999999g"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }
}
