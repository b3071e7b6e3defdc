//! The buffer in which parts of a send call are copied together, and the choice of these parts.

use nmad_engine::Config;
use nmad_engine::transfer::driver::InPlace;

/// Lengths from which data is left in place if the rail has no profile: a part costs the kernel about as much
/// as copying this many bytes.
pub const NOMINAL: InPlace = InPlace { message: Config::BLOCK_MIN as u64, block: Config::BLOCK_MIN as u64 };

/// The buffer of a rail, and the lengths from which its data is left in place.
#[derive(Debug)]
pub struct Staging {
    pub bytes: Vec<u8>,
    pub from: InPlace,
}

impl Default for Staging {
    fn default() -> Self {
        Staging { bytes: Vec::new(), from: NOMINAL }
    }
}
