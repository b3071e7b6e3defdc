//! `external32`: known bytes, and the way back.

use proptest::prelude::*;

use super::reference::recipes;
use crate::datatype::{Basic, Datatype, Family};

fn packed<T, const N: usize>(basic: Basic, data: [T; N]) -> Vec<u8> {
    let datatype = Datatype::predefined(basic);
    let mut room = vec![0; datatype.external_size(N as i64).unwrap() as usize];
    let mut position = 0;
    // SAFETY: the array has N elements of the type.
    unsafe { datatype.pack_external(data.as_ptr().cast(), N as i64, &mut room, &mut position).unwrap() };
    assert_eq!(position, room.len() as i64);
    room
}

fn unpacked<T: Copy + Default, const N: usize>(basic: Basic, bytes: &[u8]) -> [T; N] {
    let mut data = [T::default(); N];
    let datatype = Datatype::predefined(basic);
    // SAFETY: the array has N elements of the type.
    unsafe { datatype.unpack_external(bytes, &mut 0, data.as_mut_ptr().cast(), N as i64).unwrap() };
    data
}

#[test]
fn numbers_are_big_endian() {
    assert_eq!(packed(Basic::Short, [0x1234_i16, -2]), [0x12, 0x34, 0xff, 0xfe]);
    assert_eq!(packed(Basic::Int, [0x0102_0304_i32]), [1, 2, 3, 4]);
    assert_eq!(packed(Basic::Double, [1.0_f64]), [0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
    let complex = packed(Basic::CFloatComplex, [[1.0_f32, -2.0]]);
    assert_eq!(complex, [0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0]);
    assert_eq!(packed(Basic::Byte, [1_u8, 2]), [1, 2]);
}

#[test]
fn long_integers_have_four_bytes_and_keep_their_sign() {
    assert_eq!(packed(Basic::Long, [-2_i64]), [0xff, 0xff, 0xff, 0xfe]);
    assert_eq!(unpacked::<i64, 1>(Basic::Long, &[0xff, 0xff, 0xff, 0xfe]), [-2]);
    assert_eq!(unpacked::<u64, 1>(Basic::UnsignedLong, &[0xff, 0xff, 0xff, 0xfe]), [0xffff_fffe]);
    assert_eq!(packed(Basic::LongLong, [-2_i64]).len(), 8);
    assert_eq!(packed(Basic::Wchar, [0x41_i32]), [0, 0x41]);
}

#[test]
fn long_doubles_become_binary128() {
    let mut one = [0; 16];
    one[..2].copy_from_slice(&[0x3f, 0xff]);
    let native: [u128; 1] = unpacked(Basic::LongDouble, &one);
    assert_eq!(packed(Basic::LongDouble, native), one);
    if cfg!(target_arch = "x86_64") {
        assert_eq!(native[0] & ((1 << 80) - 1), 0x3fff_8000_0000_0000_0000);
    }
}

#[test]
fn truth_is_one_byte_of_one() {
    assert_eq!(packed(Basic::Logical, [0_u32, 1]), [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(packed(Basic::CBool, [1_u8, 0]), [1, 0]);
    assert_eq!(unpacked::<u32, 2>(Basic::Logical, &[0, 0, 0, 7, 0, 0, 0, 0]), [1, 0]);
}

#[test]
fn pairs_lose_their_holes() {
    #[derive(Clone, Copy, Default, Debug, PartialEq)]
    #[repr(C)]
    struct Pair(f64, i32);
    let bytes = packed(Basic::DoubleInt, [Pair(1.0, 5)]);
    assert_eq!(bytes, [0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    assert_eq!(unpacked::<Pair, 1>(Basic::DoubleInt, &bytes), [Pair(1.0, 5)]);
}

#[test]
fn every_basic_type_comes_back() {
    for &basic in Basic::ALL.iter().filter(|basic| basic.size() > 0) {
        let datatype = Datatype::predefined(basic);
        let external = datatype.external_size(1).unwrap() as usize;
        // Small numbers: a byte at the end of each; of numbers with a point, a harmless exponent.
        let mut bytes = vec![0; external];
        bytes[external - 1] = 1;
        if matches!(basic.family(), Family::Float | Family::Complex) {
            bytes[0] = 0x3f;
        }
        let mut native = [0_u8; 32];
        let mut back = vec![0; external];
        // SAFETY: no element is longer than 32 bytes.
        unsafe {
            datatype.unpack_external(&bytes, &mut 0, native.as_mut_ptr().cast(), 1).unwrap();
            datatype.pack_external(native.as_ptr().cast(), 1, &mut back, &mut 0).unwrap();
        }
        if basic != Basic::LongDouble && basic.scalar() != crate::datatype::Scalar::LongDouble {
            assert_eq!(back, bytes, "{}", basic.name());
        }
    }
}

proptest! {
    #[test]
    fn derived_types_are_their_basic_types_in_order(recipe in recipes(), count in 0..3_i64) {
        let (map, datatype) = (recipe.map(), recipe.build());
        let one: i64 = map.entries.iter().map(|(basic, _)| basic.external_size()).sum();
        prop_assert_eq!(datatype.external_size(count).unwrap(), one * count);
        let displacements = map.bytes(count);
        let least = displacements.iter().copied().min().unwrap_or(0).min(0);
        let greatest = displacements.iter().copied().max().unwrap_or(0).max(0);
        let mut memory: Vec<u8> = (0..=greatest - least).map(|i| i as u8).collect();
        let address = memory.as_mut_ptr().wrapping_add(-least as usize);
        let mut room = vec![0; (one * count) as usize];
        // SAFETY: the memory has all displacements of the elements.
        unsafe { datatype.pack_external(address.cast(), count, &mut room, &mut 0).unwrap() };
        let mut expected = Vec::new();
        for i in 0..count {
            for &(basic, at) in &map.entries {
                let mut element = vec![0; basic.external_size() as usize];
                let place = address.wrapping_offset((at + i * map.extent()) as isize);
                // SAFETY: as above.
                unsafe {
                    let basic = Datatype::predefined(basic);
                    basic.pack_external(place.cast(), 1, &mut element, &mut 0).unwrap();
                }
                expected.extend(element);
            }
        }
        prop_assert_eq!(room, expected);
    }
}
