//! The hand-over of a file: all processes write what they have in memory and forget what they have read, so
//! that each sees what all have written before, and others may own the regions from now on. It is what
//! synchronising, another size, other hints, another mode and closing have in common.

use crate::access::Word;
use crate::fault::Fault;

/// A file as its processes hand it over; all call the same in the same order.
pub trait Together {
    /// An error of a collective call.
    type Error;

    /// Whether processes see each other's writes at once.
    fn is_coherent(&self) -> bool;
    /// Whether accesses of one process go by owners all the time.
    fn has_owners(&self) -> bool;
    /// Writes what short records wait in this process, and reports failures of the time before.
    fn push_near(&self) -> impl Future<Output = Result<(), Fault>>;
    /// What says how accesses of one process go, if that may change.
    fn word(&self) -> Option<&impl Word>;
    /// Whether this is the first process.
    fn is_first(&self) -> bool;
    /// Returns when all processes have called it: whether one of them has given true.
    fn meet(&self, given: bool) -> impl Future<Output = Result<bool, Self::Error>>;
    /// Tells all processes whether something has failed: the first failure is an error of all.
    fn told(&self, failed: Option<Fault>) -> impl Future<Output = Result<(), Self::Error>>;
    /// The owner here writes what waits, reports failures of the time before, and forgets what was read.
    fn hand_over_owner(&self) -> impl Future<Output = Result<(), Fault>>;
    /// Has the server of the file system take what was written.
    fn flush(&self) -> impl Future<Output = Result<(), Fault>>;
    /// Forgets what this machine knows of the file.
    fn forget(&self) -> impl Future<Output = ()>;
}

/// Hands the file over; all processes call it.
///
/// # Errors
/// The file system refuses data that were written before, to any process, or one is gone.
pub async fn hand_over<T: Together>(file: &T) -> Result<(), T::Error> {
    let near = file.push_near().await;
    let is_coherent = file.is_coherent();
    if is_coherent && !file.has_owners() && file.word().is_none() {
        return file.told(near.err()).await;
    }
    // What processes have asked before was answered. An owner writes also if a process is gone.
    let mut together = file.meet(file.word().is_some_and(Word::has_owners)).await;
    let first = file.word().filter(|_| file.is_first());
    let closes = matches!(together, Ok(true));
    if closes {
        // Other threads may go on. What they ask owners from now on is in the file when it is answered, so
        // that later accesses may go directly.
        first.into_iter().for_each(Word::begin_to_close);
        together = file.meet(false).await;
    }
    let mut handed = file.hand_over_owner().await;
    if !is_coherent {
        // The server has to have it before another node accesses it.
        handed = handed.and(file.flush().await);
    }
    let told = match together {
        Ok(_) => file.told(near.and(handed).err()).await,
        Err(lost) => Err(lost),
    };
    if closes {
        first.into_iter().for_each(Word::close);
    }
    told?;
    forget(file).await
}

/// Where nodes do not see each other's writes, has all nodes forget what they know of the file. No process
/// asks an owner before all have done this.
///
/// # Errors
/// A process is gone.
pub async fn forget<T: Together>(file: &T) -> Result<(), T::Error> {
    if file.is_coherent() {
        return Ok(());
    }
    file.forget().await;
    file.meet(false).await.map(drop)
}

/// Puts another layout in force; all processes call it, with the same.
///
/// # Errors
/// The file system refuses data that were written before, or a process is gone.
pub async fn change<T: Together>(file: &T, lay_out: impl FnOnce()) -> Result<(), T::Error> {
    let handed = hand_over(file).await;
    lay_out();
    // No process accesses the file before all know the owners.
    file.meet(false).await?;
    handed
}

/// Has one process do something to the file as a whole, such as setting its size; all call it.
///
/// # Errors
/// The file system refuses it, or data that were written before.
pub async fn by_one<T: Together>(file: &T, act: impl FnOnce() -> Result<(), Fault>) -> Result<(), T::Error> {
    hand_over(file).await?;
    file.told(act().err()).await?;
    // Other nodes may know another size.
    forget(file).await
}
