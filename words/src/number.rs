//! Decimal numbers with a unit: `1.5MiB`, `2.8gbit`. Exact: no floating point.

/// Digits behind the point that are read; more make no sense in a size or a rate.
const PLACES_MAX: usize = 9;

/// A decimal number: `digits` divided by ten to the power of `places`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: u64,
    places: u32,
}

impl Decimal {
    /// The number times `unit`; none if it does not fit into 64 bits or is no whole number.
    pub(crate) fn times(self, unit: u64) -> Option<u64> {
        let divisor = 10u128.pow(self.places);
        let product = u128::from(self.digits) * u128::from(unit);
        u64::try_from(product / divisor).ok().filter(|_| product.is_multiple_of(divisor))
    }
}

/// The number at the beginning of a text, and the unit behind it, without the spaces around it.
pub(crate) fn split(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_missing = whole.is_empty() || (number.contains('.') && fraction.is_empty());
    if is_missing || fraction.len() > PLACES_MAX || fraction.contains('.') {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((Decimal { digits, places: fraction.len() as u32 }, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_units_come_apart() {
        let found = |text| split(text).map(|(number, unit)| (number.times(1000), unit));
        assert_eq!(found("1.5 MiB"), Some((Some(1500), "MiB")));
        assert_eq!(found("8"), Some((Some(8000), "")));
        assert_eq!(found("0.0001k"), Some((None, "k")), "less than one");
        for wrong in ["", "x", ".5", "5.", "1.2.3", "-1", "99999999999999999999", "1.0123456789"] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }
}
