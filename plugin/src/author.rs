//! The plug-in's side: a safe trait for authors, and the C functions that call it. They catch panics and
//! return the error code of a failure to the library instead.

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
    /// Each way carries its share; the shares add up to the length.
    Shares,
    /// The rail that is idle first carries the whole message.
    FirstIdle,
}

/// A strategy in a plug-in. One value decides about messages to all ranks. The library holds its lock
/// during calls, so functions must be short and must not block.
pub trait Strategy: Send + 'static {
    /// Set if the library shall call [`Strategy::choose`].
    const CHOOSES: bool = false;

    /// Chooses the next packet of a rail: pushes the indices of entries of `waiting` to `chosen`, in packet
    /// order. An empty `chosen` leaves the rail idle for now. The first of them is always sent; a later one
    /// stays in the window if the packet would exceed `room` bytes. The strategy must choose the remaining
    /// entries for another rail.
    fn fill(&mut self, rank: u32, rail: &Way<'_>, waiting: &[Waiting], room: u64, chosen: &mut Vec<usize>);

    /// Splits a large message: sets the bytes that each of `ways` carries. They must add up to `len`.
    fn split(&mut self, rank: u32, len: u64, ways: &[Way<'_>], shares: &mut [u64]) -> Split;

    /// Reports that a message that was split over `ways` rails has arrived, `took_ns` after the split.
    fn carried(&mut self, rank: u32, len: u64, ways: usize, took_ns: u64) {
        let _ = (rank, len, ways, took_ns);
    }

    /// Reports that predictions have changed, so observations made before are obsolete.
    fn relearnt(&mut self, rank: u32) {
        let _ = rank;
    }

    /// Chooses the rank that uses a rail next: returns its index in `turns`; `None` chooses the rank that
    /// has waited longest. Only the strategy of the session gets this call.
    fn choose(&mut self, rail: u32, turns: &[Turn]) -> Option<usize> {
        let _ = (rail, turns);
        None
    }
}

/// Exports strategies from a shared library. The arguments are the version that `nmad info` shows, and
/// for each strategy its name and its value.
///
/// ```text
/// nmad_plugin::strategies! { version: "1.0", "halves" => Halves, "thirds" => Thirds::new() }
/// ```
#[macro_export]
macro_rules! strategies {
    (version: $version:expr, $($name:expr => $strategy:expr),+ $(,)?) => {
        /// Returns the strategies of this plug-in; called by the library that loads it.
        #[unsafe(no_mangle)]
        pub extern "C" fn nmad_strategies() -> *const $crate::PlugIn {
            static EXPORTS: ::std::sync::OnceLock<$crate::Exports> = ::std::sync::OnceLock::new();
            let tables = || ::std::vec![$($crate::table_of($name, $strategy)),+];
            EXPORTS.get_or_init(|| $crate::Exports::new($version, tables())).table()
        }
    };
}

/// The table that a plug-in returns. It lives until the process ends.
#[derive(Debug)]
pub struct Exports(PlugIn);

// SAFETY: the table and the data that it points to are not modified after construction; a mutex protects
// the state of each strategy, which is `Send`.
unsafe impl Send for Exports {}
// SAFETY: see above.
unsafe impl Sync for Exports {}

impl Exports {
    /// Makes the table of strategies.
    pub fn new(version: &str, strategies: Vec<RawStrategy>) -> Exports {
        let (count, strategies) = (strategies.len() as u32, strategies.leak().as_ptr());
        Exports(PlugIn { abi: crate::ABI, count, version: leak(version), strategies })
    }

    /// Returns the address of the table.
    pub fn table(&self) -> *const PlugIn {
        &self.0
    }
}

/// Makes the table of functions of a strategy, whose state lives until the process ends.
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

/// Returns a C string that lives until the process ends; NULL if the text has a zero byte.
fn leak(text: &str) -> *const std::ffi::c_char {
    CString::new(text).map_or(null(), |text| text.into_raw().cast_const())
}

/// Calls the strategy; returns `failed` if it panics. The panic hook of the plug-in reports the panic.
fn call<S: Strategy, R>(state: *mut c_void, failed: R, call: impl FnOnce(&mut S) -> R) -> R {
    // SAFETY: `table_of` has leaked a value of this type and never frees it.
    let strategy = unsafe { &*state.cast::<Mutex<S>>() };
    let answer = catch_unwind(AssertUnwindSafe(|| {
        // A panic in a call for one rank must not disable the strategy for others, so poison is ignored.
        call(&mut strategy.lock().unwrap_or_else(PoisonError::into_inner))
    }));
    answer.unwrap_or(failed)
}

/// Returns an array of the library as a slice, for the duration of a call.
///
/// # Safety
/// `at` points to `count` values, or `count` is 0.
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
    // SAFETY: the library keeps rail and array valid during this call.
    let (rail, waiting) = unsafe { (&*rail, list(waiting, count)) };
    call::<S, usize>(state, FILL_FAILED, |strategy| {
        let mut places = Vec::new();
        strategy.fill(rank, rail, waiting, room, &mut places);
        for (index, place) in places.iter().take(count).enumerate() {
            // SAFETY: `chosen` has space for `count` indices.
            unsafe { chosen.add(index).write(*place) };
        }
        // The library rejects an answer above `count`.
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
    // SAFETY: the library keeps both arrays valid during this call, and `shares` is writable.
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
    // SAFETY: the library keeps the array valid during this call.
    let turns = unsafe { list(turns, count) };
    call::<S, usize>(state, count, |strategy| strategy.choose(rail, turns).unwrap_or(count))
}

extern "C-unwind" fn relearnt<S: Strategy>(state: *mut c_void, rank: u32) {
    call::<S, ()>(state, (), |strategy| strategy.relearnt(rank));
}
