//! Counting elements, envelopes and contents, types that are looked up.

use proptest::prelude::*;

use super::reference::recipes;
use crate::datatype::{
    Basic, Combiner, DEFAULT_ARGUMENT, Datatype, Distribution, Form, IntegerKind, Order, Share, TypeClass,
    f90_float, f90_integer, match_size, value_index,
};
use crate::error::Class;

proptest! {
    #[test]
    fn elements_are_counted_one_by_one(recipe in recipes(), count in 0..3_i64, extra in 0..40_i64) {
        let (map, datatype) = (recipe.map(), recipe.build());
        // The length in bytes after which each further basic element is complete; a pair is two.
        let mut ends = vec![0];
        for _ in 0..count + 40 {
            for &(basic, _) in &map.entries {
                let index = basic.index().map_or(0, |index| index.size());
                ends.push(ends.last().unwrap() + basic.size() - index);
                if index > 0 {
                    ends.push(ends.last().unwrap() + index);
                }
            }
        }
        let len = datatype.size() * count + extra;
        if map.entries.is_empty() {
            prop_assert_eq!(datatype.elements_in(len), (len == 0).then_some(0));
        } else {
            let expected = ends.binary_search(&len).ok().map(|elements| elements as i64);
            prop_assert_eq!(datatype.elements_in(len), expected);
            for elements in [extra, count] {
                prop_assert_eq!(datatype.bytes_of_elements(elements), Some(ends[elements as usize]));
            }
            let whole = if len % datatype.size() == 0 { Some(len / datatype.size()) } else { None };
            prop_assert_eq!(datatype.count_in(len), whole);
        }
    }
}

#[test]
fn contents_are_the_arguments() {
    let int = Datatype::predefined(Basic::Int);
    let vector = Datatype::vector(Form::Int, 2, 3, 4, int).unwrap();
    let contents = vector.contents();
    assert_eq!((contents.combiner, &contents.integers[..]), (Combiner::Vector, &[2, 3, 4][..]));
    assert!(contents.types[0].is_same(int) && contents.counts.is_empty());

    let hindexed = Datatype::hindexed(Form::Int, &[1, 2], &[0, 64], int).unwrap();
    assert_eq!(
        (&hindexed.contents().integers[..], &hindexed.contents().addresses[..]),
        (&[2, 1, 2][..], &[0, 64][..])
    );
    let large = Datatype::hindexed(Form::Large, &[1, 2], &[0, 64], int).unwrap();
    assert_eq!(large.contents().counts[..], [2, 1, 2, 0, 64]);
    assert!(large.contents().integers.is_empty() && large.contents().addresses.is_empty());
    assert_eq!(large.contents().check(Form::Int).unwrap_err().class(), Class::TYPE);
    large.contents().check(Form::Large).unwrap();
    hindexed.contents().check(Form::Large).unwrap();

    let types = [int.clone(), vector.clone()];
    let fields = Datatype::structure_of(Form::Int, &[1, 1], &[0, 8], &types).unwrap();
    assert!(fields.contents().types[1].is_same(&vector));
    assert_eq!(int.contents().check(Form::Int).unwrap_err().class(), Class::TYPE);
    assert_eq!(int.combiner(), Combiner::Named);
}

#[test]
fn contents_of_arrays_say_which_integers_are_constants() {
    let int = Datatype::predefined(Basic::Int);
    let sub = Datatype::subarray(Form::Int, &[4, 5], &[2, 3], &[1, 1], Order::Fortran, int).unwrap();
    assert_eq!(sub.contents().integers[..], [2, 4, 5, 2, 3, 1, 1, Order::Fortran as i64]);
    assert_eq!(sub.contents().integer_kind(7), IntegerKind::Order);
    let large = Datatype::subarray(Form::Large, &[4, 5], &[2, 3], &[1, 1], Order::C, int).unwrap();
    assert_eq!(large.contents().integers[..], [2, Order::C as i64]);
    assert_eq!(large.contents().counts[..], [4, 5, 2, 3, 1, 1]);

    let share = |distribution, argument, processes| Share { size: 9, distribution, argument, processes };
    let shares = [share(Distribution::Block, DEFAULT_ARGUMENT, 3), share(Distribution::Cyclic, 2, 2)];
    for form in [Form::Int, Form::Large] {
        let datatype = Datatype::darray(form, 6, 4, &shares, Order::C, int).unwrap();
        let contents = datatype.contents();
        let sizes = if form == Form::Int { &[9, 9][..] } else { &[] };
        let tail = [17, 18, i64::from(DEFAULT_ARGUMENT), 2, 3, 2, 0xc];
        assert_eq!(contents.integers[..], [&[6, 4, 2][..], sizes, &tail].concat());
        let kinds = (0..contents.integers.len()).map(|i| contents.integer_kind(i)).skip(3 + sizes.len());
        use IntegerKind as Kind;
        let expected = [
            Kind::Distribution,
            Kind::Distribution,
            Kind::Argument,
            Kind::Argument,
            Kind::Plain,
            Kind::Plain,
            Kind::Order,
        ];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn duplicates_are_committed_if_the_original_is() {
    let vector = Datatype::vector(Form::Int, 2, 1, 3, Datatype::predefined(Basic::Char)).unwrap();
    assert!(!vector.is_committed() && !vector.dup().unwrap().is_committed());
    vector.commit();
    let copy = vector.dup().unwrap();
    assert!(copy.is_committed() && !copy.is_same(&vector));
    assert_eq!((copy.combiner(), copy.extent()), (Combiner::Dup, 4));
    assert!(Datatype::of(Basic::Int).is_committed());
}

#[test]
fn types_are_found_by_what_they_hold() {
    assert_eq!(match_size(TypeClass::Real, 8).unwrap(), Basic::Real8);
    assert_eq!(match_size(TypeClass::Complex, 8).unwrap(), Basic::Complex8);
    assert_eq!(match_size(TypeClass::Integer, 3).unwrap_err().class(), Class::ARG);

    let real = f90_float(TypeClass::Real, Some(7), None).unwrap();
    assert_eq!((real.size(), real.combiner()), (8, Combiner::F90Real));
    assert_eq!(real.contents().integers[..], [7, i64::from(crate::constant::UNDEFINED)]);
    assert!(real.is_committed());
    assert_eq!(f90_float(TypeClass::Complex, Some(6), Some(37)).unwrap().size(), 8);
    assert_eq!(f90_float(TypeClass::Real, None, Some(400)).unwrap().size(), 16);
    assert_eq!(f90_float(TypeClass::Real, Some(40), None).unwrap_err().class(), Class::ARG);
    assert_eq!(f90_float(TypeClass::Real, None, None).unwrap_err().class(), Class::ARG);
    assert_eq!([2, 9, 18, 38].map(|range| f90_integer(range).unwrap().size()), [1, 4, 8, 16]);
    assert_eq!(f90_integer(39).unwrap_err().class(), Class::ARG);

    assert_eq!(value_index(Basic::Short, Basic::Int), Some(Basic::ShortInt));
    assert_eq!(value_index(Basic::Int, Basic::Short), None);
}

#[test]
fn only_types_of_one_kind_have_one_basic_type() {
    let (int, double) = (Datatype::of(Basic::Int), Datatype::of(Basic::Double));
    let same = Datatype::structure_of(
        Form::Int,
        &[1, 0, 2],
        &[0, 0, 8],
        &[int.clone(), double.clone(), int.clone()],
    );
    assert_eq!(same.unwrap().only_basic(), Some(Basic::Int));
    let mixed = Datatype::structure_of(Form::Int, &[1, 1], &[0, 8], &[int, double]);
    assert_eq!(mixed.unwrap().only_basic(), None);
}
