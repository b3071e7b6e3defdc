//! Values as differences. The cards of ranks have the same text but for some numbers, such as ports, so that
//! a value is written as the differences of its numbers from those of the value before it.
//!
//! `~` begins a difference. A letter `a` to `z` chooses a number: the next one, or that behind 1 to 25 equal
//! numbers. The difference to it follows as a decimal number; `Z` passes over 26 equal numbers. A value whose
//! text differs is written as it is; one that begins with `~` gets another `~` in front.

use std::fmt::Write;
use std::ops::Range;

/// First byte of a difference.
const MARK: char = '~';

/// Numbers that one letter can choose from.
const REACH: usize = 26;

/// Longest number in digits, so that it and every difference fit into 64 bits.
const DIGITS_MAX: usize = 18;

/// The places of the numbers of a text, in its order.
struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Numbers<'_> {
    fn of(text: &str) -> Numbers<'_> {
        Numbers { bytes: text.as_bytes(), at: 0 }
    }
}

impl Iterator for Numbers<'_> {
    type Item = Range<usize>;

    /// Returns the next number without leading zeros that is short enough. All other digits are text.
    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let start = self.at + self.bytes[self.at..].iter().position(u8::is_ascii_digit)?;
            let digits = self.bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.at = start + digits;
            if digits == 1 || (digits <= DIGITS_MAX && self.bytes[start] != b'0') {
                return Some(start..self.at);
            }
        }
    }
}

/// Appends `value` to `out`, as a difference from `before` if both have the same text.
pub fn write(before: &str, value: &str, out: &mut String) {
    let begin = out.len();
    out.push(MARK);
    if !before.is_empty() && difference(before, value, out).is_some() {
        return;
    }
    out.truncate(begin);
    if value.starts_with(MARK) {
        out.push(MARK);
    }
    out.push_str(value);
}

fn difference(before: &str, value: &str, out: &mut String) -> Option<()> {
    let (mut olds, mut news) = (Numbers::of(before), Numbers::of(value));
    let (mut old_end, mut new_end, mut equal) = (0, 0, 0);
    loop {
        let (old, new) = match (olds.next(), news.next()) {
            (Some(old), Some(new)) => (old, new),
            (None, None) => return (before[old_end..] == value[new_end..]).then_some(()),
            _ => return None,
        };
        if before[old_end..old.start] != value[new_end..new.start] {
            return None;
        }
        (old_end, new_end) = (old.end, new.end);
        let (old, new) = (&before[old], &value[new]);
        if old == new {
            equal += 1;
            continue;
        }
        (0..equal / REACH).for_each(|_| out.push('Z'));
        out.push(char::from(b'a' + (equal % REACH) as u8));
        write!(out, "{}", new.parse::<i64>().ok()? - old.parse::<i64>().ok()?).ok()?;
        equal = 0;
    }
}

/// Reads what [`write()`] has written behind `before`; `None` if it is malformed.
pub fn read(before: &str, text: &str) -> Option<String> {
    let Some(mut rest) = text.strip_prefix(MARK) else { return Some(text.to_owned()) };
    if rest.starts_with(MARK) {
        return Some(rest.to_owned());
    }
    let mut value = String::with_capacity(before.len() + rest.len());
    let (mut numbers, mut copied) = (Numbers::of(before), 0);
    while let Some((equal, by)) = next_change(&mut rest)? {
        let place = numbers.nth(equal)?;
        let new = before[place.clone()].parse::<i64>().ok()?.checked_add(by).filter(|new| *new >= 0)?;
        value.push_str(&before[copied..place.start]);
        write!(value, "{new}").ok()?;
        copied = place.end;
    }
    value.push_str(&before[copied..]);
    Some(value)
}

/// Removes the next change from the front of `rest`; returns how many numbers before it are equal, and its
/// difference. `Some(None)`: `rest` is empty; `None`: it is malformed.
fn next_change(rest: &mut &str) -> Option<Option<(usize, i64)>> {
    if rest.is_empty() {
        return Some(None);
    }
    let passed = rest.len() - rest.trim_start_matches('Z').len();
    let letter = *rest.as_bytes().get(passed).filter(|byte| byte.is_ascii_lowercase())?;
    let behind = &rest[passed + 1..];
    let len = behind.bytes().take_while(|byte| *byte == b'-' || byte.is_ascii_digit()).count();
    let by = behind[..len].parse().ok()?;
    *rest = &behind[len..];
    Some(Some((passed * REACH + usize::from(letter - b'a'), by)))
}

/// Writes pairs of keys and values, none of which has a blank or a newline, one a line.
pub fn write_pairs(pairs: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut before = ("", "");
    for (key, value) in pairs {
        write(before.0, key, &mut out);
        out.push(' ');
        write(before.1, value, &mut out);
        out.push('\n');
        before = (key, value);
    }
    out
}

/// Reads what [`write_pairs`] has written; `None` if it is malformed.
pub fn read_pairs(text: &str) -> Option<Vec<(String, String)>> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for line in text.split_terminator('\n') {
        let (key, value) = line.split_once(' ')?;
        let (old_key, old_value) = pairs.last().map_or(("", ""), |(key, value)| (key, value));
        pairs.push((read(old_key, key)?, read(old_value, value)?));
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(before: &str, value: &str) -> String {
        let mut out = String::new();
        write(before, value, &mut out);
        assert_eq!(read(before, &out).as_deref(), Some(value), "{before} {out}");
        out
    }

    #[test]
    fn values_with_the_same_text_are_differences_of_their_numbers() {
        let card = |port: u32, core| format!("1:0%3D10.0.0.1/16:{port}%3Bcores%3D{core}%3Bmachine%3D1d0c39");
        assert_eq!(written("card-9", "card-10"), "~a1");
        assert_eq!(written(&card(40_000, 9), &card(32_768, 10)), "~i-7232c1");
        assert_eq!(written(&card(1, 1), &card(1, 1)), "~");
        assert_eq!(written("", "card-0"), "card-0");
        assert_eq!(written("card-0", ""), "");
        for (before, value) in [("a1", "b1"), ("a1", "a1b"), ("a1", "a01"), ("a01", "a1"), ("a", "a1")] {
            assert_eq!(written(before, value), value, "another text");
        }
        let long = "9".repeat(DIGITS_MAX);
        assert_eq!(written("0", &long), format!("~a{long}"));
        assert_eq!(written(&long, &format!("{long}9")), format!("{long}9"), "longer than 64 bits");
        assert_eq!(written("~1", "~2"), "~a1");
        assert_eq!(written("x", "~2"), "~~2");
        let many = |last: u32| format!("{}{last}", "1.".repeat(60));
        assert_eq!(written(&many(3), &many(5)), "~ZZi2");
        assert_eq!(written("é0012é3", "é0012é4"), "~a1", "a number with leading zeros is text");
    }

    #[test]
    fn malformed_differences_are_refused() {
        for text in
            ["~a", "~1", "~b1", "~a1a1", "~a1x", "~a--1", "~A1", "~a-9", "~Z", "~a99999999999999999999"]
        {
            assert_eq!(read("card-8", text), None, "{text}");
        }
        assert_eq!(read_pairs("x\n"), None);
        assert_eq!(read_pairs("x ~a\n"), None);
    }

    #[test]
    fn pairs_survive() {
        let pair = |rank: u32| (format!("card-{rank}"), format!("1:{}", 30_000 + rank * rank % 77));
        let pairs: Vec<_> = (0..100).map(pair).chain([("other".into(), "~ü|=".into())]).collect();
        let text = write_pairs(&pairs);
        assert_eq!(read_pairs(&text).as_ref(), Some(&pairs));
        assert!(text.len() < 100 * 12, "{}", text.len());
        assert_eq!(read_pairs(&write_pairs(&[])), Some(Vec::new()));
    }
}
