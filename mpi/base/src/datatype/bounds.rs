//! Where a type begins and ends: lower and upper bound, true bounds, alignment (MPI 5.0, section 5.1.6 to
//! 5.1.8).
//!
//! All sums and products are checked: a type that does not fit into 64 bits is refused when it is made.

use crate::error::{Class, Result};

/// `a + b`, or class COUNT.
pub fn add(a: i64, b: i64) -> Result<i64> {
    a.checked_add(b).ok_or_else(|| too_large(format!("{a} + {b}")))
}

/// `a - b`, or class COUNT.
pub fn subtract(a: i64, b: i64) -> Result<i64> {
    a.checked_sub(b).ok_or_else(|| too_large(format!("{a} - {b}")))
}

/// `a * b`, or class COUNT.
pub fn multiply(a: i64, b: i64) -> Result<i64> {
    a.checked_mul(b).ok_or_else(|| too_large(format!("{a} * {b}")))
}

#[cold]
fn too_large(what: String) -> crate::error::Error {
    Class::COUNT.error(format!("the datatype is too large: {what} bytes or elements do not fit into 64 bits"))
}

/// An interval of displacements in bytes, the end not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// First byte.
    pub begin: i64,
    /// One behind the last byte.
    pub end: i64,
}

impl Interval {
    fn cover(self, other: Interval) -> Interval {
        Interval { begin: self.begin.min(other.begin), end: self.end.max(other.end) }
    }

    fn spread(self, least: i64, greatest: i64) -> Result<Interval> {
        Ok(Interval { begin: add(self.begin, least)?, end: add(self.end, greatest)? })
    }
}

/// Where the type map begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// From the first to the last byte of data; none if there is no data.
    data: Option<Interval>,
    /// The same with the padding of basic types and structures.
    natural: Option<Interval>,
    /// Bounds that a user gave (`MPI_Type_create_resized`, or `MPI_LB` and `MPI_UB`), here or in a part: each
    /// overrides the natural one.
    given_begin: Option<i64>,
    given_end: Option<i64>,
    /// The strictest alignment of all basic parts.
    alignment: i64,
}

impl Bounds {
    /// Of no data at all.
    pub const EMPTY: Bounds =
        Bounds { data: None, natural: None, given_begin: None, given_end: None, alignment: 1 };

    /// Of data that begins at zero, and the extent that its type has.
    pub fn basic(span: i64, extent: i64, alignment: i64) -> Bounds {
        let to = |end| Some(Interval { begin: 0, end });
        Bounds { data: to(span), natural: to(extent), alignment, ..Bounds::EMPTY }
    }

    /// Of no data, but a place where types that have it shall begin, or end.
    pub fn mark(is_begin: bool) -> Bounds {
        let (begin, end) = if is_begin { (Some(0), None) } else { (None, Some(0)) };
        Bounds { given_begin: begin, given_end: end, ..Bounds::EMPTY }
    }

    /// Of copies that are displaced by at least `least` and at most `greatest`, both of which occur.
    pub fn spread(self, least: i64, greatest: i64) -> Result<Bounds> {
        let spread = |interval: Option<Interval>| interval.map(|i| i.spread(least, greatest)).transpose();
        let (data, natural) = (spread(self.data)?, spread(self.natural)?);
        let given_begin = self.given_begin.map(|begin| add(begin, least)).transpose()?;
        let given_end = self.given_end.map(|end| add(end, greatest)).transpose()?;
        Ok(Bounds { data, natural, given_begin, given_end, alignment: self.alignment })
    }

    /// Of both together.
    pub fn join(self, other: Bounds) -> Bounds {
        let cover = |a: Option<Interval>, b: Option<Interval>| match (a, b) {
            (Some(a), Some(b)) => Some(a.cover(b)),
            (a, b) => a.or(b),
        };
        Bounds {
            data: cover(self.data, other.data),
            natural: cover(self.natural, other.natural),
            given_begin: self.given_begin.into_iter().chain(other.given_begin).min(),
            given_end: self.given_end.into_iter().chain(other.given_end).max(),
            alignment: self.alignment.max(other.alignment),
        }
    }

    /// With other bounds than the natural ones.
    pub fn resized(self, begin: i64, end: i64) -> Bounds {
        Bounds { given_begin: Some(begin), given_end: Some(end), ..self }
    }

    /// From the first to the last byte of data; the empty interval at zero if there is none.
    pub fn data(&self) -> Interval {
        self.data.unwrap_or(Interval { begin: 0, end: 0 })
    }

    /// As those of a structure: the upper natural one rounded up so that the extent is a multiple of the
    /// alignment. The standard's text would have it for every type; what programs were tested with, MPICH and
    /// Open MPI, pad structures only, as compilers do, and so does this library.
    pub fn padded(self) -> Result<Bounds> {
        let Some(natural) = self.natural else { return Ok(self) };
        let extent = subtract(natural.end, natural.begin)?;
        let padding = (self.alignment - extent.rem_euclid(self.alignment)) % self.alignment;
        let natural = Interval { begin: natural.begin, end: add(natural.end, padding)? };
        Ok(Bounds { natural: Some(natural), ..self })
    }

    /// Lower and upper bound: the given ones, or the natural ones.
    pub fn resolve(&self) -> Result<Interval> {
        let natural = self.natural.unwrap_or(Interval { begin: 0, end: 0 });
        let chosen = Interval {
            begin: self.given_begin.unwrap_or(natural.begin),
            end: self.given_end.unwrap_or(natural.end),
        };
        subtract(chosen.end, chosen.begin)?;
        Ok(chosen)
    }
}
