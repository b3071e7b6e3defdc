//! Numbers that Rust has no type for: `long double` and IEEE binary128. Their arithmetic is in `c/wide.c`.

use std::ffi::c_void;

/// Reduces `count` elements.
pub(super) type Loop = unsafe extern "C" fn(*const c_void, *mut c_void, usize);
/// Reduces `count` pairs: offset of the index and distance of the pairs in bytes.
pub(super) type PairLoop = unsafe extern "C" fn(*const c_void, *mut c_void, usize, usize, usize);

/// The loops of one kind of number.
pub(super) struct Wide {
    pub sum: Loop,
    pub prod: Loop,
    pub max: Loop,
    pub min: Loop,
    pub complex_prod: Loop,
    pub maxloc: PairLoop,
    pub minloc: PairLoop,
}

/// C's `long double`.
pub(super) const EXTENDED: Wide = Wide {
    sum: nmad_mpi_extended_sum,
    prod: nmad_mpi_extended_prod,
    max: nmad_mpi_extended_max,
    min: nmad_mpi_extended_min,
    complex_prod: nmad_mpi_extended_complex_prod,
    maxloc: nmad_mpi_extended_maxloc,
    minloc: nmad_mpi_extended_minloc,
};

/// IEEE binary128.
pub(super) const QUAD: Wide = Wide {
    sum: nmad_mpi_quad_sum,
    prod: nmad_mpi_quad_prod,
    max: nmad_mpi_quad_max,
    min: nmad_mpi_quad_min,
    complex_prod: nmad_mpi_quad_complex_prod,
    maxloc: nmad_mpi_quad_maxloc,
    minloc: nmad_mpi_quad_minloc,
};

// SAFETY: these are the signatures in `c/wide.c`; it takes pointers of any alignment.
unsafe extern "C" {
    fn nmad_mpi_extended_sum(input: *const c_void, inout: *mut c_void, count: usize);
    fn nmad_mpi_extended_prod(input: *const c_void, inout: *mut c_void, count: usize);
    fn nmad_mpi_extended_max(input: *const c_void, inout: *mut c_void, count: usize);
    fn nmad_mpi_extended_min(input: *const c_void, inout: *mut c_void, count: usize);
    fn nmad_mpi_extended_complex_prod(input: *const c_void, inout: *mut c_void, count: usize);
    fn nmad_mpi_extended_maxloc(
        input: *const c_void,
        inout: *mut c_void,
        count: usize,
        offset: usize,
        stride: usize,
    );
    fn nmad_mpi_extended_minloc(
        input: *const c_void,
        inout: *mut c_void,
        count: usize,
        offset: usize,
        stride: usize,
    );
    fn nmad_mpi_quad_sum(input: *const c_void, inout: *mut c_void, count: usize);
    fn nmad_mpi_quad_prod(input: *const c_void, inout: *mut c_void, count: usize);
    fn nmad_mpi_quad_max(input: *const c_void, inout: *mut c_void, count: usize);
    fn nmad_mpi_quad_min(input: *const c_void, inout: *mut c_void, count: usize);
    fn nmad_mpi_quad_complex_prod(input: *const c_void, inout: *mut c_void, count: usize);
    fn nmad_mpi_quad_maxloc(
        input: *const c_void,
        inout: *mut c_void,
        count: usize,
        offset: usize,
        stride: usize,
    );
    fn nmad_mpi_quad_minloc(
        input: *const c_void,
        inout: *mut c_void,
        count: usize,
        offset: usize,
        stride: usize,
    );
}
