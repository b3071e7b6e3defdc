//! What goes on although no handle of the program's stands for it any more: it is let go when it has ended.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A list of such things. Looking at one takes time, so all are looked at when their number has doubled
/// since the last look, and a look may cost as much as there are other things: what adding one costs depends
/// on neither.
pub(crate) struct Orphans<T>(Mutex<List<T>>);

struct List<T> {
    all: Vec<T>,
    /// So many have been left by the last look.
    left: usize,
}

impl<T> Orphans<T> {
    pub(crate) const fn new() -> Orphans<T> {
        Orphans(Mutex::new(List { all: Vec::new(), left: 0 }))
    }

    fn list(&self) -> MutexGuard<'_, List<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one; those that have ended, if all were looked at. They are not while fewer than `idle` more than
    /// by the last look are there.
    pub(crate) fn add(&self, one: T, idle: usize, is_over: impl FnMut(&mut T) -> bool) -> Vec<T> {
        let mut list = self.list();
        list.all.push(one);
        let most = list.left + list.left.max(idle);
        if list.all.len() <= most { Vec::new() } else { list.sweep(is_over) }
    }

    /// Takes out those that have ended.
    pub(crate) fn sweep(&self, is_over: impl FnMut(&mut T) -> bool) -> Vec<T> {
        self.list().sweep(is_over)
    }

    /// Takes out all.
    pub(crate) fn take(&self) -> Vec<T> {
        self.sweep(|_| true)
    }

    /// Looks for one.
    pub(crate) fn find<R>(&self, look: impl FnMut(&T) -> Option<R>) -> Option<R> {
        self.list().all.iter().find_map(look)
    }
}

impl<T> List<T> {
    fn sweep(&mut self, is_over: impl FnMut(&mut T) -> bool) -> Vec<T> {
        let over = self.all.extract_if(.., is_over).collect();
        self.left = self.all.len();
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_looked_at_a_few_times_however_many_there_are() {
        let (orphans, mut looks) = (Orphans::new(), 0);
        for number in 0..10_000 {
            let is_over = |_: &mut i32| {
                looks += 1;
                false
            };
            assert!(orphans.add(number, 0, is_over).is_empty());
        }
        assert!(looks < 30_000, "{looks} looks");
        assert_eq!(orphans.find(|&number| (number == 7).then_some(number)), Some(7));
        assert_eq!(orphans.sweep(|number| *number < 9_999).len(), 9_999);
        // Few are left, so they are looked at soon.
        assert_eq!((orphans.add(1, 0, |_| true), orphans.add(2, 0, |_| true)), (vec![], vec![9_999, 1, 2]));
        let lens: Vec<usize> = (0..8).map(|number| orphans.add(number, 3, |_| true).len()).collect();
        assert_eq!(lens, [0, 0, 0, 4, 0, 0, 0, 4], "a look costs more than keeping three");
        assert!(orphans.take().is_empty());
    }
}
