//! How blocking sends of a program follow each other, and those that have ended before their receivers had
//! them ([`crate::protocol::early`]).

use crate::clock::Instant;

/// Blocking sends that have ended early, and how blocking sends follow each other.
#[derive(Debug, Default)]
pub(crate) struct EarlySends {
    /// Bytes in copies.
    pub(crate) bytes: u64,
    /// When the last blocking send that had to wait for its receiver ended.
    pub(crate) ended_at: Instant,
    /// Number of such sends in a row, up to the last one.
    in_a_row: u32,
}

impl EarlySends {
    /// A blocking send begins to wait for its receiver; whether the program sends several messages in a row:
    /// this send follows another one, or the last ones came in a row.
    pub(crate) fn begins(&mut self, now: Instant, handshake_ns: u64) -> bool {
        let follows = now.since(self.ended_at).as_ns() < handshake_ns;
        let is_row = follows || self.in_a_row > 1;
        self.in_a_row = if follows { self.in_a_row.saturating_add(1) } else { 1 };
        is_row
    }
}
