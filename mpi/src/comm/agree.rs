//! Agreeing upon the number of a new communicator: one that is free in every process that takes part.

use super::context;
use super::party::Party;
use crate::error::{Class, Result};

/// What a process says that has no number left.
const NONE: i64 = u32::MAX as i64;

/// A number that is reserved in all processes of a party (of both, if there are two).
///
/// Each proposes its first free number; the greatest becomes the least that all propose next, until all
/// propose the same. Agreements of several threads could disturb each other in step for ever, so each jumps
/// ahead by a distance of its own, which grows.
///
/// # Errors
/// A process has no number left, or a process is gone.
pub(super) async fn number(party: &Party) -> Result<u32> {
    let mut floor = context::floor();
    for round in 0.. {
        let mine = context::reserve(floor);
        let proposed = mine.as_ref().map_or(NONE, |&number| i64::from(number));
        let greatest = party.greatest([proposed, -proposed]).await;
        if let (Ok([most, least]), Ok(number)) = (&greatest, &mine)
            && *most == -least
        {
            context::agreed(*number);
            return mine;
        }
        mine.iter().for_each(|&number| context::release(number));
        let [most, _] = greatest?;
        if most == NONE {
            return mine.and(Err(Class::OTHER.error("a process has no context left: free communicators")));
        }
        floor = most as u32 + jump(party, round);
    }
    unreachable!("rounds go on until all propose the same")
}

fn jump(party: &Party, round: u32) -> u32 {
    let own = (party.tag ^ u64::from(party.context.0) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    own as u32 % (1 << round.min(10))
}
