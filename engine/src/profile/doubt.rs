//! Doubt: what speaks against a profile, which is used, but provisionally, until it was measured in quiet.
//!
//! A disturbance has to hit every round of a measurement to be believed (see [`super::sampler`]); on a
//! machine or a network that is busy all the time it does. Who measures judges how much that was, and of two
//! measurements the less disturbed one is kept, as a whole: methods are compared by times that belong
//! together.

use alloc::string::String;

/// Why a profile is provisional.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// Measurements so far; this is the least disturbed of them.
    pub count: u32,
    /// How far it was disturbed, in percent of what is tolerated.
    pub degree: u32,
    /// By what, for people.
    pub why: String,
}

impl Doubt {
    /// What a line of text says, with numbers first.
    pub(super) fn parse(text: &str) -> Option<Doubt> {
        let mut words = text.splitn(3, ' ');
        let mut number = || words.next()?.parse().ok();
        let (count, degree) = (number()?, number()?);
        Some(Doubt { count, degree, why: words.next()?.into() })
    }
}
