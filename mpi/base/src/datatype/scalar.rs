//! The numbers that basic types are made of, by their representation in memory.
use std::ffi::c_long;

/// How one number lies in memory, in the byte order of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Scalar {
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    U128,
    /// IEEE binary16.
    F16,
    /// The upper half of an IEEE binary32.
    Bf16,
    F32,
    F64,
    /// C's `long double`: 80 bits of x87 in 16 bytes on x86-64, binary128 on most other machines.
    LongDouble,
    /// IEEE binary128.
    F128,
}

impl Scalar {
    /// C's `char`.
    pub const CHAR: Scalar = if std::ffi::c_char::MIN == 0 { Scalar::U8 } else { Scalar::I8 };
    /// C's `long`.
    pub const LONG: Scalar = if size_of::<c_long>() == 8 { Scalar::I64 } else { Scalar::I32 };
    /// C's `unsigned long`.
    pub const UNSIGNED_LONG: Scalar = if size_of::<c_long>() == 8 { Scalar::U64 } else { Scalar::U32 };

    /// Bytes in memory; the alignment is the same.
    pub const fn size(self) -> i64 {
        match self {
            Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
            Scalar::I128 | Scalar::U128 | Scalar::LongDouble | Scalar::F128 => 16,
        }
    }

    /// Whether a larger copy of the number repeats its sign.
    pub const fn is_signed(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 | Scalar::I128)
    }

    /// The signed integer of this many bytes.
    pub const fn signed(size: i64) -> Option<Scalar> {
        match size {
            1 => Some(Scalar::I8),
            2 => Some(Scalar::I16),
            4 => Some(Scalar::I32),
            8 => Some(Scalar::I64),
            16 => Some(Scalar::I128),
            _ => None,
        }
    }

    /// The unsigned integer of this many bytes.
    pub const fn unsigned(size: i64) -> Option<Scalar> {
        match size {
            1 => Some(Scalar::U8),
            2 => Some(Scalar::U16),
            4 => Some(Scalar::U32),
            8 => Some(Scalar::U64),
            16 => Some(Scalar::U128),
            _ => None,
        }
    }

    /// The IEEE number of this many bytes.
    pub const fn float(size: i64) -> Option<Scalar> {
        match size {
            2 => Some(Scalar::F16),
            4 => Some(Scalar::F32),
            8 => Some(Scalar::F64),
            16 => Some(Scalar::F128),
            _ => None,
        }
    }
}
