//! `external32`: big endian, sizes that the standard fixes, IEEE numbers (MPI 5.0, section 14.5.2).
//!
//! Integers that are shorter there than here lose their upper bits, as the standard says.

use std::ffi::c_void;

use half::{bf16, f16};

use super::pack::within;
use super::structure::{Elements, Walk};
use super::{Basic, Datatype, Family, Fortran, Scalar};
use crate::error::{Class, Result};

/// The only representation that `MPI_Pack_external` knows.
pub const EXTERNAL32: &str = "external32";

/// How one number changes between memory and `external32`.
#[derive(Debug, Clone, Copy)]
struct Conversion {
    scalar: Scalar,
    /// Bytes in `external32`.
    len: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Only the order of its bytes.
    Order,
    /// Its length, too.
    Integer,
    /// Its representation as a binary number with a point.
    Float,
    /// The values of truth.
    Truth,
}

impl Conversion {
    fn new(scalar: Scalar, family: Family, is_c_bool: bool, len: i64) -> Conversion {
        let kind = match family {
            Family::Logical if !is_c_bool => Kind::Truth,
            _ if scalar == Scalar::LongDouble => Kind::Float,
            _ if scalar.size() == len => Kind::Order,
            _ if matches!(scalar, Scalar::F16 | Scalar::F32 | Scalar::F64 | Scalar::F128) => Kind::Float,
            _ => Kind::Integer,
        };
        Conversion { scalar, len: len as usize, kind }
    }

    /// The numbers of one element and where they lie in it.
    fn of(basic: Basic) -> [Option<(i64, Conversion)>; 2] {
        let is_c_bool = matches!(basic, Basic::CBool | Basic::CxxBool);
        let scalar = basic.scalar();
        let value = Conversion::new(scalar, basic.family(), is_c_bool, basic.external_scalar_size());
        let second = match (basic.family(), basic.index().zip(basic.index_offset())) {
            (Family::Complex, _) => Some((scalar.size(), value)),
            (_, Some((index, offset))) => {
                let conversion = Conversion::new(index, Family::Pair, false, basic.external_index_size());
                Some((offset, conversion))
            }
            _ => None,
        };
        [Some((0, value)), second]
    }

    fn native_len(self) -> usize {
        self.scalar.size() as usize
    }

    /// `native` has as many bytes as the scalar, `external` as many as there.
    fn write(self, native: &[u8], external: &mut [u8]) {
        match self.kind {
            Kind::Order => {
                external.copy_from_slice(native);
                to_big_endian(external);
            }
            Kind::Integer => {
                let value = integer(native, self.scalar.is_signed());
                external.copy_from_slice(&value.to_be_bytes()[16 - self.len..]);
            }
            Kind::Truth => {
                let is_true = integer(native, true) != low(Fortran::current().falsehood, native.len());
                external.fill(0);
                external[self.len - 1] = u8::from(is_true);
            }
            Kind::Float => {
                write_float(self.scalar, native, external);
                to_big_endian(external);
            }
        }
    }

    fn read(self, external: &[u8], native: &mut [u8]) {
        let mut big = [0; 16];
        let ordered = &mut big[..self.len];
        ordered.copy_from_slice(external);
        to_big_endian(ordered);
        match self.kind {
            Kind::Order => native.copy_from_slice(ordered),
            Kind::Integer => write_integer(integer(ordered, self.scalar.is_signed()), native),
            Kind::Truth => {
                let fortran = Fortran::current();
                let is_true = external.iter().any(|&byte| byte != 0);
                write_integer(i128::from(if is_true { fortran.truth } else { fortran.falsehood }), native);
            }
            Kind::Float => read_float(self.scalar, ordered, native),
        }
    }
}

/// From this machine's order to big endian, and back.
fn to_big_endian(bytes: &mut [u8]) {
    if cfg!(target_endian = "little") {
        bytes.reverse();
    }
}

/// An integer in this machine's order.
fn integer(native: &[u8], is_signed: bool) -> i128 {
    let mut bytes = [0; 16];
    bytes[..native.len()].copy_from_slice(native);
    if cfg!(target_endian = "big") {
        bytes[..native.len()].reverse();
    }
    let shift = 128 - 8 * native.len() as u32;
    let value = i128::from_le_bytes(bytes) << shift;
    if is_signed { value >> shift } else { (value as u128 >> shift) as i128 }
}

/// A number as it is read back from `len` bytes.
fn low(value: i64, len: usize) -> i128 {
    let shift = 128 - 8 * len as u32;
    i128::from(value) << shift >> shift
}

fn write_integer(value: i128, native: &mut [u8]) {
    let len = native.len();
    if cfg!(target_endian = "little") {
        native.copy_from_slice(&value.to_le_bytes()[..len]);
    } else {
        native.copy_from_slice(&value.to_be_bytes()[16 - len..]);
    }
}

/// A number with a point to an IEEE number of `ieee.len()` bytes, in this machine's order.
fn write_float(scalar: Scalar, native: &[u8], ieee: &mut [u8]) {
    if scalar == Scalar::LongDouble {
        // SAFETY: both are 16 bytes of any alignment.
        return unsafe { nmad_mpi_extended_to_quad(native.as_ptr(), ieee.as_mut_ptr()) };
    }
    from_double(to_double(scalar, native), ieee);
}

fn read_float(scalar: Scalar, ieee: &[u8], native: &mut [u8]) {
    let from = Scalar::float(ieee.len() as i64).unwrap_or(Scalar::F64);
    match (scalar, from) {
        (Scalar::LongDouble, Scalar::F128) => {
            // SAFETY: both are 16 bytes of any alignment.
            unsafe { nmad_mpi_quad_to_extended(ieee.as_ptr(), native.as_mut_ptr()) };
        }
        (Scalar::F128, _) => {
            let double = to_double(from, ieee).to_ne_bytes();
            // SAFETY: 8 bytes and 16 bytes of any alignment.
            unsafe { nmad_mpi_double_to_quad(double.as_ptr(), native.as_mut_ptr()) };
        }
        _ => from_double(to_double(from, ieee), native),
    }
}

fn to_double(scalar: Scalar, native: &[u8]) -> f64 {
    let low = integer(native, false);
    match scalar {
        Scalar::F16 => f16::from_bits(low as u16).to_f64(),
        Scalar::Bf16 => bf16::from_bits(low as u16).to_f64(),
        Scalar::F32 => f64::from(f32::from_bits(low as u32)),
        Scalar::F128 => {
            let mut double = [0; 8];
            // SAFETY: 16 bytes and 8 bytes of any alignment.
            unsafe { nmad_mpi_quad_to_double(native.as_ptr(), double.as_mut_ptr()) };
            f64::from_ne_bytes(double)
        }
        _ => f64::from_bits(low as u64),
    }
}

fn from_double(value: f64, ieee: &mut [u8]) {
    let bits = match ieee.len() {
        2 => u64::from(f16::from_f32(value as f32).to_bits()),
        4 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    };
    write_integer(i128::from(bits), ieee);
}

// SAFETY: these are the signatures in `c/wide.c`; it takes pointers of any alignment.
unsafe extern "C" {
    fn nmad_mpi_extended_to_quad(from: *const u8, to: *mut u8);
    fn nmad_mpi_quad_to_extended(from: *const u8, to: *mut u8);
    fn nmad_mpi_quad_to_double(from: *const u8, to: *mut u8);
    fn nmad_mpi_double_to_quad(from: *const u8, to: *mut u8);
}

impl Datatype {
    /// `MPI_Pack_external_size`: bytes of `count` elements in `external32`.
    ///
    /// # Errors
    /// Class COUNT if they do not fit into 64 bits.
    pub fn external_size(&self, count: i64) -> Result<i64> {
        if let Some(basic) = self.basic() {
            return super::bounds::multiply(basic.external_size(), count);
        }
        let mut sum = Ok(0);
        let _ = self.for_each_basic(0, 1, &mut |e: Elements| -> Walk<()> {
            let more = super::bounds::multiply(e.basic.external_size(), e.count);
            sum = sum.clone().and_then(|sum| super::bounds::add(sum, more?));
            Walk::Continue(())
        });
        super::bounds::multiply(sum?, count)
    }

    /// `MPI_Pack_external`: `position` is in bytes and moves on.
    ///
    /// # Errors
    /// Class ARG if the position lies outside of the room, or the data do not fit behind it.
    ///
    /// # Safety
    /// As [`Datatype::gather`].
    pub unsafe fn pack_external(
        &self,
        buffer: *const c_void,
        count: i64,
        room: &mut [u8],
        position: &mut i64,
    ) -> Result<()> {
        let len = self.external_size(count)?;
        let range = within(room.len(), *position, len, "the data to pack", Class::ARG)?;
        let mut rest = &mut room[range];
        self.for_each_number(count, |offset, conversion| {
            let (external, behind) = std::mem::take(&mut rest).split_at_mut(conversion.len);
            let native = buffer.cast::<u8>().wrapping_offset(offset as isize);
            // SAFETY: the walk shows numbers of the buffer, which the caller promised.
            let native = unsafe { std::slice::from_raw_parts(native, conversion.native_len()) };
            conversion.write(native, external);
            rest = behind;
        });
        *position += len;
        Ok(())
    }

    /// `MPI_Unpack_external`: `position` is in bytes and moves on.
    ///
    /// # Errors
    /// Class ARG if the position lies outside of the packed data, TRUNCATE if there is too little behind it.
    ///
    /// # Safety
    /// As [`Datatype::scatter`].
    pub unsafe fn unpack_external(
        &self,
        packed: &[u8],
        position: &mut i64,
        buffer: *mut c_void,
        count: i64,
    ) -> Result<()> {
        let len = self.external_size(count)?;
        let range = within(packed.len(), *position, len, "the elements to unpack", Class::TRUNCATE)?;
        let mut rest = &packed[range];
        self.for_each_number(count, |offset, conversion| {
            let (external, behind) = rest.split_at(conversion.len);
            let mut native = [0; 16];
            let native = &mut native[..conversion.native_len()];
            conversion.read(external, native);
            let place = buffer.cast::<u8>().wrapping_offset(offset as isize);
            // SAFETY: the walk shows numbers of the buffer, which the caller promised.
            unsafe { std::ptr::copy_nonoverlapping(native.as_ptr(), place, native.len()) };
            rest = behind;
        });
        *position += len;
        Ok(())
    }

    /// Shows every number of `count` elements: where it lies, and how it changes.
    fn for_each_number(&self, count: i64, mut show: impl FnMut(i64, Conversion)) {
        let _ = self.for_each_basic(0, count, &mut |elements: Elements| -> Walk<()> {
            let numbers = Conversion::of(elements.basic);
            for i in 0..elements.count {
                let base = elements.offset.wrapping_add(i.wrapping_mul(elements.stride));
                for (offset, conversion) in numbers.into_iter().flatten() {
                    show(base.wrapping_add(offset), conversion);
                }
            }
            Walk::Continue(())
        });
    }
}
