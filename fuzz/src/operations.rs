//! Any operations: what applications ask on two or three hosts, on whatever rails, in whatever order; and
//! what must hold afterwards.
//!
//! While rails live, every receive that a message fits to has ended, with just that message. Whatever
//! happens, a request ends once, nobody touches memory outside of a request, the network comes to rest, and
//! when what is left over is received or cancelled, nothing is pending.

mod end;
mod ledger;
mod world;

use arbitrary::{Result, Unstructured};
use world::World;

/// Operations of one run at most.
const OPERATIONS_MAX: usize = 300;

/// Runs the script that `data` says.
///
/// # Panics
/// If that shows a bug.
pub fn operations(data: &[u8]) {
    let mut script = Unstructured::new(data);
    let Ok(mut world) = World::new(&mut script) else { return };
    for _ in 0..OPERATIONS_MAX {
        if script.is_empty() || step(&mut world, &mut script).is_err() {
            break;
        }
    }
    world.finish();
}

fn step(world: &mut World, script: &mut Unstructured<'_>) -> Result<()> {
    match script.arbitrary::<u8>()? % 32 {
        0..8 => world.send(script),
        8..15 => world.recv(script),
        15 | 16 => world.probe(script),
        17 => world.cancel(script),
        18 => world.pack(script),
        19 | 20 => world.unpack(script),
        21..26 => world.turn(script),
        26 => world.wait(script),
        27 => world.kill(script),
        28 => world.choose_strategy(script),
        29 => world.choose_feed(script),
        30 => world.stall(script),
        _ => world.leave_or_settle(script),
    }
}
