//! Arguments of collectives, checked.

use super::call::Call;
use crate::algorithm::check::{Amount, Operation};
use crate::algorithm::inter::Role;
use crate::algorithm::operands::Operands;
use crate::algorithm::operator::Operator;
use crate::algorithm::place::{Blocks, Buffer, Place, Spot};
use crate::constant::{IN_PLACE, PROC_NULL, ROOT};
use crate::datatype::{Basic, Datatype};
use crate::error::{Class, Error, Result};
use crate::handle::{Op, Type};
use crate::memory::{Used, contiguous, is_nowhere};
use crate::message;
use crate::objects;
use crate::shown;
use newmadeleine::Segments;
use std::ffi::c_void;

/// A number of elements of a type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    pub(super) count: i64,
    pub(super) datatype: &'static Datatype,
    /// Bytes, if the type is predefined and its elements lie in a row from the buffer's begin on: most calls
    /// need to know no more.
    dense: Option<usize>,
}

impl Data {
    /// Checks a count and a type.
    #[inline]
    pub(super) fn new(count: i64, datatype: Type) -> Result<Data> {
        match objects::dense(datatype, count) {
            Some((datatype, len)) => Ok(Data { count, datatype, dense: Some(len) }),
            None => Data::of(count, type_of(count, datatype)?),
        }
    }

    /// Checks a count of a type that was looked up.
    #[inline(never)]
    fn of(count: i64, datatype: &'static Datatype) -> Result<Data> {
        if count < 0 {
            return Err(negative(count));
        }
        datatype.bytes(count)?;
        Ok(Data { count, datatype, dense: None })
    }

    /// The same as another number of elements.
    #[inline]
    pub(super) fn of_count(self, count: i64) -> Data {
        let dense = self.dense.and_then(|_| usize::try_from(count.checked_mul(self.datatype.size())?).ok());
        Data { count, dense, ..self }
    }

    /// Bytes of data.
    #[inline]
    pub(super) fn len(self) -> u64 {
        self.dense.map_or_else(|| (self.count * self.datatype.size()) as u64, |len| len as u64)
    }

    /// The offset of its first byte, if it has any.
    #[inline]
    pub(super) fn first(self) -> Option<i64> {
        match self.dense {
            Some(len) => (len > 0).then_some(0),
            None => self.datatype.first(self.count),
        }
    }

    /// The memory of it at an address.
    #[inline]
    pub(super) fn memory(self, buffer: *const c_void) -> Result<Segments> {
        match self.dense {
            Some(len) if len == 0 || !is_nowhere(buffer) => Ok(contiguous(buffer, len)),
            _ => message::of(buffer, self.count, self.datatype),
        }
    }

    /// As much for each of several ranks.
    #[inline]
    pub(super) fn blocks_of(self, ranks: usize) -> Data {
        let dense = self.dense.and_then(|len| len.checked_mul(ranks));
        Data { count: self.count.saturating_mul(ranks as i64), dense, ..self }
    }

    /// The block of a rank, where one follows the other.
    pub(super) fn block(self, buffer: *const c_void, rank: usize) -> Result<Segments> {
        self.memory(self.used(buffer, rank).0)
    }

    /// Where the block of a rank is.
    #[inline]
    pub(super) fn used(self, buffer: *const c_void, rank: usize) -> Used {
        let one = self.dense.map_or_else(|| self.count * self.datatype.extent(), |len| len as i64);
        (buffer.wrapping_byte_offset((one * rank as i64) as isize), self.first())
    }

    pub(super) fn place(self, buffer: Buffer) -> Place {
        Place::elements(Spot::start(buffer), self.count, self.datatype)
    }

    pub(super) fn blocks(self, buffer: Buffer) -> Blocks {
        Blocks::even(buffer, self.count, self.datatype)
    }

    pub(super) fn kept(self) -> Option<(i64, Datatype)> {
        Some((self.count, self.datatype.clone()))
    }

    /// How much it is, for the check.
    pub(super) fn amount(self) -> Amount {
        let signature = self.datatype.only_basic().map(|basic| basic as u64);
        Amount { len: Some(self.len()), signature: signature.filter(|_| self.count > 0) }
    }
}

/// The type of a number of elements; that of none may be `MPI_DATATYPE_NULL`, as in a message.
#[inline]
fn type_of(count: i64, datatype: Type) -> Result<&'static Datatype> {
    let found = objects::committed(datatype);
    if count == 0 && datatype.is_null() { Ok(Datatype::predefined(Basic::Byte)) } else { found }
}

#[cold]
fn negative(count: i64) -> Error {
    Class::COUNT.error(format!("the count is {count}: it must not be negative"))
}

/// Whether a buffer is `MPI_IN_PLACE`.
#[inline]
pub(super) fn is_in_place(buffer: *const c_void) -> bool {
    buffer == IN_PLACE
}

/// `MPI_IN_PLACE` stands for the other buffer, and only where the standard allows it.
#[inline]
pub(super) fn refuse_in_place(buffer: *const c_void, name: &str) -> Result<()> {
    match is_in_place(buffer) {
        false => Ok(()),
        true => Err(Class::BUFFER.error(format!("{name} must not be MPI_IN_PLACE here"))),
    }
}

/// The root of a collective within one group.
#[inline]
pub(super) fn root(call: &Call, root: i32) -> Result<usize> {
    let size = call.size();
    usize::try_from(root).ok().filter(|&rank| rank < size).ok_or_else(|| no_root(root, size))
}

/// Which part we play in a collective between two groups.
pub(super) fn role(remote: usize, root: i32) -> Result<Role> {
    match root {
        ROOT => Ok(Role::Root),
        PROC_NULL => Ok(Role::Bystander),
        _ => {
            let rank = usize::try_from(root).ok().filter(|&rank| rank < remote);
            rank.map(Role::Peer).ok_or_else(|| no_root(root, remote))
        }
    }
}

#[cold]
fn no_root(root: i32, size: usize) -> Error {
    Class::ROOT.error(format!(
        "root {} is not in the communicator (ranks 0 to {})",
        shown::rank(root),
        size - 1
    ))
}

/// The operands of a reduction with `op`.
pub(super) fn operands(data: Data, op: Op) -> Result<Operands> {
    let operator = Operator::new(&objects::operator(op)?, data.datatype)?;
    Ok(Operands { operator, count: data.count })
}

/// A number that tells operators of the standard apart; those of programs have none in common.
pub(super) fn told(op: Op) -> Option<u64> {
    (op.0 < crate::handle::DYNAMIC).then_some(u64::from(op.0))
}

/// The counts or displacements of a vector collective: one for each rank.
pub(super) fn each<'a>(list: &'a [i64], ranks: usize, name: &str) -> Result<&'a [i64]> {
    list.get(..ranks)
        .ok_or_else(|| Class::ARG.error(format!("{name} has {} entries, {ranks} are needed", list.len())))
}

/// Blocks with counts and displacements of one type, where they lie in a buffer. They are asked for one by
/// one, and listed for messages only.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    buffer: *const c_void,
    counts: &'a [i64],
    displacements: &'a [i64],
    datatype: &'static Datatype,
    /// Bytes of an element, as [`Data`] has those of all.
    dense: Option<usize>,
}

impl<'a> Row<'a> {
    /// Checks counts, displacements in extents, and the type.
    pub(super) fn new(
        buffer: *const c_void,
        ranks: usize,
        (counts, displacements, datatype): (&'a [i64], &'a [i64], Type),
    ) -> Result<Row<'a>> {
        let (counts, displacements) =
            (each(counts, ranks, "counts")?, each(displacements, ranks, "displacements")?);
        if let Some((datatype, size)) = objects::dense(datatype, 1)
            && counts.iter().all(|&count| (count as u64) < objects::DENSE_MOST)
        {
            return Ok(Row { buffer, counts, displacements, datatype, dense: Some(size) });
        }
        let datatype = type_of(counts.iter().copied().find(|&count| count != 0).unwrap_or(0), datatype)?;
        for &count in counts {
            check_count(count, datatype)?;
        }
        Ok(Row { buffer, counts, displacements, datatype, dense: None })
    }

    /// The memory of the block of a rank.
    #[inline]
    pub(super) fn memory(&self, rank: usize) -> Result<Segments> {
        let (buffer, _) = self.used(rank);
        match self.dense {
            Some(size) if self.counts[rank] == 0 || !is_nowhere(buffer) => {
                Ok(contiguous(buffer, size * self.counts[rank] as usize))
            }
            _ => message::of(buffer, self.counts[rank], self.datatype),
        }
    }

    /// Where the block of a rank is.
    #[inline]
    pub(super) fn used(&self, rank: usize) -> Used {
        let (extent, first) = match self.dense {
            Some(size) => (size as i64, (self.counts[rank] > 0).then_some(0)),
            None => (self.datatype.extent(), self.datatype.first(self.counts[rank])),
        };
        let offset = self.displacements[rank].wrapping_mul(extent);
        (self.buffer.wrapping_byte_offset(offset as isize), first)
    }

    /// Where the first block is, if there is any data.
    pub(super) fn all(&self) -> Used {
        (self.buffer, self.first())
    }

    /// Bytes of data of the longest block.
    pub(super) fn longest(&self) -> u64 {
        self.counts.iter().max().map_or(0, |count| (count * self.datatype.size()) as u64)
    }

    /// The lowest offset at which a block begins, if they have any data.
    fn first(&self) -> Option<i64> {
        let begin = |(count, displacement): (&i64, &i64)| {
            Some(self.datatype.first(*count)? + displacement * self.datatype.extent())
        };
        self.counts.iter().zip(self.displacements).filter_map(begin).min()
    }

    /// All of them.
    pub(super) fn blocks(&self, buffer: Buffer) -> Blocks {
        Blocks::uneven(buffer, self.counts, self.displacements, self.datatype)
    }
}

/// Blocks with counts, displacements in bytes, and types.
pub(super) fn mixed_blocks(
    buffer: Buffer,
    ranks: usize,
    (counts, displacements, types): (&[i64], &[i64], &[Type]),
) -> Result<Blocks> {
    let (counts, displacements) =
        (each(counts, ranks, "counts")?, each(displacements, ranks, "displacements")?);
    let Some(types) = types.get(..ranks) else {
        return Err(Class::ARG.error(format!("there are {} datatypes, {ranks} are needed", types.len())));
    };
    let types: Vec<Datatype> = types
        .iter()
        .zip(counts)
        .map(|(&each, &count)| type_of(count, each).cloned())
        .collect::<Result<_>>()?;
    for (&count, datatype) in counts.iter().zip(&types) {
        check_count(count, datatype)?;
    }
    Ok(Blocks::mixed(buffer, counts, displacements, &types))
}

fn check_count(count: i64, datatype: &Datatype) -> Result<()> {
    if count < 0 {
        return Err(negative(count));
    }
    datatype.bytes(count).map(drop)
}

/// What the standard does not define between two groups.
pub(super) fn refuse_inter(call: &Call) -> Result<()> {
    match call.remote() {
        None => Ok(()),
        Some(_) => Err(Class::COMM
            .error(format!("{} is not defined on an intercommunicator", Operation::name(call.operation())))),
    }
}
