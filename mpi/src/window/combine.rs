//! What accumulates do to the memory of a window: elements of one predefined type, one after the other.

use crate::datatype::{Basic, Datatype};
use crate::error::{Class, Error, Result};
use crate::handle::{Op, Type};
use crate::memory::{Representation, combine, copy, unpack};
use crate::objects::dense_size;
use crate::op::Predefined;
use nmad_rma::{Base, Element, Place};
use std::ffi::c_void;

/// An operator on elements of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Combination {
    pub(super) op: Predefined,
    pub(super) basic: Basic,
}

/// Bytes of the longest element in memory: a pair of a long double and an integer.
const ELEMENT: usize = 48;

impl Combination {
    /// Of an operator and a type that are predefined and go together; none: something has to be asked, or is
    /// wrong.
    #[inline(always)]
    pub(super) fn known(op: Op, datatype: Type) -> Option<Combination> {
        let (op, basic) = (Predefined::from_code(op.0)?, Basic::from_code(datatype.0)?);
        op.allows(basic).then_some(Combination { op, basic })
    }

    /// Of a predefined operator; none: the program made it.
    ///
    /// # Errors
    /// Accumulates do not allow the operator, or the operator not the type.
    pub(super) fn new(op: Option<Predefined>, basic: Basic) -> Result<Combination> {
        match op {
            Some(op) if op.allows(basic) => Ok(Combination { op, basic }),
            _ => Err(refusal(op, basic)),
        }
    }

    /// Of the numbers in a frame.
    pub(super) fn decode(op: u8, basic: u8) -> Option<Combination> {
        let (op, basic) = (Predefined::from_code(op.into())?, Basic::from_code(basic.into())?);
        op.allows(basic).then_some(Combination { op, basic })
    }

    /// As it travels.
    pub(super) fn element(self) -> Element {
        Element { op: self.op as u8, basic: self.basic as u8, size: self.basic.size() as u64 }
    }

    /// Whether data are needed.
    pub(super) fn reads(self) -> bool {
        self.op != Predefined::NoOp
    }

    /// Combines packed elements with those of a place in memory, which was checked to have it.
    pub(super) fn apply(self, data: &[u8], base: Base, place: &Place) -> Result<()> {
        if !self.reads() {
            return Ok(());
        }
        // Bytes are replaced, whatever lies between elements.
        let size = if self.op == Predefined::Replace { Some(1) } else { dense_size(self.basic) };
        let Some(size) = size else { return self.apply_with_gaps(data, base, place) };
        let mut done = 0;
        for (offset, len) in place.runs() {
            let len = len as usize;
            let from = data[done..done + len].as_ptr();
            self.apply_to_row(((len / size) as i64, len), from.cast(), base.operand(offset));
            done += len;
        }
        Ok(())
    }

    /// The same of elements in a row: how many, and how many bytes.
    #[inline(always)]
    pub(super) fn apply_to_row(self, (count, len): (i64, usize), from: *const c_void, at: *mut c_void) {
        match self.op {
            Predefined::NoOp => {}
            Predefined::Replace => copy(from, at, len),
            _ => self.reduce(from, at, count),
        }
    }

    /// Elements that are longer in memory than packed: one by one.
    fn apply_with_gaps(self, data: &[u8], base: Base, place: &Place) -> Result<()> {
        let datatype = Datatype::predefined(self.basic);
        let size = self.basic.size() as usize;
        let mut room = [0_u64; ELEMENT / size_of::<u64>()];
        // Bytes of the element in hand that the runs have shown.
        let mut shown = 0;
        let mut elements = data.chunks_exact(size);
        for (offset, len) in place.runs() {
            let mut at = (size - shown) % size;
            while at < len as usize {
                let Some(element) = elements.next() else { return Ok(()) };
                let into = room.as_mut_ptr().cast::<c_void>();
                let packed = (element.as_ptr().cast(), size);
                unpack(Representation::Native, packed, &mut 0, into, (1, datatype))?;
                self.reduce(into, base.operand(offset + at as u64), 1);
                at += size;
            }
            shown = (shown + len as usize) % size;
        }
        Ok(())
    }

    /// Of elements in a row, as they are in memory.
    #[inline]
    fn reduce(self, input: *const c_void, inout: *mut c_void, count: i64) {
        combine((self.op, self.basic), input, inout, count);
    }
}

#[cold]
fn refusal(op: Option<Predefined>, basic: Basic) -> Error {
    Class::OP.error(match op {
        Some(op) => format!("{} does not work on {}", op.name(), basic.name()),
        None => "accumulates use the predefined operators only: the target knows no function of the origin's"
            .to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_with_gaps_are_combined_one_by_one() {
        // A short, a gap of two bytes, an int.
        let mut window = [5_i16, 0, 7, 0, 2, 0, 9, 0];
        let base = Base::new(window.as_mut_ptr().cast());
        let datatype = Datatype::predefined(Basic::ShortInt);
        let place = super::super::plan::place(0, 2, datatype).unwrap();
        let mut data = Vec::new();
        for (value, index) in [(6_i16, 1_i32), (1, 2)] {
            data.extend(value.to_ne_bytes());
            data.extend(index.to_ne_bytes());
        }
        let most = Combination { op: Predefined::Maxloc, basic: Basic::ShortInt };
        most.apply(&data, base, &place).unwrap();
        assert_eq!(window, [6, 0, 1, 0, 2, 0, 9, 0]);
    }

    #[test]
    fn numbers_in_pieces_are_added() {
        let mut window = [1_i32, 2, 3, 4];
        let base = Base::new(window.as_mut_ptr().cast());
        let data: Vec<u8> = [10_i32, 20, 30].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let sum = Combination { op: Predefined::Sum, basic: Basic::Int };
        sum.apply(&data, base, &Place::Many(vec![(0, 4), (8, 8)])).unwrap();
        assert_eq!(window, [11, 2, 23, 34]);
        let replace = Combination { op: Predefined::Replace, basic: Basic::Int };
        replace.apply(&data, base, &Place::One(4, 12)).unwrap();
        assert_eq!(window, [11, 10, 20, 30]);
    }

    #[test]
    fn operators_of_programs_are_refused() {
        assert_eq!(Combination::new(None, Basic::Int).unwrap_err().class(), Class::OP);
        let bits = Some(Predefined::Band);
        assert_eq!(Combination::new(bits, Basic::Double).unwrap_err().class(), Class::OP);
        assert_eq!(Combination::decode(Predefined::Band as u8, Basic::Double as u8), None);
    }
}
