//! What a type is made of, in terms of other types: for questions that depend on the basic types in it.
//!
//! Where only bytes matter [`super::layout`] is the shorter answer.

use std::ops::ControlFlow;

use super::bounds::{add, multiply};
use super::tree::{Block, Datatype, Structure};
use super::{Basic, Signature};
use crate::error::Result;

/// Equal basic elements at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elements {
    pub basic: Basic,
    pub offset: i64,
    pub count: i64,
    pub stride: i64,
}

/// Whether a walk goes on, or what it found.
pub type Walk<T> = ControlFlow<T>;

impl Structure {
    /// The depth of the deepest type in it.
    pub fn depth(&self) -> u32 {
        match self {
            Structure::Basic(_) => 0,
            Structure::Same(of) | Structure::Strided { of, .. } | Structure::Indexed { of, .. } => of.depth(),
            Structure::Fields(fields) => fields.iter().map(|(_, of)| of.depth()).max().unwrap_or(0),
        }
    }

    /// Bytes of data.
    pub fn size(&self) -> Result<i64> {
        self.total(Datatype::size)
    }

    /// Basic elements.
    pub fn elements(&self) -> Result<i64> {
        self.total(Datatype::elements)
    }

    fn total(&self, of_one: fn(&Datatype) -> i64) -> Result<i64> {
        match self {
            Structure::Basic(basic) => Ok(of_one(Datatype::predefined(*basic))),
            Structure::Same(of) => Ok(of_one(of)),
            Structure::Strided { of, count, block, .. } => multiply(multiply(*count, *block)?, of_one(of)),
            Structure::Indexed { of, blocks } => {
                let count = blocks.iter().try_fold(0, |sum, block| add(sum, block.count))?;
                multiply(count, of_one(of))
            }
            Structure::Fields(fields) => {
                fields.iter().try_fold(0, |sum, (block, of)| add(sum, multiply(block.count, of_one(of))?))
            }
        }
    }

    /// Basic types in their order.
    pub fn signature(&self) -> Signature {
        let of_block = |block: &Block, of: &Datatype| of.signature(block.count);
        match self {
            Structure::Basic(basic) => Signature::of(*basic),
            Structure::Same(of) => of.signature(1),
            Structure::Strided { of, count, block, .. } => of.signature(count.saturating_mul(*block)),
            Structure::Indexed { of, blocks } => {
                of.signature(blocks.iter().fold(0, |sum: i64, block| sum.saturating_add(block.count)))
            }
            Structure::Fields(fields) => {
                fields.iter().fold(Signature::EMPTY, |before, (block, of)| before.then(of_block(block, of)))
            }
        }
    }

    /// The only predefined type in it.
    pub fn only_basic(&self) -> Option<Basic> {
        match self {
            Structure::Basic(basic) => Some(*basic),
            Structure::Same(of) | Structure::Strided { of, .. } | Structure::Indexed { of, .. } => {
                of.only_basic()
            }
            Structure::Fields(fields) => {
                let mut basics = fields.iter().filter(|(b, of)| b.count > 0 && of.size() > 0);
                let first = basics.next()?.1.only_basic()?;
                basics.all(|(_, of)| of.only_basic() == Some(first)).then_some(first)
            }
        }
    }

    /// Shows each block of elements of a type at `base`, in the order of the type map.
    pub fn blocks<T>(&self, mut show: impl FnMut(&Datatype, Block) -> Walk<T>) -> Walk<T> {
        match self {
            Structure::Basic(basic) => show(Datatype::predefined(*basic), Block { offset: 0, count: 1 }),
            Structure::Same(of) => show(of, Block { offset: 0, count: 1 }),
            Structure::Strided { of, offset, count, block, stride } => {
                if *stride == block.wrapping_mul(of.extent()) {
                    return show(of, Block { offset: *offset, count: block.saturating_mul(*count) });
                }
                (0..*count).try_for_each(|i| show(of, Block { offset: offset + i * stride, count: *block }))
            }
            Structure::Indexed { of, blocks } => blocks.iter().try_for_each(|block| show(of, *block)),
            Structure::Fields(fields) => fields.iter().try_for_each(|(block, of)| show(of, *block)),
        }
    }
}

impl Datatype {
    /// Shows the basic elements of `count` elements that begin at `base`, in the order of the type map.
    pub fn for_each_basic<T>(
        &self,
        base: i64,
        count: i64,
        show: &mut impl FnMut(Elements) -> Walk<T>,
    ) -> Walk<T> {
        if let Structure::Basic(basic) = *self.structure() {
            if basic.size() == 0 {
                return Walk::Continue(());
            }
            return show(Elements { basic, offset: base, count, stride: self.extent() });
        }
        if let (1, Structure::Strided { of, offset, count, block: 1, stride }) = (count, self.structure())
            && let Some(basic) = of.basic()
        {
            let offset = base.wrapping_add(*offset);
            return show(Elements { basic, offset, count: *count, stride: *stride });
        }
        (0..count).try_for_each(|i| {
            let base = base.wrapping_add(i.wrapping_mul(self.extent()));
            self.structure()
                .blocks(|of, block| of.for_each_basic(base.wrapping_add(block.offset), block.count, show))
        })
    }
}
