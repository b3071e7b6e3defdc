//! The layers that a user's settings put around a rail.

use super::Around;
use super::throttle::Throttle;
use super::trace::{Trace, TraceHandle};
use nmad_engine::transfer::driver::Driver;
use std::time::Duration;

/// A rail with its layers, and the handle of its trace if there is one.
pub type Layered = (Box<dyn Driver>, Option<TraceHandle>);

/// The chosen layers.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// Rate in bytes per second to which the rail is limited; none: no limit.
    pub throttle: Option<u64>,
    /// Number of the rail in the trace, and number of records kept; none: no trace.
    pub trace: Option<(u8, usize)>,
}

impl Layers {
    /// Wraps a rail in the layers.
    pub fn around(&self, rail: impl Driver + 'static) -> Layered {
        match self.throttle {
            Some(rate) => self.traced(Around::new(rail, Throttle::new(rate, Duration::ZERO))),
            None => self.traced(rail),
        }
    }

    fn traced(&self, rail: impl Driver + 'static) -> Layered {
        let Some((number, count)) = self.trace else { return (Box::new(rail), None) };
        // Two rails of one interface have the same name; the number distinguishes them.
        let trace = Trace::new(&format!("{}#{number}", rail.name()), count, true);
        let handle = trace.handle();
        (Box::new(Around::new(rail, trace)), Some(handle))
    }
}
