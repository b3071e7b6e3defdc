//! Encodes any text as values of a key-value space that takes short words without blanks.
//!
//! The encoding writes `%XX` for every byte that a launcher might misread, and cuts the text into parts
//! that fit. The first part begins with the number of parts: key `K` holds `3:...`, keys `K+1` and `K+2`
//! the rest. This file knows limits, not launchers.

use crate::LaunchError;

/// Longest encoded value in bytes; a longer one is an error of the caller.
pub const VALUE_MAX: usize = 16 << 20;

/// Bytes for a part's number at the end of its key (`+` and digits).
pub const SUFFIX_MAX: usize = 8;

/// Bytes for the count and the colon at the beginning of the first part.
const HEAD_MAX: usize = 9;

/// Returns the key of part `part` of the value of `key`.
pub fn part_key(key: &str, part: usize) -> String {
    if part == 0 { key.to_owned() } else { format!("{key}+{part}") }
}

/// Checks a key: it must be short, and have only characters that all launchers accept.
///
/// # Errors
/// [`LaunchError::Key`].
pub fn check_key(key: &str, len_max: usize) -> Result<(), LaunchError> {
    let fail = |why: String| Err(LaunchError::Key { key: key.chars().take(100).collect(), why });
    let limit = len_max.saturating_sub(SUFFIX_MAX + 1);
    if key.is_empty() || key.len() > limit {
        return fail(format!("its length should be between 1 and {limit} bytes"));
    }
    if key.starts_with("PMI_") {
        return fail("names that begin with PMI_ are the launcher's".into());
    }
    match key.chars().find(|c| !(c.is_ascii_alphanumeric() || "._-/".contains(*c))) {
        Some(bad) => fail(format!("it has a {bad:?}")),
        None => Ok(()),
    }
}

/// Splits a value into parts of at most `part_max` bytes.
///
/// # Errors
/// [`LaunchError::Value`] for a value beyond [`VALUE_MAX`], or a launcher whose limit leaves no room.
pub fn split(key: &str, value: &str, part_max: usize) -> Result<Vec<String>, LaunchError> {
    let fail = |why: String| Err(LaunchError::Value { key: key.to_owned(), why });
    let written = escape(value);
    if written.len() > VALUE_MAX {
        return fail(format!("it is longer than {VALUE_MAX} bytes"));
    }
    if part_max <= HEAD_MAX {
        return fail(format!("the launcher takes only {part_max} bytes for a value"));
    }
    let (first, rest) = written.split_at(written.len().min(part_max - HEAD_MAX));
    let rest: Vec<&[u8]> = rest.as_bytes().chunks(part_max).collect();
    let mut parts = vec![format!("{}:{first}", rest.len() + 1)];
    parts.extend(rest.into_iter().map(|part| String::from_utf8_lossy(part).into_owned()));
    Ok(parts)
}

/// Parses the first part; returns the number of parts and its text.
pub fn head(first: &str) -> Option<(usize, &str)> {
    let (count, text) = first.split_once(':')?;
    let count: usize = count.parse().ok()?;
    (1..=VALUE_MAX).contains(&count).then_some((count, text))
}

/// Encodes all bytes except letters, digits and a few marks as `%XX`.
pub fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-/:+,@()[]".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Decodes the joined parts of [`split`]; `None` for other text.
pub fn unescape(written: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(value: &str, part_max: usize) {
        let parts = split("k", value, part_max).unwrap();
        assert!(parts.iter().all(|part| part.len() <= part_max && part.is_ascii() && !part.contains(' ')));
        let (count, first) = head(&parts[0]).unwrap();
        assert_eq!(count, parts.len());
        let joined = format!("{first}{}", parts[1..].concat());
        assert_eq!(unescape(&joined).as_deref(), Some(value));
    }

    #[test]
    fn any_text_survives_a_round_trip() {
        for value in ["", "a", "two words\nand a line", "é=;%20\0\"'\\", &"x y".repeat(5000)] {
            for part_max in [10, 11, 64, 1023] {
                round_trip(value, part_max);
            }
        }
    }

    #[test]
    fn limits_are_errors() {
        assert!(split("k", &"x".repeat(VALUE_MAX + 1), 1000).is_err());
        assert!(split("k", "x", 9).is_err());
        for key in ["", "a b", "a=b", "a+1", "PMI_x", &"k".repeat(60)] {
            assert!(check_key(key, 64).is_err(), "{key}");
        }
        check_key("card-17/tcp_eth0.4", 64).unwrap();
    }

    #[test]
    fn foreign_values_are_recognised() {
        for text in ["", "x", ":x", "0:x", "(vector,(0,1,1))"] {
            assert_eq!(head(text), None, "{text}");
        }
        for text in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }
}
