//! What the network does without the target's help, as long as it is under way.

use crate::place::Place;
use nmad_engine::{Act, RequestId, Segments};

/// One access that is under way.
pub struct Reaching {
    /// Its request.
    pub request: RequestId,
    /// What it does. If its link is lost nothing of it happens any more, and a put or a get may be done again
    /// by the target. Of an atomic nobody knows whether it was done.
    pub act: Act,
    /// Where, at the target.
    pub place: Place,
    /// The memory here, of the same length.
    pub data: Segments,
    /// That memory, if nobody wants what an atomic has found.
    pub scratch: Option<Box<u64>>,
}
