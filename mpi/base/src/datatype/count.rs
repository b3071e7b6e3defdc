//! How many elements a number of bytes is (MPI 5.0, sections 3.2.5 and 5.1.11).

use std::ops::ControlFlow;

use super::Datatype;
use super::structure::{Elements, Walk};

impl Datatype {
    /// `MPI_Get_count`: elements in `len` bytes; none (`MPI_UNDEFINED`) if the last one is not whole.
    pub fn count_in(&self, len: i64) -> Option<i64> {
        match self.size() {
            0 => (len == 0).then_some(0),
            size => (len % size == 0).then_some(len / size),
        }
    }

    /// `MPI_Get_elements`: basic elements in `len` bytes; none (`MPI_UNDEFINED`) if the last one is not
    /// whole.
    pub fn elements_in(&self, len: i64) -> Option<i64> {
        let size = self.size();
        if size == 0 {
            return (len == 0).then_some(0);
        }
        let whole = (len / size).checked_mul(self.elements())?;
        whole.checked_add(self.elements_at_begin(len % size)?)
    }

    /// Basic elements in the first `len` bytes of one element.
    fn elements_at_begin(&self, len: i64) -> Option<i64> {
        let (mut left, mut found) = (len, 0);
        let mut show = |elements: Elements| take(elements, &mut left, &mut found);
        match self.for_each_basic(0, 1, &mut show) {
            ControlFlow::Break(last_is_whole) => last_is_whole.then_some(found),
            ControlFlow::Continue(()) => (left == 0).then_some(found),
        }
    }

    /// Bytes of data in the first `number` basic elements of an array of this type: what
    /// `MPI_Status_set_elements` must remember. None if they do not fit into 64 bits, or the number is
    /// negative.
    pub fn bytes_of_elements(&self, number: i64) -> Option<i64> {
        if number < 0 || (self.elements() == 0 && number > 0) {
            return None;
        }
        if number == 0 {
            return Some(0);
        }
        let whole = (number / self.elements()).checked_mul(self.size())?;
        let (mut left, mut len) = (number % self.elements(), 0);
        let mut show = |e: Elements| -> Walk<()> {
            let per_item = e.basic.elements();
            let items = e.count.min(left / per_item);
            len += items * e.basic.size();
            left -= items * per_item;
            if items < e.count && left > 0 {
                // Half of a pair: its value.
                len += e.basic.scalar().size();
                left = 0;
            }
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let _ = self.for_each_basic(0, 1, &mut show);
        whole.checked_add(len)
    }
}

/// Counts the elements that `left` bytes hold. Breaks when there are no more bytes: whether none is left
/// over.
fn take(elements: Elements, left: &mut i64, found: &mut i64) -> Walk<bool> {
    let Elements { basic, count, .. } = elements;
    let items = count.min(*left / basic.size());
    *left -= items * basic.size();
    *found += items * basic.elements();
    if items == count {
        return if *left == 0 { ControlFlow::Break(true) } else { ControlFlow::Continue(()) };
    }
    let is_half_a_pair = basic.elements() == 2 && *left == basic.scalar().size();
    *found += i64::from(is_half_a_pair);
    ControlFlow::Break(*left == 0 || is_half_a_pair)
}
