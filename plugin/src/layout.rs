//! The structures of `nmad.h` that library and strategy share. Their layout is part of the binary
//! interface; tests of `capi` compare it with the header.

use crate::forecast::Forecast;
use std::ffi::{c_char, c_int, c_void};

/// `NMAD_DEPENDS`: the message must not leave before the one that was submitted before it.
pub const DEPENDS: u32 = 8;
/// `NMAD_LATENCY`: the message shall not be delayed.
pub const LATENCY: u32 = 16;
/// `NMAD_BANDWIDTH`: the message is part of a bulk transfer.
pub const BANDWIDTH: u32 = 32;
/// `NMAD_CONTROL`: a control message of the library.
pub const CONTROL: u32 = 64;
/// `NMAD_WAY_PRIMARY`: the first rail to the rank.
pub const PRIMARY: u32 = 1;
/// `NMAD_WAY_FASTEST`: the rail with the lowest latency.
pub const FASTEST: u32 = 2;

/// `nmad_waiting_t`: an entry of the window of a rank.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Tag of the message.
    pub tag: u64,
    /// Bytes of the message, for a large message including the body, which is split later.
    pub len: u64,
    /// Bytes that the entry takes in a packet.
    pub size: u64,
    /// Context of the message.
    pub context: u32,
    /// Sequence number in its context; 0 for unordered messages.
    pub seq: u32,
    /// Entries with a higher priority leave first.
    pub priority: i32,
    /// [`DEPENDS`], [`LATENCY`], [`BANDWIDTH`]; [`CONTROL`].
    pub flags: u32,
}

/// `nmad_way_t`: state of a rail to a rank at the time of a decision.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// Number of the rail.
    pub rail: u32,
    /// Number of the first rail that uses the same NIC.
    pub wire: u32,
    /// Predicted nanoseconds until the rail is idle; 0: it is idle now.
    pub idle_in_ns: u64,
    /// Nominal bandwidth in bytes per second; 0: unknown.
    pub bandwidth: u64,
    /// Nominal latency in nanoseconds; 0: unknown.
    pub latency_ns: u64,
    /// [`PRIMARY`], [`FASTEST`].
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
    /// Predicted times.
    pub forecast: &'a Forecast<'a>,
}

impl Way<'_> {
    /// Returns whether this is the rail with the lowest latency. There always is one.
    pub fn is_fastest(&self) -> bool {
        self.flags & FASTEST != 0
    }

    /// Returns whether this is the first rail to the rank. There always is one.
    pub fn is_primary(&self) -> bool {
        self.flags & PRIMARY != 0
    }

    /// Predicts the time in nanoseconds that the rail, when idle, takes for `len` bytes: in a packet or, if
    /// `large`, as part of a large message.
    pub fn predict(&self, len: u64, large: bool) -> u64 {
        self.forecast.ns(len, large)
    }
}

/// `nmad_turn_t`: a rank that has messages in its window.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turn {
    /// The rank.
    pub rank: u32,
    /// Priority of its first entry.
    pub priority: i32,
    /// Bytes in its window.
    pub backlog: u64,
    /// Bytes of large messages whose receives are ready for the data.
    pub granted: u64,
}

/// `nmad_strategy_t.fill`
pub type FillFn =
    extern "C-unwind" fn(*mut c_void, u32, *const Way<'_>, *const Waiting, usize, u64, *mut usize) -> usize;
/// `nmad_strategy_t.split`
pub type SplitFn = extern "C-unwind" fn(*mut c_void, u32, u64, *const Way<'_>, usize, *mut u64) -> c_int;
/// `nmad_strategy_t.carried`
pub type CarriedFn = extern "C-unwind" fn(*mut c_void, u32, u64, usize, u64);
/// `nmad_strategy_t.choose`
pub type ChooseFn = extern "C-unwind" fn(*mut c_void, u32, *const Turn, usize) -> usize;
/// `nmad_strategy_t.relearnt`
pub type RelearntFn = extern "C-unwind" fn(*mut c_void, u32);

/// `nmad_strategy_t`: a table of functions.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawStrategy {
    /// The fields of the first version.
    pub first: First,
    /// Called when forecasts have changed.
    pub relearnt: Option<RelearntFn>,
}

/// The beginning of `nmad_strategy_t`, common to tables of all versions.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct First {
    /// Bytes of the whole table.
    pub size: usize,
    /// The name that selects the strategy, a C string.
    pub name: *const c_char,
    /// Passed to each function.
    pub state: *mut c_void,
    /// Fills a packet.
    pub fill: Option<FillFn>,
    /// Splits a large message.
    pub split: Option<SplitFn>,
    /// Called when a split message has arrived.
    pub carried: Option<CarriedFn>,
    /// Chooses between ranks.
    pub choose: Option<ChooseFn>,
}

/// `nmad_plugin_t`: result of the entry function of a plug-in.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PlugIn {
    /// Value of [`crate::ABI`] when the plug-in was compiled.
    pub abi: u32,
    /// Number of strategies.
    pub count: u32,
    /// Version of the plug-in, a C string; may be NULL.
    pub version: *const c_char,
    /// Array of strategies; the size of each is in its first field.
    pub strategies: *const RawStrategy,
}
