//! Every algorithm against a serial reference: odd sizes, in place, ordered operators, nothing to do, data
//! with gaps. Messages leave and arrive in an order that a seed decides, and what is in a buffer counts
//! only when its message moves, so a buffer that is used too early or too late is seen.

mod boards;
mod mesh;
mod moves;
mod parts;
mod pools;
mod reductions;
mod tiers;
#[allow(unsafe_code)]
mod types;
mod world;
