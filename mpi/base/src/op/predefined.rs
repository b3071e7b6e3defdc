//! The predefined operators, and on which types they work (MPI 5.0, section 6.9.2).

use crate::datatype::{Basic, Family};

macro_rules! operators {
    ($($code:literal $name:ident $mpi:literal;)*) => {
        /// A predefined operator. Its number is the lowest five bits of its handle in the standard's binary
        /// interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Predefined {
            $(#[doc = concat!("`", $mpi, "`.")] $name = $code,)*
        }

        impl Predefined {
            /// All of them.
            pub const ALL: &[Predefined] = &[$(Predefined::$name,)*];

            /// The operator of this number.
            #[inline]
            pub const fn from_code(code: u32) -> Option<Predefined> {
                static CODES: [Option<Predefined>; 32] = {
                    let mut codes = [None; 32];
                    $(codes[$code] = Some(Predefined::$name);)*
                    codes
                };
                if code < 32 { CODES[code as usize] } else { None }
            }

            /// The name in the standard.
            pub const fn name(self) -> &'static str {
                match self { $(Predefined::$name => $mpi,)* }
            }
        }
    };
}

operators! {
    0x01 Sum "MPI_SUM";
    0x02 Min "MPI_MIN";
    0x03 Max "MPI_MAX";
    0x04 Prod "MPI_PROD";
    0x08 Band "MPI_BAND";
    0x09 Bor "MPI_BOR";
    0x0a Bxor "MPI_BXOR";
    0x10 Land "MPI_LAND";
    0x11 Lor "MPI_LOR";
    0x12 Lxor "MPI_LXOR";
    0x18 Minloc "MPI_MINLOC";
    0x19 Maxloc "MPI_MAXLOC";
    0x1c Replace "MPI_REPLACE";
    0x1d NoOp "MPI_NO_OP";
}

impl Predefined {
    /// Whether the operands may change places.
    pub const fn is_commutative(self) -> bool {
        !self.is_for_windows_only()
    }

    /// Whether it is for accumulates into windows only, not for reductions.
    pub const fn is_for_windows_only(self) -> bool {
        matches!(self, Predefined::Replace | Predefined::NoOp)
    }

    /// Whether it works on a type.
    #[inline]
    pub fn allows(self, basic: Basic) -> bool {
        ALLOWED[basic as usize] >> self as u32 & 1 != 0
    }

    /// The same, worked out. `MPI_CHAR` counts as an integer, as in other implementations: the standard does
    /// not ask for it, but programs rely on it.
    const fn works_on(self, basic: Basic) -> bool {
        let family = match basic {
            Basic::Char => Family::Integer,
            _ => basic.family(),
        };
        match self {
            Predefined::Max | Predefined::Min => matches!(family, Family::Integer | Family::Float),
            Predefined::Sum | Predefined::Prod => {
                matches!(family, Family::Integer | Family::Float | Family::Complex)
            }
            Predefined::Land | Predefined::Lor | Predefined::Lxor => {
                matches!(family, Family::Integer | Family::Logical)
            }
            Predefined::Band | Predefined::Bor | Predefined::Bxor => {
                matches!(family, Family::Integer | Family::Byte)
            }
            Predefined::Minloc | Predefined::Maxloc => matches!(family, Family::Pair),
            Predefined::Replace | Predefined::NoOp => true,
        }
    }
}

/// The operators of each type by its number, as bits: every accumulate asks.
static ALLOWED: [u32; 256] = {
    let (mut allowed, mut basics) = ([0; 256], Basic::ALL);
    while let [basic, others @ ..] = basics {
        let mut operators = Predefined::ALL;
        while let [op, rest @ ..] = operators {
            allowed[*basic as usize] |= (op.works_on(*basic) as u32) << *op as u32;
            operators = rest;
        }
        basics = others;
    }
    allowed
};
