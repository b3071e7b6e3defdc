//! Messages between the ranks of a file: places and data. Each collective access has a tag of its own, so
//! that several may be under way.

use super::File;
use crate::comm::{self, Ends, Way, failed, submit_blank, submit_data};
use crate::error::{Class, Result};
use newmadeleine::Segments;
use std::pin::Pin;

/// Something under way that tells how many bytes have come.
pub(super) type Counted = Pin<Box<dyn Future<Output = Result<u64>> + Send>>;

/// The messages of one access.
pub(super) struct Wire {
    number: u64,
}

/// Which side a message goes to: a rank may be an owner and want something of owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Owner,
    Wanting,
}

/// The process of a rank of the file.
///
/// # Errors
/// There is no such rank.
pub(super) fn process(file: &File, rank: i32) -> Result<u32> {
    let none = || Class::INTERN.error(format!("rank {rank} does not have the file"));
    file.on.comm.local().world(rank).ok_or_else(none)
}

impl Wire {
    pub(super) fn new(file: &File) -> Wire {
        Wire { number: file.accesses.fetch_add(1, std::sync::atomic::Ordering::Relaxed) }
    }

    fn way(&self, file: &File, (rank, side): (i32, Side)) -> Result<Way> {
        Ok((process(file, rank)?, file.on.comm.context(), 2 * self.number + side as u64))
    }

    /// Sends bytes to an owner.
    pub(super) fn send(&self, file: &File, owner: i32, bytes: Vec<u8>) -> Result<Ends> {
        submit_data(bytes)(self.way(file, (owner, Side::Owner))?)
    }

    /// Sends memory, which stays as it is until the end.
    pub(super) fn lend(&self, file: &File, to: (i32, Side), memory: Segments) -> Result<Ends> {
        let sent = comm::lend(self.way(file, to)?, memory)?;
        Ok(Box::pin(async move { sent.await?.map(drop).map_err(failed) }))
    }

    /// Receives bytes of this length, as an owner.
    pub(super) fn receive(
        &self,
        file: &File,
        rank: i32,
        len: usize,
    ) -> Result<impl Future<Output = Result<Vec<u8>>> + Send + use<>> {
        submit_blank(self.way(file, (rank, Side::Owner))?, len)
    }

    /// Receives at most as many bytes as the memory has, on the side that is named.
    pub(super) fn fill(&self, file: &File, from: (i32, Side), memory: Segments) -> Result<Counted> {
        let filled = comm::fill(self.way(file, from)?, memory)?;
        Ok(Box::pin(async move { filled.await?.map(|envelope| envelope.len).map_err(failed) }))
    }
}
