//! The parameters of a pass over a link.

use super::selector::Selector;
use crate::regions::Regions;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Event, Order};

/// Callback for events.
pub type Report<'a> = &'a mut dyn FnMut(Event<'_>);

/// The parts of the rail that a pass over the link to one peer uses.
pub struct Turn<'a> {
    pub peer: PeerId,
    pub regions: &'a Regions,
    pub sent: &'a mut Vec<Order>,
    pub selector: &'a mut Selector,
    pub report: Report<'a>,
}
