//! An operator of the program's.

use nmad_mpi::datatype::Datatype;
use std::ffi::c_void;

/// The right operand, unless it is zero: associative, not commutative.
#[allow(unsafe_code)]
pub fn last_not_zero(left: *const c_void, right: *mut c_void, count: i64, _: &Datatype) {
    for index in 0..count as usize {
        // SAFETY: both hold `count` numbers, as the standard promises to operators.
        unsafe {
            let (left, right) = (left.cast::<i32>().add(index), right.cast::<i32>().add(index));
            if right.read_unaligned() == 0 {
                right.write_unaligned(left.read_unaligned());
            }
        }
    }
}
