//! Agreeing upon the number of a new communicator: one that is free in every process that takes part.

use super::context;
use super::party::Party;
use crate::error::{Class, Result};
use crate::fault;

/// What a process says that has no number left.
const NONE: i64 = u32::MAX as i64;

/// A number that is reserved in all processes of a party (of both, if there are two).
///
/// # Errors
/// A process has no number left, or a process is gone.
pub(super) async fn number(party: &Party) -> Result<u32> {
    let mut proposal = Proposal::new(party.tag ^ u64::from(party.context.0) << 32);
    loop {
        let proposed = proposal.next();
        let most = party.greatest([proposed, -proposed]).await?;
        if let Some(number) = proposal.answered(most)? {
            fault::opened(number)?;
            return Ok(number);
        }
    }
}

/// The proposals of one process: its first free number; the greatest becomes the least that all propose
/// next, until all propose the same. Agreements of several threads could disturb each other in step for
/// ever, so each jumps ahead by a distance of its own, which grows.
pub(crate) struct Proposal {
    /// Tells this agreement from others.
    salt: u64,
    floor: u32,
    round: u32,
    mine: Option<Result<u32>>,
}

impl Proposal {
    pub(crate) fn new(salt: u64) -> Proposal {
        Proposal { salt, floor: context::floor(), round: 0, mine: None }
    }

    /// Returns what to propose now.
    pub(crate) fn next(&mut self) -> i64 {
        let mine = context::reserve(self.floor);
        let proposed = mine.as_ref().map_or(NONE, |&number| i64::from(number));
        self.mine = Some(mine);
        proposed
    }

    /// Takes the greatest number that was proposed, and the negative of the least; returns the number if
    /// all processes have proposed the same.
    ///
    /// # Errors
    /// A process has no number left.
    pub(crate) fn answered(&mut self, [most, least]: [i64; 2]) -> Result<Option<u32>> {
        let Some(mine) = self.mine.take() else { return Ok(None) };
        match mine {
            Ok(number) if most == -least => {
                context::agreed(number);
                return Ok(Some(number));
            }
            Ok(number) => context::release(number),
            Err(none) if most == NONE => return Err(none),
            Err(_) => {}
        }
        if most == NONE {
            return Err(Class::OTHER.error("a process has no context left: free communicators"));
        }
        self.floor = most as u32 + self.jump();
        self.round += 1;
        Ok(None)
    }

    fn jump(&self) -> u32 {
        let own = self.salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        own as u32 % (1 << self.round.min(10))
    }
}

impl Drop for Proposal {
    fn drop(&mut self) {
        if let Some(Ok(number)) = self.mine {
            context::release(number);
        }
    }
}
