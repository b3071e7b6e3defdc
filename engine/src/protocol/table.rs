//! The table of all protocols. A new one needs a file and a line here.

use super::rules::Rules;
use super::{eager, parts, push, read, rendezvous, rtr};

/// The protocols of messages in the window; of equal costs the first counts. Messages sent at once use the
/// same choice ([`super::plan`]); the packet builder decides which data is sent in place.
pub(crate) static PROTOCOLS: [Rules; 6] =
    [read::RULES, eager::RULES, parts::RULES, rtr::RULES, push::RULES, rendezvous::RULES];
