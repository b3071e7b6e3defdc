//! What a registration for an event holds: the functions of the program, and what they were not told yet.

use crate::table::Table;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// Events that wait at most; later ones are dropped and counted.
const MOST: usize = 4096;

/// What a function may do, or has to (`MPI_T_CB_REQUIRE_*`); ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum Safety {
    /// It may do everything: it is called from calls of the tools interface.
    None = 0,
    /// It does not communicate.
    Restricted = 3,
    /// Any thread may call it.
    ThreadSafe = 15,
    /// Handlers of signals may call it.
    SignalSafe = 63,
}

/// All levels, by their order.
pub const LEVELS: [Safety; 4] = [Safety::None, Safety::Restricted, Safety::ThreadSafe, Safety::SignalSafe];

/// Something that has happened.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    pub(crate) event: usize,
    pub(crate) at_ns: i64,
    /// Eight bytes for each element.
    pub(crate) data: Vec<u64>,
}

/// Instances that functions of programs look at now.
pub(super) static INSTANCES: Table<Instance> = Table::new(crate::handle::DYNAMIC);

/// A function of the program: it gets the instance, the registration and the level at which it is called.
pub type OnEvent = Arc<dyn Fn(usize, usize, Safety) + Send + Sync>;
/// A function of the program: it gets the number of dropped events, the registration, the level, and what the
/// program gave with the last function for events.
pub type OnDropped = Arc<dyn Fn(i64, usize, Safety, usize) + Send + Sync>;

/// Functions and events of a registration.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// The thread that calls functions of the program now.
    caller: Mutex<Option<ThreadId>>,
    turn: Mutex<()>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct State {
    callbacks: [Option<OnEvent>; 4],
    dropped: Option<OnDropped>,
    /// What the program gave with its last function.
    user: usize,
    waiting: VecDeque<Instance>,
    lost: i64,
}

impl State {
    /// The function for a place that needs this level: the one of that level, or of the next that has one.
    fn callback(&self, needed: Safety) -> Option<(Safety, &OnEvent)> {
        let known = LEVELS.into_iter().zip(&self.callbacks);
        known.filter(|(level, _)| *level >= needed).find_map(|(level, each)| Some((level, each.as_ref()?)))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    pub(super) fn set_callback(&self, safety: Safety, callback: Option<OnEvent>, user: usize) {
        let place = LEVELS.iter().position(|level| *level == safety).unwrap_or_default();
        let mut state = locked(&self.state);
        (state.callbacks[place], state.user) = (callback, user);
    }

    pub(super) fn set_dropped(&self, dropped: Option<OnDropped>) {
        locked(&self.state).dropped = dropped;
    }

    /// Notes an event: the highest level of safety that a function has, if there is one.
    pub(super) fn push(&self, instance: Instance) -> Option<Safety> {
        let mut state = locked(&self.state);
        let mut known = LEVELS.into_iter().zip(&state.callbacks);
        let (highest, _) = known.rfind(|(_, each)| each.is_some())?;
        if state.waiting.len() < MOST {
            state.waiting.push_back(instance);
        } else {
            state.lost += 1;
        }
        Some(highest)
    }

    /// Calls the program with all events that wait, from a place that needs this level of safety.
    pub(super) fn tell(&self, registration: usize, needed: Safety) {
        if *locked(&self.caller) == Some(std::thread::current().id()) {
            return;
        }
        let _turn = locked(&self.turn);
        *locked(&self.caller) = Some(std::thread::current().id());
        loop {
            if self.is_over.load(Ordering::Acquire) || !self.tell_one(registration, needed) {
                break;
            }
        }
        *locked(&self.caller) = None;
    }

    /// False: nothing waits, or there is no function for it.
    fn tell_one(&self, registration: usize, needed: Safety) -> bool {
        let mut state = locked(&self.state);
        let Some((level, callback)) = state.callback(needed).map(|(level, each)| (level, each.clone()))
        else {
            return false;
        };
        let (lost, dropped, user) = (std::mem::take(&mut state.lost), state.dropped.clone(), state.user);
        let instance = state.waiting.pop_front();
        drop(state);
        if let (1.., Some(dropped)) = (lost, dropped) {
            dropped(lost, registration, level, user);
        }
        let Some(instance) = instance else { return false };
        let handle = INSTANCES.insert(Arc::new(instance));
        callback(handle as usize, registration, level);
        INSTANCES.remove(handle);
        true
    }

    /// No function is called any more; waits for one that is called by another thread.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        if *locked(&self.caller) != Some(std::thread::current().id()) {
            drop(locked(&self.turn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicI64;

    fn instance(number: u64) -> Instance {
        Instance { event: 0, at_ns: 0, data: vec![number] }
    }

    #[test]
    fn the_function_of_the_next_level_is_called_and_what_is_too_much_is_counted() {
        let queue = Queue::default();
        assert_eq!(queue.push(instance(0)), None);
        let (told, lost) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
        let (count, sum) = (told.clone(), lost.clone());
        let callback: OnEvent = Arc::new(move |_, registration, level| {
            assert_eq!((registration, level), (7, Safety::ThreadSafe));
            count.fetch_add(1, Ordering::Relaxed);
        });
        queue.set_callback(Safety::ThreadSafe, Some(callback), 9);
        let dropped: OnDropped = Arc::new(move |count, _, _, user| {
            assert_eq!(user, 9);
            sum.fetch_add(count, Ordering::Relaxed);
        });
        queue.set_dropped(Some(dropped));
        for number in 0..MOST as u64 + 5 {
            assert_eq!(queue.push(instance(number)), Some(Safety::ThreadSafe));
        }
        queue.tell(7, Safety::SignalSafe);
        assert_eq!(told.load(Ordering::Relaxed), 0);
        queue.tell(7, Safety::None);
        assert_eq!((told.load(Ordering::Relaxed), lost.load(Ordering::Relaxed)), (MOST as i64, 5));
        queue.push(instance(1));
        queue.end();
        queue.tell(7, Safety::None);
        assert_eq!(told.load(Ordering::Relaxed), MOST as i64);
    }
}
