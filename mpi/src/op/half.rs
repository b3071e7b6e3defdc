//! IEEE binary16 and bfloat16: arithmetic in binary32, rounded to nearest even.
//!
//! Sums and products of two halves are exact or correctly rounded in binary32, and rounding them once
//! more gives the half that IEEE asks for (binary32 has more than twice the digits, plus two).

/// An IEEE binary16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Half(pub u16);

/// The upper half of a binary32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Bfloat(pub u16);

impl Half {
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let exponent = u32::from(self.0 >> 10) & 0x1f;
        let fraction = u32::from(self.0) & 0x3ff;
        match exponent {
            // 2^-24 is the unit of the subnormal numbers.
            0 => f32::from_bits(sign | (fraction as f32 * 2_f32.powi(-24)).to_bits()),
            31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
            _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
        }
    }

    pub fn from_f32(value: f32) -> Half {
        let sign = (value.to_bits() >> 16 & 0x8000) as u16;
        let magnitude = value.to_bits() & 0x7fff_ffff;
        if magnitude > 0x7f80_0000 {
            return Half(sign | 0x7e00);
        }
        // 65520, half way beyond the largest half.
        if magnitude >= 0x477f_f000 {
            return Half(sign | 0x7c00);
        }
        // Below 2^-14: adding 0.5 leaves multiples of 2^-24 in the fraction, rounded by the addition.
        if magnitude < 0x3880_0000 {
            let rounded = f32::from_bits(magnitude) + 0.5;
            return Half(sign | (rounded.to_bits() - 0.5_f32.to_bits()) as u16);
        }
        let odd = magnitude >> 13 & 1;
        Half(sign | ((magnitude - (112 << 23) + 0xfff + odd) >> 13) as u16)
    }
}

impl Bfloat {
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    pub fn from_f32(value: f32) -> Bfloat {
        let bits = value.to_bits();
        if value.is_nan() {
            return Bfloat((bits >> 16) as u16 | 0x40);
        }
        let odd = bits >> 16 & 1;
        Bfloat((bits.wrapping_add(0x7fff + odd) >> 16) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_binary32() {
        for bits in 0..=u16::MAX {
            let half = Half(bits);
            if half.to_f32().is_nan() {
                assert!(Half::from_f32(half.to_f32()).to_f32().is_nan());
            } else {
                assert_eq!(Half::from_f32(half.to_f32()), half, "{bits:#x}");
            }
        }
    }

    #[test]
    fn numbers_between_two_halves_go_to_the_nearer_and_on_a_tie_to_the_even_one() {
        for low in (0..0x7bff_u16).step_by(7) {
            let (a, b) = (Half(low).to_f32(), Half(low + 1).to_f32());
            let middle = (a + b) / 2.0;
            let even = if low % 2 == 0 { low } else { low + 1 };
            assert_eq!(Half::from_f32(middle), Half(even));
            assert_eq!(Half::from_f32(middle.next_down()), Half(low));
            assert_eq!(Half::from_f32(middle.next_up()), Half(low + 1));
        }
        assert_eq!(Half::from_f32(65520.0), Half(0x7c00));
        assert_eq!(Half::from_f32(65519.996), Half(0x7bff));
    }

    #[test]
    fn bfloats_round_to_even() {
        assert_eq!(Bfloat::from_f32(f32::from_bits(0x3f80_8000)), Bfloat(0x3f80));
        assert_eq!(Bfloat::from_f32(f32::from_bits(0x3f81_8000)), Bfloat(0x3f82));
        assert_eq!(Bfloat::from_f32(f32::INFINITY).to_f32(), f32::INFINITY);
        assert!(Bfloat::from_f32(f32::NAN).to_f32().is_nan());
    }
}
