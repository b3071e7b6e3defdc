//! Tests of the state machine without a network: by hand, event by event, and in a simulated world with
//! virtual time and random faults that follow from a seed.

mod by_hand;
mod encrypted;
mod random;
mod strangers;
mod world;
