//! The time of day as text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the present time, like `2026-11-28T08:33:34.123Z`.
pub fn now() -> String {
    text(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Formats a time since the beginning of 1970, UTC.
pub fn text(since: Duration) -> String {
    let seconds = since.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let milliseconds = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Returns the Gregorian date of a day since 1970. The algorithm begins years in March, so that a leap day
/// is the last day of its year.
fn date(days: u64) -> (u64, u64, u64) {
    // Count from the first of March of the year 0.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, turn) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + turn, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_735_689_599, "2024-12-31T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(text(Duration::from_secs(seconds)), format!("{expected}.000Z"));
        }
        assert!(text(Duration::from_millis(7)).ends_with(":00.007Z"));
    }
}
