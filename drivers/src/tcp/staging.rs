//! The buffer in which parts of a send call are copied together, and the choice of these parts.

use nmad_engine::Config;
use nmad_engine::InPlace;

/// Length from which data is left in place if that was not measured: a part costs the kernel about as much
/// as copying this many bytes.
pub const NOMINAL: u64 = Config::BLOCK_MIN as u64;

/// The buffer of a rail, and the lengths from which its data is left in place.
#[derive(Debug)]
pub struct Staging {
    pub bytes: Vec<u8>,
    /// Of contiguous data behind a header.
    pub message_min: u64,
    /// Of a block.
    pub block_min: u64,
}

impl Default for Staging {
    fn default() -> Self {
        Staging { bytes: Vec::new(), message_min: NOMINAL, block_min: NOMINAL }
    }
}

impl Staging {
    /// Sets the lengths from which data is left in place; `None`: the nominal ones.
    pub fn leave_in_place(&mut self, from: Option<InPlace>) {
        self.message_min = from.map_or(NOMINAL, |from| from.message);
        self.block_min = from.and_then(|from| from.block).unwrap_or(NOMINAL);
    }
}
