//! The constructors (MPI 5.0, section 5.1.2 to 5.1.7), but for arrays, which are in [`super::array`].
//!
//! Each of them checks its arguments, says what the type is made of, and leaves the rest to
//! [`Datatype::assemble`]. Counts and block lengths are in elements, strides and displacements in
//! elements of the old type or in bytes as in the standard. Errors: class COUNT for what is negative or
//! does not fit into 64 bits, class ARG for lists of different lengths.

use super::Datatype;
use super::bounds::{Bounds, Interval, add, multiply};
use super::layout::Layout;
use super::tree::{Block, Structure};
use super::tree::{Combiner, Contents, Form};
use crate::error::{Class, Result};

/// Refuses a negative count.
fn count(value: i64, what: &str) -> Result<i64> {
    if value < 0 {
        return Err(Class::COUNT.error(format!("{what} is {value}: it must not be negative")));
    }
    Ok(value)
}

fn same_length(counts: usize, displacements: usize) -> Result<i64> {
    if counts != displacements {
        let text = format!("{counts} block lengths but {displacements} displacements");
        return Err(Class::ARG.error(text));
    }
    Ok(counts as i64)
}

impl Datatype {
    /// `MPI_Type_contiguous`.
    pub fn contiguous(form: Form, number: i64, of: &Datatype) -> Result<Datatype> {
        count(number, "count")?;
        let contents = Contents::new(form, Combiner::Contiguous, &[&[number]], &[], std::slice::from_ref(of));
        Datatype::strided(of, number, 1, of.extent(), contents)
    }

    /// `MPI_Type_vector`: `stride` in elements.
    pub fn vector(form: Form, number: i64, block: i64, stride: i64, of: &Datatype) -> Result<Datatype> {
        let counts = [count(number, "count")?, count(block, "blocklength")?, stride];
        let contents = Contents::new(form, Combiner::Vector, &[&counts], &[], std::slice::from_ref(of));
        Datatype::strided(of, number, block, multiply(stride, of.extent())?, contents)
    }

    /// `MPI_Type_create_hvector`: `stride` in bytes.
    pub fn hvector(form: Form, number: i64, block: i64, stride: i64, of: &Datatype) -> Result<Datatype> {
        let counts = [count(number, "count")?, count(block, "blocklength")?];
        let types = std::slice::from_ref(of);
        let contents = Contents::new(form, Combiner::Hvector, &[&counts], &[stride], types);
        Datatype::strided(of, number, block, stride, contents)
    }

    /// `MPI_Type_indexed`: displacements in elements.
    pub fn indexed(form: Form, lengths: &[i64], displacements: &[i64], of: &Datatype) -> Result<Datatype> {
        let number = same_length(lengths.len(), displacements.len())?;
        let counts: [&[i64]; 3] = [&[number], lengths, displacements];
        let contents = Contents::new(form, Combiner::Indexed, &counts, &[], std::slice::from_ref(of));
        let bytes = displacements.iter().map(|&d| multiply(d, of.extent()));
        Datatype::blocks(of, lengths.iter().copied(), bytes, contents)
    }

    /// `MPI_Type_create_hindexed`: displacements in bytes.
    pub fn hindexed(form: Form, lengths: &[i64], displacements: &[i64], of: &Datatype) -> Result<Datatype> {
        let number = same_length(lengths.len(), displacements.len())?;
        let types = std::slice::from_ref(of);
        let contents = Contents::new(form, Combiner::Hindexed, &[&[number], lengths], displacements, types);
        Datatype::blocks(of, lengths.iter().copied(), displacements.iter().map(|&d| Ok(d)), contents)
    }

    /// `MPI_Type_create_indexed_block`: displacements in elements.
    pub fn indexed_block(form: Form, block: i64, displacements: &[i64], of: &Datatype) -> Result<Datatype> {
        let head = [displacements.len() as i64, block];
        let types = std::slice::from_ref(of);
        let contents = Contents::new(form, Combiner::IndexedBlock, &[&head, displacements], &[], types);
        let bytes = displacements.iter().map(|&d| multiply(d, of.extent()));
        Datatype::blocks(of, std::iter::repeat_n(block, displacements.len()), bytes, contents)
    }

    /// `MPI_Type_create_hindexed_block`: displacements in bytes.
    pub fn hindexed_block(form: Form, block: i64, displacements: &[i64], of: &Datatype) -> Result<Datatype> {
        let head = [displacements.len() as i64, block];
        let types = std::slice::from_ref(of);
        let contents = Contents::new(form, Combiner::HindexedBlock, &[&head], displacements, types);
        let lengths = std::iter::repeat_n(block, displacements.len());
        Datatype::blocks(of, lengths, displacements.iter().map(|&d| Ok(d)), contents)
    }

    /// `MPI_Type_create_struct`: displacements in bytes.
    pub fn structure_of(
        form: Form,
        lengths: &[i64],
        displacements: &[i64],
        types: &[Datatype],
    ) -> Result<Datatype> {
        let number = same_length(lengths.len(), displacements.len())?;
        same_length(lengths.len(), types.len())?;
        let contents = Contents::new(form, Combiner::Struct, &[&[number], lengths], displacements, types);
        let blocks = lengths.iter().zip(displacements);
        let blocks = blocks.map(|(&n, &offset)| Ok(Block { offset, count: count(n, "a block length")? }));
        let fields: Result<Box<[_]>> =
            blocks.zip(types).map(|(block, of)| Ok((block?, of.clone()))).collect();
        Datatype::fields(fields?, contents)
    }

    /// `MPI_Type_create_resized`: both in bytes.
    pub fn resized(form: Form, lower_bound: i64, extent: i64, of: &Datatype) -> Result<Datatype> {
        let types = std::slice::from_ref(of);
        let contents = Contents::new(form, Combiner::Resized, &[], &[lower_bound, extent], types);
        of.with_bounds(Interval { begin: lower_bound, end: add(lower_bound, extent)? }, contents)
    }

    /// `MPI_Type_dup`: committed if the old type is.
    pub fn dup(&self) -> Result<Datatype> {
        let contents = Contents::new(Form::Int, Combiner::Dup, &[], &[], std::slice::from_ref(self));
        let new = self.same(self.bounds(), contents)?;
        if self.is_committed() {
            new.commit();
        }
        Ok(new)
    }

    /// The same data between other bounds.
    pub(super) fn with_bounds(&self, bounds: Interval, contents: Contents) -> Result<Datatype> {
        self.same(self.bounds().resized(bounds.begin, bounds.end), contents)
    }

    pub(super) fn same(&self, bounds: Bounds, contents: Contents) -> Result<Datatype> {
        let layout = self.layout().clone();
        Datatype::assemble(Structure::Same(self.clone()), bounds, contents, |_| layout)
    }

    /// `number` blocks of `block` elements, `stride` bytes apart.
    pub(super) fn strided(
        of: &Datatype,
        number: i64,
        block: i64,
        stride: i64,
        contents: Contents,
    ) -> Result<Datatype> {
        let mut bounds = Bounds::EMPTY;
        if number > 0 && block > 0 {
            let rows = multiply(number - 1, stride)?;
            let columns = multiply(block - 1, of.extent())?;
            let least = add(rows.min(0), columns.min(0))?;
            bounds = of.bounds().spread(least, add(rows.max(0), columns.max(0))?)?;
        }
        let structure = Structure::Strided { of: of.clone(), offset: 0, count: number, block, stride };
        let layout = of.layout().clone();
        let extent = of.extent();
        Datatype::assemble(structure, bounds, contents, |_| {
            layout.repeat(block, extent).repeat(number, stride)
        })
    }

    fn blocks(
        of: &Datatype,
        lengths: impl Iterator<Item = i64>,
        offsets: impl Iterator<Item = Result<i64>>,
        contents: Contents,
    ) -> Result<Datatype> {
        let blocks = lengths.zip(offsets);
        let blocks: Result<Box<[Block]>> = blocks
            .map(|(n, offset)| Ok(Block { offset: offset?, count: count(n, "a block length")? }))
            .collect();
        let blocks = blocks?;
        let bounds = blocks.iter().try_fold(Bounds::EMPTY, |all, b| Ok(all.join(of_block(b, of)?)))?;
        let structure = Structure::Indexed { of: of.clone(), blocks };
        Datatype::assemble(structure, bounds, contents, |structure| match structure {
            Structure::Indexed { of, blocks } => {
                let part = |b: &Block| (b.offset, of.layout().repeat(b.count, of.extent()));
                Layout::sequence(blocks.iter().map(part).collect())
            }
            _ => Layout::EMPTY,
        })
    }

    /// Blocks of different types.
    pub(super) fn fields(fields: Box<[(Block, Datatype)]>, contents: Contents) -> Result<Datatype> {
        let join = |all: Bounds, (b, of): &(Block, Datatype)| Ok(all.join(of_block(b, of)?));
        let bounds = fields.iter().try_fold(Bounds::EMPTY, join)?.padded()?;
        Datatype::assemble(Structure::Fields(fields), bounds, contents, |structure| match structure {
            Structure::Fields(fields) => {
                let part = |(b, of): &(Block, Datatype)| (b.offset, of.layout().repeat(b.count, of.extent()));
                Layout::sequence(fields.iter().map(part).collect())
            }
            _ => Layout::EMPTY,
        })
    }
}

fn of_block(block: &Block, of: &Datatype) -> Result<Bounds> {
    if block.count == 0 {
        return Ok(Bounds::EMPTY);
    }
    let last = multiply(block.count - 1, of.extent())?;
    of.bounds().spread(add(block.offset, last.min(0))?, add(block.offset, last.max(0))?)
}
