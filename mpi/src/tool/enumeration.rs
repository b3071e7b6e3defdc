//! Names for numbers.

use crate::error::{Class, Result};
use crate::handle::DYNAMIC;
use crate::world::world;

/// An enumeration; its handle is its number behind the predefined handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enumeration {
    /// The rails of this process, by their numbers.
    Rails,
    /// The elements of the event of a message.
    Message,
    /// The elements of the event of a notice.
    Notice,
}

const ALL: [Enumeration; 3] = [Enumeration::Rails, Enumeration::Message, Enumeration::Notice];

impl Enumeration {
    pub(crate) fn handle(self) -> usize {
        DYNAMIC as usize + self as usize
    }

    /// The enumeration of a handle.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn of(handle: usize) -> Result<Enumeration> {
        let found = handle.checked_sub(DYNAMIC as usize).and_then(|index| ALL.get(index).copied());
        found.ok_or_else(|| Class::T_INVALID_HANDLE.error("there is no such enumeration"))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Enumeration::Rails => "nmad_rails",
            Enumeration::Message => "nmad_message_elements",
            Enumeration::Notice => "nmad_notice_elements",
        }
    }

    /// The names in the order of their numbers.
    pub(crate) fn items(self) -> Vec<String> {
        let named = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
        match self {
            Enumeration::Rails => {
                let rails = world().map(|world| world.session().rails()).unwrap_or_default();
                rails.into_iter().map(|rail| rail.name).collect()
            }
            Enumeration::Message => named(&["rank", "bytes", "predicted_ns", "actual_ns"]),
            Enumeration::Notice => named(&["rank"]),
        }
    }
}
