//! The predefined types, free of any binary interface.

use super::{Fortran, Scalar};

/// What a basic type is, as far as operators and conversions care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `MPI_PACKED`: no operator, no conversion.
    Packed,
    /// `MPI_BYTE`: bits, never converted.
    Byte,
    /// A printable character: converted, but no number.
    Character,
    /// An integer of C or Fortran, an address, a count.
    Integer,
    /// A number with a point.
    Float,
    /// True or false.
    Logical,
    /// Two [`Family::Float`] of the same kind.
    Complex,
    /// A value and an index, for MINLOC and MAXLOC.
    Pair,
    /// No data: where a type shall begin or end, whatever else is in it. MPI-3.0 has removed them.
    Bound,
}

macro_rules! basics {
    ($($code:literal $name:ident $mpi:literal, $family:ident, $scalar:expr, $external:expr;)*) => {
        /// A predefined type. Its number is the lowest byte of its handle in the standard's binary interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Basic {
            $(#[doc = concat!("`", $mpi, "`.")] $name = $code,)*
        }

        impl Basic {
            /// All of them.
            pub const ALL: &[Basic] = &[$(Basic::$name,)*];

            /// The type of this number.
            #[inline]
            pub const fn from_code(code: u32) -> Option<Basic> {
                static CODES: [Option<Basic>; 256] = {
                    let mut codes = [None; 256];
                    $(codes[$code] = Some(Basic::$name);)*
                    codes
                };
                if code < 256 { CODES[code as usize] } else { None }
            }

            /// The name in the standard, of several that which it lists first (MPI 5.0, table 3.2): what
            /// `MPI_Type_get_name` answers.
            pub const fn name(self) -> &'static str {
                match self { $(Basic::$name => $mpi,)* }
            }

            /// The family of the type.
            pub const fn family(self) -> Family {
                match self { $(Basic::$name => Family::$family,)* }
            }

            /// The number it is made of: of a complex type its parts, of a pair its value.
            #[inline(always)]
            pub fn scalar(self) -> Scalar {
                match self { $(Basic::$name => $scalar,)* }
            }

            /// Bytes of one scalar of it in `external32` (MPI 5.0, section 14.5.2).
            pub fn external_scalar_size(self) -> i64 {
                match self { $(Basic::$name => $external,)* }
            }
        }
    };
}

fn integer() -> Scalar {
    Scalar::signed(Fortran::current().integer).unwrap_or(Scalar::I32)
}

fn logical() -> Scalar {
    Scalar::unsigned(Fortran::current().logical).unwrap_or(Scalar::U32)
}

fn real() -> Scalar {
    Scalar::float(Fortran::current().real).unwrap_or(Scalar::F32)
}

fn double_precision() -> Scalar {
    Scalar::float(Fortran::current().double_precision).unwrap_or(Scalar::F64)
}

basics! {
    0x01 Aint "MPI_AINT", Integer, Scalar::signed(size_of::<isize>() as i64).unwrap_or(Scalar::I64), 8;
    0x02 Count "MPI_COUNT", Integer, Scalar::I64, 8;
    0x03 Offset "MPI_OFFSET", Integer, Scalar::I64, 8;
    0x07 Packed "MPI_PACKED", Packed, Scalar::U8, 1;
    0x08 Short "MPI_SHORT", Integer, Scalar::I16, 2;
    0x09 Int "MPI_INT", Integer, Scalar::I32, 4;
    0x0a Long "MPI_LONG", Integer, Scalar::LONG, 4;
    0x0b LongLong "MPI_LONG_LONG_INT", Integer, Scalar::I64, 8;
    0x0c UnsignedShort "MPI_UNSIGNED_SHORT", Integer, Scalar::U16, 2;
    0x0d Unsigned "MPI_UNSIGNED", Integer, Scalar::U32, 4;
    0x0e UnsignedLong "MPI_UNSIGNED_LONG", Integer, Scalar::UNSIGNED_LONG, 4;
    0x0f UnsignedLongLong "MPI_UNSIGNED_LONG_LONG", Integer, Scalar::U64, 8;
    0x10 Float "MPI_FLOAT", Float, Scalar::F32, 4;
    0x12 CFloatComplex "MPI_C_COMPLEX", Complex, Scalar::F32, 4;
    0x13 CxxFloatComplex "MPI_CXX_FLOAT_COMPLEX", Complex, Scalar::F32, 4;
    0x14 Double "MPI_DOUBLE", Float, Scalar::F64, 8;
    0x16 CDoubleComplex "MPI_C_DOUBLE_COMPLEX", Complex, Scalar::F64, 8;
    0x17 CxxDoubleComplex "MPI_CXX_DOUBLE_COMPLEX", Complex, Scalar::F64, 8;
    0x18 Logical "MPI_LOGICAL", Logical, logical(), 4;
    0x19 Integer "MPI_INTEGER", Integer, integer(), 4;
    0x1a Real "MPI_REAL", Float, real(), 4;
    0x1b Complex "MPI_COMPLEX", Complex, real(), 4;
    0x1c DoublePrecision "MPI_DOUBLE_PRECISION", Float, double_precision(), 8;
    0x1d DoubleComplex "MPI_DOUBLE_COMPLEX", Complex, double_precision(), 8;
    0x1e Character "MPI_CHARACTER", Character, Scalar::U8, 1;
    0x20 LongDouble "MPI_LONG_DOUBLE", Float, Scalar::LongDouble, 16;
    0x24 CLongDoubleComplex "MPI_C_LONG_DOUBLE_COMPLEX", Complex, Scalar::LongDouble, 16;
    0x25 CxxLongDoubleComplex "MPI_CXX_LONG_DOUBLE_COMPLEX", Complex, Scalar::LongDouble, 16;
    0x28 FloatInt "MPI_FLOAT_INT", Pair, Scalar::F32, 4;
    0x29 DoubleInt "MPI_DOUBLE_INT", Pair, Scalar::F64, 8;
    0x2a LongInt "MPI_LONG_INT", Pair, Scalar::LONG, 4;
    0x2b TwoInt "MPI_2INT", Pair, Scalar::I32, 4;
    0x2c ShortInt "MPI_SHORT_INT", Pair, Scalar::I16, 2;
    0x2d LongDoubleInt "MPI_LONG_DOUBLE_INT", Pair, Scalar::LongDouble, 16;
    0x30 TwoReal "MPI_2REAL", Pair, real(), 4;
    0x31 TwoDoublePrecision "MPI_2DOUBLE_PRECISION", Pair, double_precision(), 8;
    0x32 TwoInteger "MPI_2INTEGER", Pair, integer(), 4;
    0x38 CBool "MPI_C_BOOL", Logical, Scalar::U8, 1;
    0x39 CxxBool "MPI_CXX_BOOL", Logical, Scalar::U8, 1;
    0x3c Wchar "MPI_WCHAR", Character, Scalar::I32, 2;
    0x40 Int8 "MPI_INT8_T", Integer, Scalar::I8, 1;
    0x41 Uint8 "MPI_UINT8_T", Integer, Scalar::U8, 1;
    0x43 Char "MPI_CHAR", Character, Scalar::CHAR, 1;
    0x44 SignedChar "MPI_SIGNED_CHAR", Integer, Scalar::I8, 1;
    0x45 UnsignedChar "MPI_UNSIGNED_CHAR", Integer, Scalar::U8, 1;
    0x47 Byte "MPI_BYTE", Byte, Scalar::U8, 1;
    0x48 Int16 "MPI_INT16_T", Integer, Scalar::I16, 2;
    0x49 Uint16 "MPI_UINT16_T", Integer, Scalar::U16, 2;
    0x50 Int32 "MPI_INT32_T", Integer, Scalar::I32, 4;
    0x51 Uint32 "MPI_UINT32_T", Integer, Scalar::U32, 4;
    0x58 Int64 "MPI_INT64_T", Integer, Scalar::I64, 8;
    0x59 Uint64 "MPI_UINT64_T", Integer, Scalar::U64, 8;
    0xc0 Logical1 "MPI_LOGICAL1", Logical, Scalar::U8, 1;
    0xc1 Integer1 "MPI_INTEGER1", Integer, Scalar::I8, 1;
    0xc8 Logical2 "MPI_LOGICAL2", Logical, Scalar::U16, 2;
    0xc9 Integer2 "MPI_INTEGER2", Integer, Scalar::I16, 2;
    0xca Real2 "MPI_REAL2", Float, Scalar::F16, 2;
    0xd0 Logical4 "MPI_LOGICAL4", Logical, Scalar::U32, 4;
    0xd1 Integer4 "MPI_INTEGER4", Integer, Scalar::I32, 4;
    0xd2 Real4 "MPI_REAL4", Float, Scalar::F32, 4;
    0xd3 Complex4 "MPI_COMPLEX4", Complex, Scalar::F16, 2;
    0xd8 Logical8 "MPI_LOGICAL8", Logical, Scalar::U64, 8;
    0xd9 Integer8 "MPI_INTEGER8", Integer, Scalar::I64, 8;
    0xda Real8 "MPI_REAL8", Float, Scalar::F64, 8;
    0xdb Complex8 "MPI_COMPLEX8", Complex, Scalar::F32, 4;
    0xe0 Logical16 "MPI_LOGICAL16", Logical, Scalar::U128, 16;
    0xe1 Integer16 "MPI_INTEGER16", Integer, Scalar::I128, 16;
    0xe2 Real16 "MPI_REAL16", Float, Scalar::F128, 16;
    0xe3 Complex16 "MPI_COMPLEX16", Complex, Scalar::F64, 8;
    0xeb Complex32 "MPI_COMPLEX32", Complex, Scalar::F128, 16;
    0xf0 Float16 "MPIX_C_FLOAT16", Float, Scalar::F16, 2;
    0xf1 Bfloat16 "MPIX_BFLOAT16", Float, Scalar::Bf16, 2;
    0xf2 LowerBound "MPI_LB", Bound, Scalar::U8, 0;
    0xf3 UpperBound "MPI_UB", Bound, Scalar::U8, 0;
}

impl Basic {
    /// Of a pair, the number that is its index.
    pub fn index(self) -> Option<Scalar> {
        match self {
            Basic::TwoReal | Basic::TwoDoublePrecision | Basic::TwoInteger => Some(self.scalar()),
            _ if self.family() == Family::Pair => Some(Scalar::I32),
            _ => None,
        }
    }

    /// Of a pair, bytes from its begin to its index.
    pub fn index_offset(self) -> Option<i64> {
        let index = self.index()?.size();
        Some(round_up(self.scalar().size(), index))
    }

    /// Bytes of data in one element.
    pub fn size(self) -> i64 {
        let value = self.scalar().size();
        match self.family() {
            Family::Complex => 2 * value,
            Family::Bound => 0,
            _ => value + self.index().map_or(0, Scalar::size),
        }
    }

    /// Bytes from the first to the last byte of data.
    pub fn span(self) -> i64 {
        match (self.index_offset(), self.index()) {
            (Some(offset), Some(index)) => offset + index.size(),
            _ => self.size(),
        }
    }

    /// Addresses that C or Fortran puts it at are multiples of this.
    pub fn alignment(self) -> i64 {
        let value = self.scalar().size();
        self.index().map_or(value, |index| value.max(index.size()))
    }

    /// Bytes from one element of an array to the next.
    pub fn extent(self) -> i64 {
        round_up(self.span(), self.alignment())
    }

    /// Basic elements of one element, as `MPI_Get_elements` counts: a pair is two, like the structure that it
    /// stands for.
    pub fn elements(self) -> i64 {
        match self.family() {
            Family::Pair => 2,
            Family::Bound => 0,
            _ => 1,
        }
    }

    /// Bytes of one element in `external32`.
    pub fn external_size(self) -> i64 {
        let value = self.external_scalar_size();
        match self.family() {
            Family::Complex => 2 * value,
            Family::Pair => value + self.external_index_size(),
            _ => value,
        }
    }

    /// Of a pair, bytes of its index in `external32`.
    pub fn external_index_size(self) -> i64 {
        match self {
            Basic::TwoReal | Basic::TwoDoublePrecision | Basic::TwoInteger => self.external_scalar_size(),
            _ => 4,
        }
    }
}

/// The next multiple of `unit`, a power of two.
const fn round_up(len: i64, unit: i64) -> i64 {
    (len + unit - 1) & !(unit - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_agree_with_the_standards_handles() {
        // MPI 5.0, section 20.3.3: bit 0x40 says that bits 3 to 5 are the logarithm of the size.
        for &basic in Basic::ALL.iter().filter(|&&b| b as u32 & 0x40 != 0 && (b as u32) < 0xf0) {
            assert_eq!(basic.size(), 1 << ((basic as u32 >> 3) & 7), "{}", basic.name());
        }
    }

    #[test]
    fn pairs_lie_in_memory_like_structures_of_c() {
        let expected = [
            (Basic::FloatInt, 8, 8, 8),
            (Basic::DoubleInt, 12, 12, 16),
            (Basic::LongInt, 12, 12, 16),
            (Basic::TwoInt, 8, 8, 8),
            (Basic::ShortInt, 6, 8, 8),
            (Basic::LongDoubleInt, 20, 20, 32),
            (Basic::TwoDoublePrecision, 16, 16, 16),
        ];
        for (pair, size, span, extent) in expected {
            assert_eq!((pair.size(), pair.span(), pair.extent()), (size, span, extent), "{}", pair.name());
        }
    }

    #[test]
    fn codes_and_types_are_one_to_one() {
        for &basic in Basic::ALL {
            assert_eq!(Basic::from_code(basic as u32), Some(basic));
        }
        assert_eq!(Basic::from_code(0), None);
    }
}
