//! What the network does without the target's help, as long as it is under way.

use crate::place::Place;
use nmad_engine::{RequestId, Segments};

/// One access that is under way.
pub struct Reaching {
    /// Its request.
    pub request: RequestId,
    /// What is asked of the target if its link is lost: by then nothing of it happens any more, and a put or
    /// a get that is not complete may be done again. Of an atomic nobody knows whether it was done.
    pub instead: Instead,
    /// Where, at the target.
    pub place: Place,
    /// The memory here, of the same length.
    pub data: Segments,
    /// That memory, if nobody wants what an atomic has found.
    pub scratch: Option<Box<u64>>,
}

/// What is asked of the target instead of an access of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// To write the data.
    Put,
    /// To read them.
    Get,
    /// Nothing.
    Nothing,
}
