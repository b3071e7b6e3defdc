//! Parts of arrays: subarray and distributed array (MPI 5.0, section 5.1.3 and 5.1.4).
//!
//! Both choose, in each dimension, blocks of indices at equal distances, perhaps with a shorter one
//! behind them. From the fastest dimension to the slowest each step is a vector of what the steps before
//! have chosen.

use super::Datatype;
use super::bounds::{Interval, add, multiply};
use super::tree::Block;
use super::tree::{Combiner, Contents, Form};
use crate::error::{Class, Error, Result};

/// Which index of an array runs fastest in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Order {
    /// The last one.
    C = 0xc,
    /// The first one.
    Fortran = 0xf,
}

impl Order {
    /// The order of this number in the standard's binary interface.
    pub fn from_number(number: i32) -> Option<Order> {
        [Order::C, Order::Fortran].into_iter().find(|&order| order as i32 == number)
    }
}

/// How one dimension of an array is shared among the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Distribution {
    /// It is not.
    None = 16,
    /// One block of indices each.
    Block = 17,
    /// Blocks in turn.
    Cyclic = 18,
}

impl Distribution {
    /// The distribution of this number in the standard's binary interface.
    pub fn from_number(number: i32) -> Option<Distribution> {
        let all = [Distribution::None, Distribution::Block, Distribution::Cyclic];
        all.into_iter().find(|&distribution| distribution as i32 == number)
    }
}

/// The argument of a distribution that leaves the length of blocks to MPI (`MPI_DISTRIBUTE_DFLT_DARG`).
pub const DEFAULT_ARGUMENT: i32 = 19;

/// One dimension of the global array of a darray.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Indices of the whole array.
    pub size: i64,
    /// How they are shared.
    pub distribution: Distribution,
    /// Length of blocks, or [`DEFAULT_ARGUMENT`].
    pub argument: i32,
    /// Processes that share them.
    pub processes: i32,
}

/// The indices chosen of one dimension: `full` blocks of `block` indices from `start` on, `step` apart, and
/// then one of `rest` indices.
struct Choice {
    size: i64,
    start: i64,
    full: i64,
    block: i64,
    step: i64,
    rest: i64,
}

impl Datatype {
    /// `MPI_Type_create_subarray`.
    ///
    /// # Errors
    /// Class ARG if there is no dimension, or a part does not lie in its array.
    pub fn subarray(
        form: Form,
        sizes: &[i64],
        parts: &[i64],
        starts: &[i64],
        order: Order,
        of: &Datatype,
    ) -> Result<Datatype> {
        if sizes.is_empty() || parts.len() != sizes.len() || starts.len() != sizes.len() {
            let text =
                format!("sizes, subsizes and starts of {} dimensions: at least one is needed", sizes.len());
            return Err(Class::ARG.error(text));
        }
        let mut choices = Vec::with_capacity(sizes.len());
        for (dimension, ((&size, &part), &start)) in sizes.iter().zip(parts).zip(starts).enumerate() {
            if size < 1 || part < 1 || part > size || start < 0 || start > size - part {
                let text =
                    format!("dimension {dimension}: {part} from {start} on do not lie in an array of {size}");
                return Err(Class::ARG.error(text));
            }
            choices.push(Choice { size, start, full: 1, block: part, step: part, rest: 0 });
        }
        let numbers = [sizes, parts, starts].concat();
        let dims = sizes.len() as i64;
        let types = std::slice::from_ref(of);
        let mut contents = Contents::new(form, Combiner::Subarray, &[&numbers], &[], types);
        contents.integers = match form {
            Form::Int => [&[dims][..], &numbers, &[order as i64]].concat().into(),
            Form::Large => [dims, order as i64].into(),
        };
        of.array(choices, order, contents)
    }

    /// `MPI_Type_create_darray`: what process `rank` of `size` has of an array that is shared as `shares`
    /// say.
    ///
    /// # Errors
    /// Class ARG if the processes of the dimensions are not `size` together, or blocks do not cover a
    /// dimension.
    pub fn darray(
        form: Form,
        size: i32,
        rank: i32,
        shares: &[Share],
        order: Order,
        of: &Datatype,
    ) -> Result<Datatype> {
        let grid = shares.iter().try_fold(1_i64, |grid, share| grid.checked_mul(i64::from(share.processes)));
        if shares.is_empty() || grid != Some(i64::from(size)) || shares.iter().any(|s| s.processes < 1) {
            let text = format!("the processes of the dimensions must be at least 1 each and {size} together");
            return Err(Class::ARG.error(text));
        }
        if !(0..size).contains(&rank) {
            let rank = crate::shown::rank(rank);
            return Err(Class::ARG.error(format!("rank {rank} is not one of {size} processes")));
        }
        let (mut left, mut width) = (rank, size);
        let mut choices = Vec::with_capacity(shares.len());
        for (dimension, share) in shares.iter().enumerate() {
            width /= share.processes;
            choices.push(share.choice(dimension, i64::from(left / width))?);
            left %= width;
        }
        of.array(choices, order, darray_contents(form, [size, rank], shares, order, of))
    }

    /// The chosen part, between the bounds of the whole array.
    fn array(&self, mut choices: Vec<Choice>, order: Order, contents: Contents) -> Result<Datatype> {
        if order == Order::C {
            choices.reverse();
        }
        let mut whole = self.extent();
        let mut part = self.clone();
        for choice in choices {
            part = choice.of(&part, whole)?;
            whole = multiply(whole, choice.size)?;
        }
        part.with_bounds(Interval { begin: 0, end: whole }, contents)
    }
}

fn darray_contents(
    form: Form,
    [size, rank]: [i32; 2],
    shares: &[Share],
    order: Order,
    of: &Datatype,
) -> Contents {
    let sizes: Vec<i64> = shares.iter().map(|share| share.size).collect();
    let head = [i64::from(size), i64::from(rank), shares.len() as i64];
    let column = |number: fn(&Share) -> i32| shares.iter().map(move |share| i64::from(number(share)));
    let columns = column(|share| share.distribution as i32)
        .chain(column(|share| share.argument))
        .chain(column(|share| share.processes));
    let columns: Vec<i64> = columns.chain([order as i64]).collect();
    let mut contents = Contents::new(form, Combiner::Darray, &[&sizes], &[], std::slice::from_ref(of));
    contents.integers = match form {
        Form::Int => [&head[..], &sizes, &columns].concat().into(),
        Form::Large => [&head[..], &columns].concat().into(),
    };
    contents
}

impl Share {
    /// What the process at `coordinate` of this dimension has of it.
    fn choice(&self, dimension: usize, coordinate: i64) -> Result<Choice> {
        let wrong = |why: &str| -> Error { Class::ARG.error(format!("dimension {dimension}: {why}")) };
        let processes = i64::from(self.processes);
        if self.size < 1 {
            return Err(wrong("the array has no indices"));
        }
        if self.argument < 1 {
            return Err(wrong("blocks need at least one index"));
        }
        let given = (self.argument != DEFAULT_ARGUMENT).then_some(i64::from(self.argument));
        let block = match self.distribution {
            Distribution::None if processes != 1 => {
                return Err(wrong("it is not distributed, so one process has all of it"));
            }
            Distribution::None => self.size,
            Distribution::Block => {
                let block = given.unwrap_or((self.size - 1) / processes + 1);
                if multiply(block, processes)? < self.size {
                    return Err(wrong("the blocks of all processes are shorter than the array"));
                }
                block
            }
            Distribution::Cyclic => given.unwrap_or(1),
        };
        let start = multiply(block, coordinate)?.min(self.size);
        let step = multiply(block, processes)?;
        let (full, left) = ((self.size - start) / step, (self.size - start) % step);
        let (full, rest) = if left >= block { (full + 1, 0) } else { (full, left) };
        Ok(Choice { size: self.size, start, full, block, step, rest })
    }
}

impl Choice {
    /// The chosen indices of a dimension, where each index is `stride` bytes and of those holds `part`.
    fn of(&self, part: &Datatype, stride: i64) -> Result<Datatype> {
        let scratch = || Contents::new(Form::Large, Combiner::Struct, &[], &[], &[]);
        let cell = part.with_bounds(Interval { begin: 0, end: stride }, scratch())?;
        let step = multiply(self.step, stride)?;
        let full = Datatype::strided(&cell, self.full, self.block, step, scratch())?;
        let start = multiply(self.start, stride)?;
        let behind = add(start, multiply(self.full, step)?)?;
        let blocks =
            [(Block { offset: start, count: 1 }, full), (Block { offset: behind, count: self.rest }, cell)];
        let fields = blocks.into_iter().filter(|(block, of)| block.count > 0 && of.size() > 0);
        Datatype::fields(fields.collect(), scratch())
    }
}
