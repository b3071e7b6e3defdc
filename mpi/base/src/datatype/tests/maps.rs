//! Bounds, sizes, walks and packing of random types.

use proptest::prelude::*;

use super::reference::recipes;
use crate::datatype::{Basic, Datatype, Form, Signature, Strided};
use crate::error::Class;

/// Memory around an address, so that displacements may be negative.
struct Memory {
    bytes: Vec<u8>,
    origin: usize,
}

impl Memory {
    /// Room for all of the displacements, filled with different bytes.
    fn around(displacements: &[i64]) -> Memory {
        let least = displacements.iter().copied().min().unwrap_or(0).min(0);
        let greatest = displacements.iter().copied().max().unwrap_or(0).max(0);
        let bytes = (0..=(greatest - least)).map(|i| (i * 7 + 3) as u8).collect();
        Memory { bytes, origin: -least as usize }
    }

    fn at(&self, displacement: i64) -> u8 {
        self.bytes[(self.origin as i64 + displacement) as usize]
    }

    fn address(&mut self) -> *mut std::ffi::c_void {
        self.bytes.as_mut_ptr().wrapping_add(self.origin).cast()
    }
}

proptest! {
    #[test]
    fn types_are_what_their_type_maps_say(recipe in recipes(), count in 0..4_i64) {
        let (map, datatype) = (recipe.map(), recipe.build());
        let (begin, end) = map.bounds();
        prop_assert_eq!((datatype.lower_bound(), datatype.extent()), (begin, end - begin));
        let (begin, end) = map.data();
        prop_assert_eq!((datatype.true_lower_bound(), datatype.true_extent()), (begin, end - begin));
        prop_assert_eq!(datatype.size(), map.bytes(1).len() as i64);
        let elements: i64 = map.entries.iter().map(|(basic, _)| basic.elements()).sum();
        prop_assert_eq!(datatype.elements(), elements);

        let sequence = map.entries.iter().map(|&(basic, _)| Datatype::predefined(basic).signature(1));
        let signature = sequence.fold(Signature::EMPTY, Signature::then);
        prop_assert_eq!(datatype.signature(count), signature.times(count));

        let expected = map.bytes(count);
        let mut walked = Vec::new();
        let mut last_end = None;
        let mut runs = 0;
        datatype.for_each_run(count, |run| {
            assert!(run.len > 0 && last_end != Some(run.offset), "neighbours that were not joined");
            last_end = Some(run.offset + run.len);
            walked.extend(run.offset..run.offset + run.len);
            runs += 1;
        });
        prop_assert_eq!(&walked, &expected);
        prop_assert!(runs <= datatype.max_runs(count));
        if let Some(Strided { first, count, stride }) = datatype.strides(count) {
            let runs = (0..count).map(|i| first.offset + i * stride);
            prop_assert_eq!(runs.flat_map(|at| at..at + first.len).collect::<Vec<_>>(), &expected[..]);
        }
        if let Some(run) = datatype.run(count) {
            prop_assert_eq!((run.offset..run.offset + run.len).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn packing_follows_the_type_map(recipe in recipes(), count in 0..4_i64, room in 0..400_usize) {
        let (datatype, displacements) = (recipe.build(), recipe.map().bytes(count));
        let mut memory = Memory::around(&displacements);
        let mut packed = vec![0; room];
        let expected: Vec<u8> = displacements.iter().map(|&at| memory.at(at)).take(room).collect();
        // SAFETY: the memory has all displacements of the elements.
        let len = unsafe { datatype.gather(memory.address(), count, &mut packed) };
        prop_assert_eq!(&packed[..len], &expected[..]);
        prop_assert!(packed[len..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn unpacking_writes_what_was_packed_and_nothing_else(
        recipe in recipes(),
        count in 0..4_i64,
        len in 0..400_usize,
    ) {
        let (datatype, displacements) = (recipe.build(), recipe.map().bytes(count));
        let mut memory = Memory::around(&displacements);
        let mut expected = memory.bytes.clone();
        let packed: Vec<u8> = (0..len).map(|i| i as u8 ^ 0x5a).collect();
        for (&at, &byte) in displacements.iter().zip(&packed) {
            expected[(memory.origin as i64 + at) as usize] = byte;
        }
        // SAFETY: the memory has all displacements of the elements.
        let written = unsafe { datatype.scatter(&packed, memory.address(), count) };
        prop_assert_eq!(written, len.min(displacements.len()));
        prop_assert_eq!(&memory.bytes, &expected);
    }
}

#[test]
fn signatures_tell_types_and_orders_apart() {
    let of = |list: &[Basic]| {
        list.iter().fold(Signature::EMPTY, |s, &basic| s.then(Datatype::predefined(basic).signature(1)))
    };
    let (int, double) = (Basic::Int, Basic::Double);
    assert_ne!(of(&[int, double]), of(&[double, int]));
    assert_ne!(of(&[int, int]), of(&[int]));
    assert_eq!(of(&[Basic::DoubleInt]), of(&[double, int]));
    assert_eq!(of(&[Basic::TwoInt, Basic::TwoInt]), of(&[int]).times(4));
    assert_eq!(of(&[Basic::LowerBound, Basic::UpperBound]), Signature::EMPTY);
    let single = || Basic::ALL.iter().filter(|basic| basic.index().is_none() && basic.size() > 0);
    let all: std::collections::HashSet<Signature> = single().map(|&basic| of(&[basic])).collect();
    assert_eq!(all.len(), single().count());
}

#[test]
fn positions_move_on_and_are_checked() {
    let three = Datatype::contiguous(Form::Int, 3, Datatype::predefined(Basic::Short)).unwrap();
    let (data, mut room, mut position) = ([1_i16, 2, 3, 4, 5, 6], [0_u8; 16], 2);
    // SAFETY: six shorts are two elements.
    let mut pack = |position: &mut i64| unsafe { three.pack(data.as_ptr().cast(), 2, &mut room, position) };
    pack(&mut position).unwrap();
    assert_eq!(position, 14);
    assert_eq!(pack(&mut position).unwrap_err().class(), Class::ARG);
    assert_eq!(pack(&mut -1).unwrap_err().class(), Class::ARG);
    assert_eq!(pack(&mut 17).unwrap_err().class(), Class::ARG);

    let (mut back, mut position) = ([0_i16; 6], 2);
    let mut unpack = |position: &mut i64| {
        // SAFETY: six shorts are two elements.
        unsafe { three.unpack(&room, position, back.as_mut_ptr().cast(), 2) }
    };
    unpack(&mut position).unwrap();
    assert_eq!((position, unpack(&mut position).unwrap_err().class()), (14, Class::TRUNCATE));
    assert_eq!(back, data);
}

#[test]
fn blocks_of_every_length_are_copied() {
    for len in (1..80_i64).chain([95, 96, 97, 128, 255, 256, 257, 1000]) {
        let byte = Datatype::predefined(Basic::Byte);
        let vector = Datatype::hvector(Form::Int, 5, len, len + 3, byte).unwrap();
        let memory: Vec<u8> = (0..5 * (len + 3)).map(|i| i as u8).collect();
        let mut packed = vec![0; 5 * len as usize];
        // SAFETY: the vector is shorter than the memory.
        unsafe { vector.gather(memory.as_ptr().cast(), 1, &mut packed) };
        let expected: Vec<u8> =
            (0..5).flat_map(|i| (0..len).map(move |j| (i * (len + 3) + j) as u8)).collect();
        assert_eq!(packed, expected, "blocks of {len} bytes");
        let mut back = vec![0_u8; memory.len()];
        // SAFETY: the vector is shorter than the memory.
        unsafe { vector.scatter(&packed, back.as_mut_ptr().cast(), 1) };
        for (at, &byte) in back.iter().enumerate() {
            let is_hole = at as i64 % (len + 3) >= len;
            assert_eq!(byte, if is_hole { 0 } else { memory[at] }, "byte {at} of blocks of {len}");
        }
    }
}

#[test]
fn contiguous_types_are_recognised() {
    let double = Datatype::predefined(Basic::Double);
    let fields = [double.clone(), Datatype::of(Basic::Long)];
    let dense = [
        Datatype::contiguous(Form::Int, 100, double).unwrap(),
        Datatype::vector(Form::Int, 10, 4, 4, double).unwrap(),
        Datatype::indexed(Form::Int, &[2, 3], &[0, 2], double).unwrap(),
        Datatype::structure_of(Form::Int, &[1, 1], &[0, 8], &fields).unwrap(),
        Datatype::subarray(Form::Int, &[4, 5], &[4, 5], &[0, 0], crate::datatype::Order::C, double).unwrap(),
    ];
    for datatype in dense {
        assert!(datatype.is_contiguous() && datatype.run(1000).is_some(), "{:?}", datatype.combiner());
    }
    let gaps = Datatype::vector(Form::Int, 2, 1, 2, double).unwrap();
    assert!(!gaps.is_contiguous() && gaps.run(1).is_none() && gaps.run(0).is_some());
    // One element of a type with a larger extent is one run, two are not.
    let wide = Datatype::resized(Form::Int, 0, 64, double).unwrap();
    assert!(wide.run(1).is_some() && wide.run(2).is_none());
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let int = Datatype::predefined(Basic::Int);
    let class = |result: crate::Result<Datatype>| result.map(|_| ()).unwrap_err().class();
    assert_eq!(class(Datatype::contiguous(Form::Large, i64::MAX / 2, int)), Class::COUNT);
    assert_eq!(class(Datatype::contiguous(Form::Int, -1, int)), Class::COUNT);
    assert_eq!(class(Datatype::vector(Form::Large, 2, 1, i64::MAX / 2, int)), Class::COUNT);
    assert_eq!(class(Datatype::hindexed(Form::Large, &[1, 1], &[i64::MIN, i64::MAX], int)), Class::COUNT);
    assert_eq!(class(Datatype::hvector(Form::Large, i64::MAX, 1, 0, int)), Class::COUNT);
    assert_eq!(class(Datatype::resized(Form::Large, i64::MAX, i64::MAX, int)), Class::COUNT);
    assert_eq!(class(Datatype::indexed(Form::Int, &[1], &[], int)), Class::ARG);
    let large = Datatype::contiguous(Form::Large, 1 << 60, int).unwrap();
    assert_eq!((large.size(), large.bytes(2).unwrap_err().class()), (1 << 62, Class::COUNT));
}

#[test]
fn nesting_has_a_limit_and_ends_in_peace() {
    let mut datatype = Datatype::of(Basic::Int);
    let deepest = (0..10_000).find_map(|_| match Datatype::vector(Form::Int, 2, 1, 2, &datatype) {
        Ok(next) if next.extent() < 1 << 40 => {
            datatype = Datatype::resized(Form::Int, 0, 12, &next).unwrap();
            None
        }
        Ok(_) => panic!("the extent was reset"),
        Err(error) => Some(error.class()),
    });
    assert!(matches!(deepest, Some(Class::TYPE | Class::COUNT)));
}

/// Structures are padded to their alignment, vectors are not, wherever their blocks begin.
#[test]
fn only_structures_are_padded() {
    let double = &Datatype::of(Basic::Double);
    let vector = Datatype::hvector(Form::Int, 2, 1, 9, double).unwrap();
    assert_eq!((vector.extent(), vector.true_extent()), (17, 17));
    let structure =
        Datatype::structure_of(Form::Int, &[1, 1], &[0, 8], &[double.clone(), Datatype::of(Basic::Char)]);
    let structure = structure.unwrap();
    assert_eq!((structure.extent(), structure.true_extent()), (16, 9));
    let both = Datatype::hvector(Form::Int, 2, 1, 17, &structure).unwrap();
    assert_eq!((both.extent(), both.true_extent()), (33, 26));
}

#[test]
fn long_data_is_packed_and_unpacked_in_pieces() {
    crate::op::tests::work_in_pieces();
    let int = Datatype::predefined(Basic::Int);
    let vector = Datatype::vector(Form::Int, 30_000, 3, 5, int).unwrap();
    let odd = Datatype::indexed(Form::Int, &[1, 4, 2], &[9, 2, 0], int).unwrap();
    let wide = Datatype::vector(Form::Int, 5_000, 40, 100, &odd).unwrap();
    for (datatype, count) in [(int, 100_003), (&vector, 1), (&vector, 3), (&odd, 20_001), (&wide, 2)] {
        let mut displacements = Vec::new();
        datatype.for_each_run(count, |run| displacements.extend(run.offset..run.offset + run.len));
        let mut memory = Memory::around(&displacements);
        let expected: Vec<u8> = displacements.iter().map(|&at| memory.at(at)).collect();
        let mut packed = vec![0; expected.len()];
        // SAFETY: the memory has all displacements of the elements.
        let len = unsafe { datatype.gather(memory.address(), count, &mut packed) };
        assert!(len == packed.len() && packed == expected, "{count} of {}", datatype.size());
        let (before, rest) = (memory.bytes.clone(), packed.len() - 5);
        packed.iter_mut().for_each(|byte| *byte ^= 0xff);
        // All of it, and less than the elements need.
        for part in [&packed[..], &packed[..rest]] {
            memory.bytes.clone_from(&before);
            let mut expected = before.clone();
            for (&at, &byte) in displacements.iter().zip(part) {
                expected[(memory.origin as i64 + at) as usize] = byte;
            }
            // SAFETY: as above.
            let written = unsafe { datatype.scatter(part, memory.address(), count) };
            assert!(written == part.len() && memory.bytes == expected, "{count} of {}", datatype.size());
        }
    }
}
