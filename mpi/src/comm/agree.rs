//! Agreement on the number of a new communicator: it must be free in all participating processes.

use super::context;
use super::party::{Party, decode, encode};
use crate::error::{Class, Result};
use crate::fault;

/// Proposal of a process that has no number left.
const NONE: i64 = u32::MAX as i64;

/// Reserves the same number in all processes of a party, and returns it. A party of an intercommunicator
/// has the processes of both groups.
///
/// # Errors
/// A process has no number left, or a process has failed.
pub(super) async fn number(party: &Party) -> Result<u32> {
    rest(party, Proposal::of(party)).await
}

/// The same, and what everybody has, in one exchange unless processes propose different numbers.
///
/// # Errors
/// As [`number`].
pub(super) async fn number_with(party: &Party, mine: &[i64]) -> Result<(u32, Vec<i64>)> {
    let mut proposal = Proposal::of(party);
    let row: Vec<i64> = [proposal.next()].into_iter().chain(mine.iter().copied()).collect();
    let all = decode(&party.gather(encode(&row)).await?);
    let rows = all.chunks_exact(row.len());
    let proposed = || rows.clone().map(|row| row[0]);
    let most = proposed().max().unwrap_or(NONE);
    let least = proposed().min().unwrap_or(NONE);
    let number = match proposal.end_round([most, -least])? {
        Some(number) => number,
        None => rest(party, proposal).await?,
    };
    Ok((number, rows.flat_map(|row| &row[1..]).copied().collect()))
}

/// Agrees in further rounds.
async fn rest(party: &Party, mut proposal: Proposal) -> Result<u32> {
    loop {
        let proposed = proposal.next();
        let most = party.greatest([proposed, -proposed]).await?;
        if let Some(number) = proposal.end_round(most)? {
            return Ok(number);
        }
    }
}

/// The proposals of one process. In each round all processes propose their lowest free number that is not
/// below the floor; the greatest proposal becomes the next floor, until all propose the same number.
///
/// Agreements of several threads could take each other's numbers in each round and never end. Each
/// agreement therefore raises its floor by an additional distance, which differs between agreements and
/// grows.
pub(crate) struct Proposal {
    /// Differs between agreements that run at the same time.
    salt: u64,
    floor: u32,
    round: u32,
    mine: Option<Result<u32>>,
}

impl Proposal {
    fn of(party: &Party) -> Proposal {
        Proposal::new(party.tag ^ u64::from(party.context.0) << 32)
    }

    pub(crate) fn new(salt: u64) -> Proposal {
        Proposal { salt, floor: context::floor(), round: 0, mine: None }
    }

    /// Reserves and returns the number to propose in this round.
    pub(crate) fn next(&mut self) -> i64 {
        let mine = context::reserve(self.floor);
        let proposed = mine.as_ref().map_or(NONE, |&number| i64::from(number));
        self.mine = Some(mine);
        proposed
    }

    /// Ends a round, in which `most` is the greatest proposal and `least` the negative of the least.
    /// Returns the number if all proposals were equal.
    ///
    /// # Errors
    /// A process has no number left.
    pub(crate) fn end_round(&mut self, [most, least]: [i64; 2]) -> Result<Option<u32>> {
        let Some(mine) = self.mine.take() else { return Ok(None) };
        match mine {
            Ok(number) if most == -least => {
                context::agreed(number);
                fault::reset_contexts(number)?;
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
