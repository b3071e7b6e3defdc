//! What all ranks do to a file as a whole: its size, its space, and having it reach the disk.

use super::lost::UnlessLost;
use super::near::Here;
use super::{File, error_of, lock};
use crate::comm::{Party, decode, encode, party};
use crate::error::{Class, Error, Result};
use crate::handle::Info;
use crate::info;
use crate::task::{block_on, now};
use nmad_file::{Fault, Hints, handover};
use std::path::Path;
use std::sync::Arc;

/// Bytes of the words of an error that other ranks are told.
const WORDS: usize = 504;

impl File {
    /// `MPI_File_set_size`
    ///
    /// # Errors
    /// The size is negative, ranks give different ones, or the system refuses it.
    pub(crate) fn set_size(self: &Arc<File>, size: i64) -> Result<()> {
        self.check_writing()?;
        self.agreed("size", size)?;
        self.by_one_rank(|file| file.disk.set_size(size as u64))
    }

    /// `MPI_File_preallocate`
    ///
    /// # Errors
    /// As [`File::set_size`].
    pub(crate) fn preallocate(self: &Arc<File>, size: i64) -> Result<()> {
        self.check_writing()?;
        self.agreed("size", size)?;
        self.by_one_rank(|file| file.disk.preallocate(size as u64))
    }

    /// `MPI_File_sync`: what all ranks have written before is on the disk, and is seen by all of them.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn sync(self: &Arc<File>) -> Result<()> {
        self.check_writing()?;
        // Owners write what they were asked to. Where nodes do not see each other's writes, this also has
        // the server take everything; elsewhere one rank of a node calls `fsync` for all of its ranks.
        self.hand_over()?;
        let place = self.nodes.iter().position(|node| *node == self.nodes[self.rank() as usize]);
        let is_first = self.is_coherent() && place == Some(self.rank() as usize);
        let synced = if is_first { self.disk.sync() } else { Ok(()) };
        self.told(synced.map_err(error_of).err())
    }

    /// `MPI_File_set_info`
    ///
    /// # Errors
    /// There is no such info object.
    pub(crate) fn set_info(self: &Arc<File>, info: Info) -> Result<()> {
        let given = info::optional(info);
        let mut hints = lock(&self.hints).clone();
        given.iter().flatten().for_each(|given| hints.take(|key| given.get(key)));
        let all = self.together(&hints.numbers())?;
        given?;
        let first = all.first_chunk().copied().unwrap_or_default();
        hints.agree(first);
        self.take_hints(hints)
    }

    /// Has other hints be in force; all ranks call, with the same.
    ///
    /// # Errors
    /// The file system refuses data that were written before.
    pub(super) fn take_hints(self: &Arc<File>, hints: Hints) -> Result<()> {
        if lock(&self.hints).numbers() == hints.numbers() {
            *lock(&self.hints) = hints;
            self.set_ways();
            return Ok(());
        }
        self.change_layout(hints, self.is_atomic())
    }

    fn check_writing(&self) -> Result<()> {
        self.amode.check(super::Kind::Write)
    }

    /// Whether all ranks give the same, which is not negative.
    fn agreed(self: &Arc<File>, what: &str, value: i64) -> Result<()> {
        let all = self.together(&[value])?;
        if let Some(rank) = all.iter().position(|other| *other != value) {
            let text = format_args!("rank {rank} gives the {what} {}, and this one {value}", all[rank]);
            return Err(self.error(Class::NOT_SAME, text));
        }
        if value < 0 {
            return Err(
                self.error(Class::ARG, format_args!("the {what} is {value}: it must not be negative"))
            );
        }
        Ok(())
    }

    /// The numbers of all ranks.
    pub(super) fn together(self: &Arc<File>, mine: &[i64]) -> Result<Vec<i64>> {
        let (party, mine) = (party(&self.on.comm), encode(mine));
        block_on(UnlessLost::new(self.clone(), async move { Ok(decode(&party.gather(mine).await?)) }))
    }

    /// All hand the file over, rank 0 does something, and all hear whether that went well.
    fn by_one_rank(
        self: &Arc<File>,
        act: impl FnOnce(&File) -> std::result::Result<(), Fault>,
    ) -> Result<()> {
        let act = || if self.rank() == 0 { act(self) } else { Ok(()) };
        let done = now(handover::by_one(&Here(self), act));
        // The size is another one now.
        self.disk.unsure();
        done
    }

    /// Tells all ranks whether something has failed.
    ///
    /// # Errors
    /// It has, here or elsewhere.
    pub(super) fn told(self: &Arc<File>, failed: Option<Error>) -> Result<()> {
        let (ends, words) = (party(&self.on.comm), party(&self.on.comm));
        let file = self.clone();
        block_on(UnlessLost::new(self.clone(), async move {
            told_of_failures(file.disk.path(), failed, (&ends, &words)).await
        }))
    }
}

/// Tells all ranks whether the file system has refused something to one of them.
pub(super) async fn told_of_failures(
    path: &Path,
    failed: Option<Error>,
    parties: (&Party, &Party),
) -> Result<()> {
    told_with(path, failed, parties, []).await.map(drop)
}

/// The same, and numbers of each rank.
pub(super) async fn told_with<const N: usize>(
    path: &Path,
    failed: Option<Error>,
    (ends, words): (&Party, &Party),
    mine: [i64; N],
) -> Result<Vec<i64>> {
    let class = failed.as_ref().map_or(0, |error| i64::from(error.class().0));
    let row: Vec<i64> = [class].into_iter().chain(mine).collect();
    let all = decode(&ends.gather(encode(&row)).await?);
    let rows = all.chunks_exact(row.len());
    let Some(rank) = rows.clone().position(|row| row[0] != 0) else {
        return Ok(rows.flat_map(|row| &row[1..]).copied().collect());
    };
    let class = all[rank * row.len()];
    let mut mine = failed.as_ref().map_or("", Error::text).as_bytes().to_vec();
    mine.resize(WORDS, 0);
    let told = words.gather(mine).await?;
    if let Some(failed) = failed {
        return Err(failed);
    }
    let text = told[rank * WORDS..(rank + 1) * WORDS].split(|byte| *byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    Err(Class(class as i32).error(format!("file {}: rank {rank}: {text}", path.display())))
}
