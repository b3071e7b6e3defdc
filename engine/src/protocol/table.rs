//! All protocols. A new one is a file and a line here.

use super::rules::Rules;
use super::{eager, parts, push, read, rendezvous, rtr};

/// The protocols of messages that wait in the window; of equal costs the first counts. Messages that find
/// their rail idle leave by the same choice ([`super::plan`]), and the builder decides in place of whom
/// data of a packet stays in place.
pub(crate) static PROTOCOLS: [Rules; 6] =
    [read::RULES, eager::RULES, parts::RULES, rtr::RULES, push::RULES, rendezvous::RULES];
