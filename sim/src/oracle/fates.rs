//! What faults have done, as far as oracles have to know it.

/// What the network knows and oracles have to ask.
pub trait Fates {
    /// Faults have left no way between two hosts.
    fn severed(&self, a: usize, b: usize) -> bool;
    /// The host has died.
    fn dead(&self, host: usize) -> bool;
    /// The host has closed the context, since another one has died.
    fn closed(&self, host: usize, context: u32) -> bool;
}
