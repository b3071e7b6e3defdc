//! Sizes on the command line: `8`, `64KiB`, `4M`.

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
/// Twice of it fits into the memory of the smallest machine that one would measure on.
const MOST: u64 = 1 << 30;

/// Bytes of a size; units are powers of 1024 however they are written.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| lower.strip_suffix(name).map(|digits| (digits, *unit)))
        .unwrap_or((lower.strip_suffix('b').unwrap_or(&lower), 1));
    let number = digits.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    match number {
        Some(bytes) if bytes <= MOST => Ok(bytes as usize),
        Some(_) => Err("at most 1GiB can be measured".into()),
        None => Err("write bytes, as 8, 64KiB or 4MiB".into()),
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
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "x", "4T", "-1", "2G", "99999999999999999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
