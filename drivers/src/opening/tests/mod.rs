//! The machine without any network: by hand, step by step, and in a made-up world in virtual time whose
//! network does what the seed says.

mod by_hand;
mod random;
mod strangers;
mod world;
