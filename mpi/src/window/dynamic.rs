//! Memory that a program attaches to a window after it was made.

use super::{Flavor, Window, lock};
use crate::error::{Class, Result};
use nmad_rma::Place;
use std::collections::BTreeMap;
use std::ffi::c_void;

/// Attached pieces: lengths by address. Pieces do not overlap.
#[derive(Debug, Default)]
pub(super) struct Attached(BTreeMap<u64, u64>);

impl Attached {
    /// The piece that has bytes of this range.
    fn overlapping(&self, start: u64, len: u64) -> Option<(u64, u64)> {
        let end = start.saturating_add(len);
        let (&at, &size) = self.0.range(..end).next_back()?;
        (at + size > start).then_some((at, size))
    }

    /// The first run of a place of which not all bytes are attached; a run may span pieces that touch.
    pub(super) fn missing(&self, place: &Place) -> Option<(u64, u64)> {
        place.runs().find(|&(start, len)| {
            let Some(end) = start.checked_add(len) else { return true };
            let mut at = start;
            while at < end {
                match self.overlapping(at, 1) {
                    Some((start, size)) => at = start + size,
                    None => return true,
                }
            }
            false
        })
    }
}

impl Window {
    fn must_be_dynamic(&self, call: &str) -> Result<()> {
        if self.flavor == Flavor::Dynamic {
            return Ok(());
        }
        let text = format_args!("{call} is for windows of MPI_Win_create_dynamic");
        Err(self.error(Class::RMA_FLAVOR, text))
    }

    /// Attaches memory.
    ///
    /// # Errors
    /// It is attached already, in part at least, or the window is not a dynamic one.
    pub(crate) fn attach(&self, start: *mut c_void, size: i64) -> Result<()> {
        self.must_be_dynamic("MPI_Win_attach")?;
        let bad = |text| Err(self.error(Class::SIZE, text));
        let Ok(len) = u64::try_from(size) else {
            return bad(format_args!("memory of {size} B cannot be attached: the size must not be negative"));
        };
        if len == 0 {
            return Ok(());
        }
        let start = start.expose_provenance() as u64;
        if start < 4096 {
            return Err(self.error(Class::RMA_ATTACH, format_args!("memory at NULL cannot be attached")));
        }
        let mut attached = lock(&self.attached);
        if let Some((other, size)) = attached.overlapping(start, len) {
            return Err(self.error(
                Class::RMA_ATTACH,
                format_args!(
                    "{size} B at {other:#x} are attached already, which {len} B at {start:#x} overlap"
                ),
            ));
        }
        attached.0.insert(start, len);
        Ok(())
    }

    /// Detaches memory, as it was attached.
    ///
    /// # Errors
    /// Nothing was attached at this address, or the window is not a dynamic one.
    pub(crate) fn detach(&self, start: *const c_void) -> Result<()> {
        self.must_be_dynamic("MPI_Win_detach")?;
        let start = start.expose_provenance() as u64;
        if lock(&self.attached).0.remove(&start).is_none() {
            let text = format_args!("no memory was attached at {start:#x}");
            return Err(self.error(Class::RMA_ATTACH, text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_attached_is_found() {
        let attached = Attached(BTreeMap::from([(100, 10), (110, 10), (200, 1)]));
        assert_eq!(attached.missing(&Place::One(100, 20)), None);
        assert_eq!(attached.missing(&Place::One(105, 10)), None);
        assert_eq!(attached.missing(&Place::One(99, 2)), Some((99, 2)));
        assert_eq!(attached.missing(&Place::One(119, 2)), Some((119, 2)));
        assert_eq!(attached.missing(&Place::Many(vec![(100, 1), (201, 1)])), Some((201, 1)));
        assert_eq!(attached.missing(&Place::One(u64::MAX, 2)), Some((u64::MAX, 2)));
        assert_eq!((attached.overlapping(90, 10), attached.overlapping(90, 11)), (None, Some((100, 10))));
    }
}
