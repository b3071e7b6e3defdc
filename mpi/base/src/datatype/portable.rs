//! Datatypes as they lie in a file whose numbers have other lengths than in memory (MPI 5.0, section 14.5):
//! counts and displacements in elements scale with the elements, displacements in bytes stay.

use super::tree::{Combiner, Contents, Datatype, Form};
use super::{Basic, Distribution, Order, Share};
use crate::error::{Class, Result};

/// How many bytes an element of a predefined type has in the file.
type Lengths<'a> = &'a dyn Fn(Basic) -> Result<i64>;

impl Datatype {
    /// The same type of elements of these lengths. Their bytes are `MPI_BYTE`.
    ///
    /// # Errors
    /// What `len_of` says, or the new type is too large.
    pub fn in_file(&self, len_of: Lengths<'_>) -> Result<Datatype> {
        Ok(self.changed(len_of)?.unwrap_or_else(|| self.clone()))
    }

    /// The same; none: all elements are as long as in memory, so that the type lies as it does there.
    fn changed(&self, len_of: Lengths<'_>) -> Result<Option<Datatype>> {
        if let Some(basic) = self.basic().or_else(|| self.f90_basic()) {
            let len = len_of(basic)?;
            let is_same = len == self.size() && len == self.extent();
            return if is_same { Ok(None) } else { element(len).map(Some) };
        }
        let old = &self.contents().types;
        let new: Result<Vec<Option<Datatype>>> = old.iter().map(|each| each.changed(len_of)).collect();
        let new = new?;
        if new.iter().all(Option::is_none) {
            return Ok(None);
        }
        let types: Vec<Datatype> =
            new.into_iter().zip(old.iter()).map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect();
        made_of(self.contents(), &types).map(Some)
    }
}

fn element(len: i64) -> Result<Datatype> {
    Datatype::contiguous(Form::Large, len, Datatype::predefined(Basic::Byte))
}

/// The counts of a call, and its displacements in bytes, of which there are `displacements`.
fn numbers(contents: &Contents, displacements: usize) -> (Vec<i64>, Vec<i64>) {
    match contents.form {
        Form::Int => (contents.integers.to_vec(), contents.addresses.to_vec()),
        Form::Large => {
            let (counts, bytes) = contents.counts.split_at(contents.counts.len() - displacements);
            (counts.to_vec(), bytes.to_vec())
        }
    }
}

/// Repeats the call that made a type with other types.
fn made_of(contents: &Contents, types: &[Datatype]) -> Result<Datatype> {
    const FORM: Form = Form::Large;
    let unknown =
        || Class::TYPE.error("a datatype of this kind cannot be used in a view of another representation");
    let of = types.first().ok_or_else(unknown)?;
    let blocks = |bytes: usize| {
        let (counts, displacements) = numbers(contents, bytes);
        let lengths = counts.get(1..).unwrap_or_default().to_vec();
        (lengths, displacements)
    };
    let first = contents.integers.first().or(contents.counts.first()).copied().unwrap_or(0);
    let count = first as usize;
    match contents.combiner {
        Combiner::Dup => Ok(of.clone()),
        Combiner::Contiguous => Datatype::contiguous(FORM, first, of),
        Combiner::Vector => match numbers(contents, 0).0[..] {
            [count, block, stride] => Datatype::vector(FORM, count, block, stride, of),
            _ => Err(unknown()),
        },
        Combiner::Hvector => match (&numbers(contents, 1).0[..], &numbers(contents, 1).1[..]) {
            (&[count, block], &[stride]) => Datatype::hvector(FORM, count, block, stride, of),
            _ => Err(unknown()),
        },
        Combiner::Indexed => {
            let (lengths, displacements) = (&blocks(0).0[..count], &blocks(0).0[count..]);
            Datatype::indexed(FORM, lengths, displacements, of)
        }
        Combiner::Hindexed => {
            let (lengths, displacements) = blocks(count);
            Datatype::hindexed(FORM, &lengths, &displacements, of)
        }
        Combiner::IndexedBlock => {
            let numbers = blocks(0).0;
            Datatype::indexed_block(FORM, numbers[0], &numbers[1..], of)
        }
        Combiner::HindexedBlock => {
            let (numbers, displacements) = blocks(count);
            Datatype::hindexed_block(FORM, numbers[0], &displacements, of)
        }
        Combiner::Struct => {
            let (lengths, displacements) = blocks(count);
            Datatype::structure_of(FORM, &lengths, &displacements, types)
        }
        Combiner::Resized => match numbers(contents, 2).1[..] {
            [lower_bound, extent] => Datatype::resized(FORM, lower_bound, extent, of),
            _ => Err(unknown()),
        },
        Combiner::Subarray => subarray(contents, count, of),
        Combiner::Darray => darray(contents, of),
        Combiner::Named
        | Combiner::F90Real
        | Combiner::F90Complex
        | Combiner::F90Integer
        | Combiner::ValueIndex => Err(unknown()),
    }
}

fn order(contents: &Contents) -> Order {
    let last = contents.integers.last().copied().unwrap_or(0);
    Order::from_number(last as i32).unwrap_or(Order::C)
}

fn subarray(contents: &Contents, dimensions: usize, of: &Datatype) -> Result<Datatype> {
    let all = match contents.form {
        Form::Int => &contents.integers[1..],
        Form::Large => &contents.counts[..],
    };
    let part = |n: usize| &all[n * dimensions..(n + 1) * dimensions];
    Datatype::subarray(Form::Large, part(0), part(1), part(2), order(contents), of)
}

fn darray(contents: &Contents, of: &Datatype) -> Result<Datatype> {
    let [size, rank, dimensions] = [0, 1, 2].map(|index| contents.integers[index] as i32);
    let count = dimensions as usize;
    let (sizes, columns) = match contents.form {
        Form::Int => contents.integers[3..].split_at(count),
        Form::Large => (&contents.counts[..], &contents.integers[3..]),
    };
    let share = |index: usize| Share {
        size: sizes[index],
        distribution: Distribution::from_number(columns[index] as i32).unwrap_or(Distribution::None),
        argument: columns[count + index] as i32,
        processes: columns[2 * count + index] as i32,
    };
    let shares: Vec<Share> = (0..count).map(share).collect();
    Datatype::darray(Form::Large, size, rank, &shares, order(contents), of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of type that has displacements in elements, of `of`.
    fn kinds(form: Form, of: &Datatype) -> Vec<Datatype> {
        let share = Share { size: 7, distribution: Distribution::Cyclic, argument: 2, processes: 2 };
        let all = [
            Datatype::contiguous(form, 3, of),
            Datatype::vector(form, 3, 2, 4, of),
            Datatype::indexed(form, &[2, 1], &[0, 5], of),
            Datatype::indexed_block(form, 2, &[1, 4], of),
            Datatype::subarray(form, &[4, 5], &[2, 3], &[1, 1], Order::Fortran, of),
            Datatype::darray(form, 2, 1, &[share], Order::C, of),
            of.dup(),
        ];
        all.into_iter().map(|made| made.expect("a type")).collect()
    }

    /// Types with displacements in bytes.
    fn in_bytes(form: Form, of: &Datatype) -> Vec<Datatype> {
        let all = [
            Datatype::hvector(form, 3, 1, 100, of),
            Datatype::hindexed(form, &[2, 1], &[0, 50], of),
            Datatype::hindexed_block(form, 2, &[10, 40], of),
            Datatype::structure_of(form, &[1, 2], &[3, 60], &[of.clone(), of.clone()]),
            Datatype::resized(form, 0, 90, of),
        ];
        all.into_iter().map(|made| made.expect("a type")).collect()
    }

    fn runs(of: &Datatype, count: i64) -> Vec<(i64, i64)> {
        let mut runs = Vec::new();
        of.for_each_run(count, |run| runs.push((run.offset, run.len)));
        runs
    }

    #[test]
    fn elements_of_the_same_length_lie_where_they_lie_in_memory() {
        for form in [Form::Int, Form::Large] {
            let int = Datatype::predefined(Basic::Int);
            for each in kinds(form, int).into_iter().chain(in_bytes(form, int)) {
                let same = each.in_file(&|basic| Ok(basic.size())).expect("a type");
                assert!(same.is_same(&each), "{:?}", each.combiner());
            }
        }
    }

    #[test]
    fn displacements_in_elements_scale_and_those_in_bytes_stay() {
        for form in [Form::Int, Form::Large] {
            // A long is half as long in external32.
            let (long, int) = (Datatype::predefined(Basic::Long), Datatype::predefined(Basic::Int));
            let half = |of: &Datatype| of.in_file(&|basic| Ok(basic.external_size())).expect("a type");
            for (of_long, of_int) in kinds(form, long).iter().zip(kinds(form, int)) {
                assert_eq!(runs(&half(of_long), 2), runs(&of_int, 2), "{:?}", of_long.combiner());
            }
            for (of_long, of_int) in in_bytes(form, long).iter().zip(in_bytes(form, int)) {
                // Structures are not padded in the file.
                assert_eq!(runs(&half(of_long), 1), runs(&of_int, 1), "{:?}", of_long.combiner());
            }
        }
    }

    #[test]
    fn parts_of_tiles_are_what_a_walk_over_whole_tiles_finds() {
        let int = Datatype::predefined(Basic::Int);
        for each in kinds(Form::Int, int).into_iter().chain(in_bytes(Form::Int, int)) {
            let mut bytes = Vec::new();
            (0..4).for_each(|tile| {
                each.for_each_run(1, |run| {
                    let begin = tile * each.extent() + run.offset;
                    bytes.extend(begin..begin + run.len);
                });
            });
            for (from, len) in [(0, 3), (5, 11), (each.size() - 1, 2), (each.size() + 3, each.size())] {
                let mut found = Vec::new();
                each.for_each_run_of(from, len, |run| found.extend(run.offset..run.offset + run.len));
                let expected = &bytes[from as usize..(from + len) as usize];
                assert_eq!(found, expected, "{:?} from {from}", each.combiner());
            }
        }
    }
}
