//! A reduction: an operator, the type of its operands, and how elements lie.

use super::place::{Place, Spot};
use crate::datatype::Datatype;
use crate::error::Result;
use crate::op::Op;

/// What a collective reduces with. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Operator {
    op: Op,
    datatype: Datatype,
}

impl Operator {
    /// An operator on operands of a type.
    ///
    /// # Errors
    /// Class OP if it is not defined for the type.
    pub fn new(op: &Op, datatype: &Datatype) -> Result<Operator> {
        op.check(datatype)?;
        Ok(Operator { op: op.clone(), datatype: datatype.clone() })
    }

    /// The type of its operands.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// The operator itself.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// Whether operands may change places.
    pub fn is_commutative(&self) -> bool {
        self.op.is_commutative()
    }

    /// Whether it is a function of the program's, which may run on the program's threads only.
    pub fn is_user(&self) -> bool {
        self.op.is_user()
    }

    /// From one element to the next, in bytes.
    pub fn extent(&self) -> i64 {
        self.datatype.extent()
    }

    /// Bytes of data in `count` elements.
    pub fn len(&self, count: i64) -> u64 {
        (count * self.datatype.size()).max(0) as u64
    }

    /// Elements as data of a message.
    pub fn place(&self, spot: Spot, count: i64) -> Place {
        Place::elements(spot, count, &self.datatype)
    }

    /// `into := from operator into`.
    ///
    /// # Safety
    /// Both addresses hold `count` elements of the type.
    #[inline]
    pub(super) unsafe fn apply(&self, from: *const u8, into: *mut u8, count: i64) {
        // SAFETY: passed on.
        let done = unsafe { self.op.reduce(from.cast(), into.cast(), count, &self.datatype) };
        debug_assert!(done.is_ok(), "checked when it was made");
    }
}
