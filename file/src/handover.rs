//! The hand-over of a file: all processes write what they have in memory and forget what they have read, so
//! that each sees what all have written before, and others may own the regions from now on. It is what
//! synchronising, another size, other hints, another mode and closing have in common.

use crate::fault::Fault;
use crate::word::Word;

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
        // From now on owners write through, so direct access is safe once all owners have flushed.
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
    // If a process is gone, owners may not have flushed: they write through until a hand-over succeeds.
    told?;
    if closes {
        first.into_iter().for_each(Word::close);
    }
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
    // If a process is gone, the others stay where they are: those that do not know it yet go on with the
    // owners that they had, who may keep data.
    file.meet(false).await?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    struct Shown(Cell<u64>);

    impl Word for Shown {
        fn load(&self) -> u64 {
            self.0.get()
        }

        fn change(&self, mut to: impl FnMut(u64) -> u64) -> u64 {
            self.0.replace(to(self.0.get()))
        }
    }

    /// The first process of a file on a coherent file system, and how its meetings end, the last one first.
    struct First {
        word: Shown,
        meetings: RefCell<Vec<Result<(), &'static str>>>,
    }

    impl First {
        fn meeting(&self) -> Result<(), &'static str> {
            self.meetings.borrow_mut().pop().expect("a meeting")
        }
    }

    impl Together for First {
        type Error = &'static str;

        fn is_coherent(&self) -> bool {
            true
        }

        fn has_owners(&self) -> bool {
            false
        }

        async fn push_near(&self) -> Result<(), Fault> {
            Ok(())
        }

        fn word(&self) -> Option<&impl Word> {
            Some(&self.word)
        }

        fn is_first(&self) -> bool {
            true
        }

        async fn meet(&self, given: bool) -> Result<bool, &'static str> {
            self.meeting().map(|()| given)
        }

        async fn told(&self, _: Option<Fault>) -> Result<(), &'static str> {
            self.meeting()
        }

        async fn hand_over_owner(&self) -> Result<(), Fault> {
            Ok(())
        }

        async fn flush(&self) -> Result<(), Fault> {
            Ok(())
        }

        async fn forget(&self) {}
    }

    fn hand_over_now(file: &First, meetings: &[Result<(), &'static str>]) -> Result<(), &'static str> {
        *file.meetings.borrow_mut() = meetings.iter().rev().copied().collect();
        let future = pin!(hand_over(file));
        let Poll::Ready(handed) = future.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("nothing here waits");
        };
        assert!(file.meetings.borrow().is_empty());
        handed
    }

    #[test]
    fn the_layout_stays_if_a_process_is_gone() {
        let file = First { word: Shown(Cell::new(0)), meetings: RefCell::default() };
        // The word is 0: a meeting, and all are told; then they meet before and after the change.
        let meetings = [Ok(()); 4];
        for lost in 0..=meetings.len() {
            let mut these = meetings[..(lost + 1).min(meetings.len())].to_vec();
            these.iter_mut().skip(lost).for_each(|meeting| *meeting = Err("gone"));
            if lost < 2 {
                // The meeting before the change fails, too.
                these = vec![Ok(()); lost];
                these.extend([Err("gone"); 2]);
            }
            *file.meetings.borrow_mut() = these.into_iter().rev().collect();
            let is_changed = Cell::new(false);
            let future = pin!(change(&file, || is_changed.set(true)));
            let Poll::Ready(done) = future.poll(&mut Context::from_waker(Waker::noop())) else {
                panic!("nothing here waits");
            };
            assert!(file.meetings.borrow().is_empty());
            assert_eq!((done.is_ok(), is_changed.get()), (lost == 4, lost >= 3), "meeting {lost} fails");
        }
    }

    #[test]
    fn owners_stay_until_a_hand_over_succeeds() {
        let file = First { word: Shown(Cell::new(0)), meetings: RefCell::default() };
        file.word.prefer_owners();
        assert_eq!(hand_over_now(&file, &[Err("gone")]), Err("gone"));
        assert!(file.word.keeps());
        for meetings in [&[Ok(()), Err("gone")][..], &[Ok(()), Ok(()), Err("gone")][..]] {
            assert_eq!(hand_over_now(&file, meetings), Err("gone"));
            assert!(file.word.has_owners() && !file.word.keeps());
        }
        assert_eq!(hand_over_now(&file, &[Ok(()); 3]), Ok(()));
        assert!(!file.word.has_owners());
    }
}
