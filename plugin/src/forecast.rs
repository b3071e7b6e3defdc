//! Predicted times of a rail. A strategy calls a function of the library, whose address it gets with each
//! way, so a plug-in need not be linked with the library that loads it.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

/// A performance model of a rail.
pub trait Predict {
    /// Returns the time in nanoseconds for `len` bytes in a packet or, if `large`, as part of a large
    /// message.
    fn ns(&self, len: u64, large: bool) -> u64;
}

/// `nmad_forecast_t`: a performance model behind a C function.
#[repr(C)]
#[derive(Debug)]
pub struct Forecast<'a> {
    ns: extern "C" fn(&Forecast<'_>, u64, c_int) -> u64,
    of: *const c_void,
    lives: PhantomData<&'a ()>,
}

impl<'a> Forecast<'a> {
    /// Wraps a model.
    pub fn of<P: Predict>(model: &'a P) -> Forecast<'a> {
        Forecast { ns: ask::<P>, of: std::ptr::from_ref(model).cast(), lives: PhantomData }
    }

    pub(crate) fn ns(&self, len: u64, large: bool) -> u64 {
        (self.ns)(self, len, large.into())
    }
}

extern "C" fn ask<P: Predict>(forecast: &Forecast<'_>, len: u64, large: c_int) -> u64 {
    // SAFETY: `Forecast::of` has set function and pointer together, and borrows the model for as long as
    // the forecast lives.
    let model = unsafe { &*forecast.of.cast::<P>() };
    model.ns(len, large != 0)
}
