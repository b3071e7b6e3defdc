//! Doubt about a profile: a doubtful profile is used provisionally until it is measured without
//! disturbance.
//!
//! A disturbance enters a profile only if it hits every round of a measurement (see [`super::sampler`]); on
//! a busy machine or network it does. The measuring program rates the disturbance, and of two measurements
//! the less disturbed one is kept as a whole: methods are compared by times from one measurement.

use alloc::string::String;

/// Why a profile is provisional.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// Number of measurements so far; this profile is the least disturbed of them.
    pub count: u32,
    /// Degree of disturbance, in percent of the tolerated one.
    pub degree: u32,
    /// Cause of the disturbance, for the user.
    pub why: String,
}

impl Doubt {
    /// Parses a line of text with the two numbers first.
    pub(super) fn parse(text: &str) -> Option<Doubt> {
        let mut words = text.splitn(3, ' ');
        let mut number = || words.next()?.parse().ok();
        let (count, degree) = (number()?, number()?);
        Some(Doubt { count, degree, why: words.next()?.into() })
    }
}
