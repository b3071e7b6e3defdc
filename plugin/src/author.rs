//! The author's side: a safe trait, and the functions of C that call it. A panic ends in the plug-in, and the
//! library gets the code of a failure.

use crate::layout::{First, PlugIn, RawStrategy, Turn, Waiting, Way};
use crate::table::FILL_FAILED;
use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;
use std::slice;
use std::sync::{Mutex, PoisonError};

/// `NMAD_OK`
const OK: c_int = 0;
/// `NMAD_PENDING`
const PENDING: c_int = 1;
/// `NMAD_ERR_INTERNAL`
const FAILED: c_int = -14;

/// Answer of [`Strategy::split`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// As the shares say; they add up to the length.
    Shares,
    /// The rail that is idle first carries all of it.
    FirstIdle,
}

/// A strategy in a plug-in. One value decides for all ranks of the process; the library calls it under its
/// lock, so functions must be short and must not wait.
pub trait Strategy: Send + 'static {
    /// Whether [`Strategy::choose`] is to be called.
    const CHOOSES: bool = false;

    /// Pushes the places of the entries of `waiting` that the next packet of a rail holds, in their order;
    /// none: nothing for this rail now. Entries beyond `room` bytes stay, except for the first one, which
    /// always goes. Another rail must take what this one leaves.
    fn fill(&mut self, rank: u32, rail: &Way<'_>, waiting: &[Waiting], room: u64, chosen: &mut Vec<usize>);

    /// Sets the bytes of a large message that each of `ways` carries; they add up to `len`.
    fn split(&mut self, rank: u32, len: u64, ways: &[Way<'_>], shares: &mut [u64]) -> Split;

    /// Reports that a message that was split over `ways` rails arrived in this time.
    fn carried(&mut self, rank: u32, len: u64, ways: usize, took_ns: u64) {
        let _ = (rank, len, ways, took_ns);
    }

    /// Reports that predictions have changed: earlier observations are obsolete.
    fn relearnt(&mut self, rank: u32) {
        let _ = rank;
    }

    /// Returns the place of the rank whose turn it is on a rail; `None`: the one that has waited longest.
    /// Called on the strategy of the session only.
    fn choose(&mut self, rail: u32, turns: &[Turn]) -> Option<usize> {
        let _ = (rail, turns);
        None
    }
}

/// Exports strategies from a shared library: a version for `nmad info`, then a name and a value for each.
///
/// ```text
/// nmad_plugin::strategies! { version: "1.0", "halves" => Halves, "thirds" => Thirds::new() }
/// ```
#[macro_export]
macro_rules! strategies {
    (version: $version:expr, $($name:expr => $strategy:expr),+ $(,)?) => {
        /// Returns the strategies of this plug-in to the library that loads it.
        #[unsafe(no_mangle)]
        pub extern "C" fn nmad_strategies() -> *const $crate::PlugIn {
            static EXPORTS: ::std::sync::OnceLock<$crate::Exports> = ::std::sync::OnceLock::new();
            let tables = || ::std::vec![$($crate::table_of($name, $strategy)),+];
            EXPORTS.get_or_init(|| $crate::Exports::new($version, tables())).table()
        }
    };
}

/// The table that a plug-in returns; it lives as long as the process.
#[derive(Debug)]
pub struct Exports(PlugIn);

// SAFETY: the table and all that it points to is never written to after it was made; the state of a strategy
// is behind a mutex, and `Send`.
unsafe impl Send for Exports {}
// SAFETY: see above.
unsafe impl Sync for Exports {}

impl Exports {
    /// Makes the table of these strategies.
    pub fn new(version: &str, strategies: Vec<RawStrategy>) -> Exports {
        let (count, strategies) = (strategies.len() as u32, strategies.leak().as_ptr());
        Exports(PlugIn { abi: crate::ABI, count, version: leak(version), strategies })
    }

    /// Returns the address of the table.
    pub fn table(&self) -> *const PlugIn {
        &self.0
    }
}

/// Makes the table of functions of a strategy, which lives as long as the process.
pub fn table_of<S: Strategy>(name: &str, strategy: S) -> RawStrategy {
    let state: *mut Mutex<S> = Box::into_raw(Box::new(Mutex::new(strategy)));
    let first = First {
        size: size_of::<RawStrategy>(),
        name: leak(name),
        state: state.cast(),
        fill: Some(fill::<S>),
        split: Some(split::<S>),
        carried: Some(carried::<S>),
        choose: S::CHOOSES.then_some(choose::<S>),
    };
    RawStrategy { first, relearnt: Some(relearnt::<S>) }
}

/// Returns a text of C that lives as long as the process; NULL for one with a zero byte.
fn leak(text: &str) -> *const std::ffi::c_char {
    CString::new(text).map_or(null(), |text| text.into_raw().cast_const())
}

/// Calls the strategy; after a panic returns `failed`. The panic itself is reported by the plug-in's hook.
fn call<S: Strategy, R>(state: *mut c_void, failed: R, call: impl FnOnce(&mut S) -> R) -> R {
    // SAFETY: `table_of` has leaked it and made the functions for its type; it is never freed.
    let strategy = unsafe { &*state.cast::<Mutex<S>>() };
    let answer = catch_unwind(AssertUnwindSafe(|| {
        // After a panic for one rank the others go on.
        call(&mut strategy.lock().unwrap_or_else(PoisonError::into_inner))
    }));
    answer.unwrap_or(failed)
}

/// A list of the library, for the time of a call.
///
/// # Safety
/// `count` values lie there, or `count` is 0.
unsafe fn list<'a, T>(at: *const T, count: usize) -> &'a [T] {
    // SAFETY: the caller promises it.
    if count == 0 { &[] } else { unsafe { slice::from_raw_parts(at, count) } }
}

extern "C-unwind" fn fill<S: Strategy>(
    state: *mut c_void,
    rank: u32,
    rail: *const Way<'_>,
    waiting: *const Waiting,
    count: usize,
    room: u64,
    chosen: *mut usize,
) -> usize {
    // SAFETY: the library lends rail and list for this call.
    let (rail, waiting) = unsafe { (&*rail, list(waiting, count)) };
    call::<S, usize>(state, FILL_FAILED, |strategy| {
        let mut places = Vec::new();
        strategy.fill(rank, rail, waiting, room, &mut places);
        for (index, place) in places.iter().take(count).enumerate() {
            // SAFETY: the library lends room for `count` places.
            unsafe { chosen.add(index).write(*place) };
        }
        // More than `count` is an answer that the library refuses.
        places.len()
    })
}

extern "C-unwind" fn split<S: Strategy>(
    state: *mut c_void,
    rank: u32,
    len: u64,
    ways: *const Way<'_>,
    count: usize,
    shares: *mut u64,
) -> c_int {
    // SAFETY: the library lends both lists for this call, and the second one to be written to.
    let (ways, shares) = unsafe {
        (list(ways, count), if count == 0 { &mut [] } else { slice::from_raw_parts_mut(shares, count) })
    };
    call::<S, c_int>(state, FAILED, |strategy| match strategy.split(rank, len, ways, shares) {
        Split::Shares => OK,
        Split::FirstIdle => PENDING,
    })
}

extern "C-unwind" fn carried<S: Strategy>(state: *mut c_void, rank: u32, len: u64, ways: usize, ns: u64) {
    call::<S, ()>(state, (), |strategy| strategy.carried(rank, len, ways, ns));
}

extern "C-unwind" fn choose<S: Strategy>(
    state: *mut c_void,
    rail: u32,
    turns: *const Turn,
    count: usize,
) -> usize {
    // SAFETY: the library lends the list for this call.
    let turns = unsafe { list(turns, count) };
    call::<S, usize>(state, count, |strategy| strategy.choose(rail, turns).unwrap_or(count))
}

extern "C-unwind" fn relearnt<S: Strategy>(state: *mut c_void, rank: u32) {
    call::<S, ()>(state, (), |strategy| strategy.relearnt(rank));
}
