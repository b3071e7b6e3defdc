//! How an access to the memory of a rank travels, decided here and nowhere else.
//!
//! When a window is made, [`Way::of`] settles what there is to each rank: memory that this process sees, or
//! what can be done without the rank's help, or nothing but messages. Each access then has
//! a plan:
//!
//! | plan | when | done by |
//! |---|---|---|
//! | [`Plan::Row`] | elements in a row, in memory that this process sees | loads and stores |
//! | [`Plan::Pieces`] | elements with gaps, in such memory | loads and stores |
//! | [`Plan::Copy`] | puts and gets within a node | one copy from process to process |
//! | [`Plan::Reach`] | in a row, where the network reaches the memory | its adapters (RDMA), or frames |
//! | [`Plan::Ask`] | all others | frames, which the engine gathers and splits over all rails |
//!
//! Most accesses on a node are of the first kind and take some ten instructions of memory, so what tells
//! them is inlined where it is asked, and looked up once.

use super::direct::{Direct, Row};
use super::{Flavor, Peer, Target, Way, Window, lock};
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::objects::{committed, dense_len};
use newmadeleine::across::Process;
use nmad_rma::{Base, Place};

/// What is done to the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    Get,
    /// Elements are read and changed in one step.
    Combine,
}

/// How an access travels. Its arguments about the target are right.
pub(super) enum Plan<'a> {
    /// To no process.
    Nowhere,
    Row(Row<'a>),
    Pieces(Direct<'a>),
    /// To memory of this process of the node.
    Copy(Far<'a>, &'a Process),
    /// To memory that the network reaches.
    Reach(Far<'a>),
    Ask(Far<'a>),
}

/// Memory that this process does not see.
pub(super) struct Far<'a> {
    pub(super) window: &'a Window,
    pub(super) peer: &'a Peer,
    pub(super) rank: i32,
    pub(super) place: Place,
}

impl Way {
    /// The way to a rank whose memory begins at `seen` in this process (none: it is not seen), or can be
    /// copied to and from if `process` finds its process on this node, or that the network reaches.
    pub(super) fn of(
        seen: Option<Base>,
        process: impl FnOnce() -> Option<Process>,
        is_reached: impl FnOnce() -> bool,
    ) -> Way {
        if let Some(base) = seen {
            return Way::Direct(base);
        }
        match process() {
            Some(process) => Way::Copies(process),
            None if is_reached() => Way::Network,
            None => Way::Frames,
        }
    }
}

impl Window {
    /// How an access travels.
    ///
    /// # Errors
    /// An argument about the target is wrong, or there is no access epoch.
    #[inline(always)]
    pub(super) fn plan(&self, target: Target, kind: Kind) -> Result<Plan<'_>> {
        match self.row(target) {
            Some(row) => Ok(Plan::Row(row)),
            None => self.other(target, kind),
        }
    }

    /// Elements in a row in memory that this process sees, if the type has not to be asked and all is right.
    #[inline(always)]
    fn row(&self, (rank, disp, count, datatype): Target) -> Option<Row<'_>> {
        let peer = self.peers.own(rank)?;
        let Way::Direct(base) = peer.way else { return None };
        let len = dense_len(datatype, count)?;
        // What begins before the window begins far behind it. A dynamic one has no bytes of its own.
        let offset = disp.checked_mul(peer.unit)? as u64;
        if offset.checked_add(len as u64)? > peer.size || len == 0 || !self.epoch.is_open(rank) {
            return None;
        }
        Some(Row { window: self, peer, at: base.behind(offset as usize).pointer(), len })
    }

    /// Everything else: the first access of an epoch or a type, types with gaps, other ways, errors.
    #[cold]
    #[inline(never)]
    fn other(&self, (rank, disp, count, datatype): Target, kind: Kind) -> Result<Plan<'_>> {
        let Some(peer) = self.target(rank)? else { return Ok(Plan::Nowhere) };
        self.check_access(rank)?;
        let start = disp.checked_mul(peer.unit).ok_or_else(|| self.far_out(rank, disp))?;
        let place = match dense_len(datatype, count) {
            Some(len) if start >= 0 => Place::One(start as u64, len as u64),
            _ => place(start, count, committed(datatype)?).map_err(|why| self.about(rank, &why))?,
        };
        if self.flavor != Flavor::Dynamic
            && let Some(run) = place.beyond(peer.size)
        {
            return Err(self.beyond(rank, peer, run));
        }
        Ok(match (&peer.way, place) {
            (&Way::Direct(base), place) => {
                if self.flavor == Flavor::Dynamic {
                    self.check_attached(&place)?;
                }
                match place {
                    Place::One(offset, len) => {
                        Plan::Row(Row { window: self, peer, at: base.operand(offset), len: len as usize })
                    }
                    place => Plan::Pieces(Direct { window: self, peer, base, place }),
                }
            }
            (Way::Copies(process), place) if kind != Kind::Combine => {
                Plan::Copy(Far { window: self, peer, rank, place }, process)
            }
            (Way::Network, place @ Place::One(..)) => Plan::Reach(Far { window: self, peer, rank, place }),
            (Way::Copies(_) | Way::Network | Way::Frames, place) => {
                Plan::Ask(Far { window: self, peer, rank, place })
            }
        })
    }

    /// Of a dynamic window only what is attached can be accessed.
    fn check_attached(&self, place: &Place) -> Result<()> {
        let Some((start, len)) = lock(&self.attached).missing(place) else { return Ok(()) };
        let text = format_args!("the {len} B at address {start:#x} are not attached to the window");
        Err(self.error(Class::RMA_RANGE, text))
    }

    #[cold]
    fn far_out(&self, rank: i32, disp: i64) -> Error {
        let text = format_args!("rank {rank} as the target: no window has the displacement {disp}");
        self.error(Class::DISP, text)
    }

    #[cold]
    pub(super) fn about(&self, rank: i32, why: &Error) -> Error {
        self.error(why.class(), format_args!("rank {rank} as the target: {}", why.text()))
    }

    #[cold]
    fn beyond(&self, rank: i32, peer: &Peer, (offset, len): (u64, u64)) -> Error {
        self.error(
            Class::RMA_RANGE,
            format_args!(
                "rank {rank} as the target: {len} B from byte {offset} on, but it has {} B \
                 (displacements are in units of {} B)",
                peer.size, peer.unit
            ),
        )
    }
}

/// The place of `count` elements from byte `start` on.
///
/// # Errors
/// They begin before the window does, or do not fit into 64 bits.
#[inline]
pub(super) fn place(start: i64, count: i64, datatype: &Datatype) -> Result<Place> {
    if let Some(run) = datatype.run(count) {
        return Ok(Place::One(begin(start, run.offset)?, run.len as u64));
    }
    datatype.bytes(count)?;
    let (mut runs, mut wrong) = (Vec::new(), None);
    datatype.for_each_run(count, |run| match begin(start, run.offset) {
        Ok(offset) => runs.push((offset, run.len as u64)),
        Err(error) => wrong = wrong.take().or(Some(error)),
    });
    wrong.map_or(Ok(Place::Many(runs)), Err)
}

fn begin(start: i64, offset: i64) -> Result<u64> {
    let at = start.checked_add(offset).and_then(|at| u64::try_from(at).ok());
    at.ok_or_else(|| {
        let at = i128::from(start) + i128::from(offset);
        Class::RMA_RANGE.error(format!("the data would begin at byte {at}, which no window has"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Basic;

    #[test]
    fn data_before_the_window_is_refused() {
        let int = Datatype::predefined(Basic::Int);
        assert_eq!(place(-4, 1, int).unwrap_err().class(), Class::RMA_RANGE);
        assert_eq!(place(4, 2, int), Ok(Place::One(4, 8)));
    }

    #[test]
    fn memory_is_seen_or_copied_or_reached_or_asked_for() {
        let own = std::process::id() as i32;
        let near = Way::of(None, || Some(Process::of(own)), || panic!("nobody asks"));
        assert!(matches!(near, Way::Copies(process) if process.id() == own));
        assert!(matches!(Way::of(None, || None, || true), Way::Network));
        assert!(matches!(Way::of(None, || None, || false), Way::Frames));
        let seen = Way::of(Some(Base::BOTTOM), || panic!("nobody asks"), || panic!("nobody asks"));
        assert!(matches!(seen, Way::Direct(base) if base == Base::BOTTOM));
    }
}
