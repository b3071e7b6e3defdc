//! Views: which bytes of a file a process sees, and as what (MPI 5.0, section 14.3).

use super::representation::Representation;
use super::{File, lock};
use crate::comm::gathered;
use crate::datatype::{Basic, Datatype};
use crate::error::{Class, Error, Result};
use crate::handle::{Info, Type};
use crate::info;
use crate::objects::{committed, hand_out_type};
use nmad_file::{Piece, Pieces};
use std::sync::Arc;

/// The end of the bytes before, in sequential mode (`MPI_DISPLACEMENT_CURRENT`).
const CURRENT: i64 = -1;
/// Pieces of a file type of which it is asked whether they ascend: those of longer types are trusted.
const LOOKED_AT: i64 = 1 << 20;

/// A view.
pub(crate) struct View {
    /// Bytes before it.
    start: i64,
    etype: Datatype,
    filetype: Datatype,
    representation: Representation,
    /// Bytes of the data of an elementary type in the file.
    unit: i64,
    /// The file type as it lies in the file.
    tile: Datatype,
}

/// What a program asks for.
pub(crate) struct Wish<'a> {
    pub(crate) start: i64,
    pub(crate) etype: Type,
    pub(crate) filetype: Type,
    pub(crate) representation: &'a str,
}

impl View {
    /// Bytes, from the first one on.
    pub(super) fn of_bytes() -> View {
        let byte = Datatype::of(Basic::Byte);
        let (etype, filetype, tile) = (byte.clone(), byte.clone(), byte);
        View { start: 0, etype, filetype, representation: Representation::Native, unit: 1, tile }
    }

    fn new(wish: &Wish<'_>, current: i64) -> Result<View> {
        let start = if wish.start == CURRENT { current } else { wish.start };
        if start < 0 {
            return Err(Class::ARG.error(format!("the displacement is {start}: it must not be negative")));
        }
        let representation = Representation::named(wish.representation)?;
        let (etype, filetype) = (committed(wish.etype)?.clone(), committed(wish.filetype)?.clone());
        let [unit, tile] = [&etype, &filetype].map(|each| representation.in_file(each));
        let (unit, tile) = (unit?.size(), tile?);
        check(&etype, &filetype, unit, &tile)?;
        Ok(View { start, etype, filetype, representation, unit, tile })
    }

    pub(super) fn representation(&self) -> &Representation {
        &self.representation
    }

    /// Elementary types in this number of bytes of memory.
    ///
    /// # Errors
    /// They are no whole number of them.
    pub(super) fn elements(&self, bytes: i64) -> Result<i64> {
        let size = self.etype.size();
        match bytes {
            0 => Ok(0),
            _ if size > 0 && bytes % size == 0 => Ok(bytes / size),
            _ => Err(Class::ARG.error(format!(
                "{bytes} B are no whole number of elementary types of the view, which have {size} B"
            ))),
        }
    }

    /// The places of the file to which `len` bytes are written from an offset of the view on, see
    /// [`View::pieces`].
    ///
    /// # Errors
    /// As [`View::pieces`]; or a byte of the file would be written twice. The tiles of a view may reach into
    /// each other, as those of HDF5 do, which accesses one of them.
    pub(super) fn written(&self, offset: i64, len: i64) -> Result<Pieces> {
        let pieces = self.pieces(offset, len)?;
        let may_overlap = self.tile.extent() < self.tile.true_extent();
        if may_overlap && pieces.overlap() { Err(misplaced()) } else { Ok(pieces) }
    }

    /// The `len` bytes of the file that lie `offset` elementary types behind the begin of the view.
    ///
    /// # Errors
    /// The offset is negative, or they do not fit into 63 bits.
    pub(super) fn pieces(&self, offset: i64, len: i64) -> Result<Pieces> {
        if offset < 0 {
            return Err(Class::ARG.error(format!("the offset is {offset}: it must not be negative")));
        }
        if len > 0 && self.tile.size() == 0 {
            return Err(Class::ARG.error("the file type of the view has no data: nothing can be accessed"));
        }
        let from = offset.checked_mul(self.unit).filter(|from| from.checked_add(len).is_some());
        let from = from.ok_or_else(too_far)?;
        let (mut pieces, mut is_wrong) = (Pieces::default(), false);
        self.tile.for_each_run_of(from, len, |run| {
            let end = self.start.checked_add(run.offset).and_then(|begin| begin.checked_add(run.len));
            match end.filter(|end| *end >= run.len) {
                Some(end) => pieces.push(Piece { offset: (end - run.len) as u64, len: run.len as u64 }),
                None => is_wrong = true,
            }
        });
        if is_wrong { Err(too_far()) } else { Ok(pieces) }
    }

    /// The byte of the file that lies `offset` elementary types behind the begin of the view.
    ///
    /// # Errors
    /// As [`View::pieces`].
    pub(super) fn byte(&self, offset: i64) -> Result<i64> {
        let first = self.pieces(offset, 1)?.list().first().copied();
        Ok(first.map_or(self.start, |piece| piece.offset as i64))
    }

    /// Elementary types of the view that lie in a file of `size` bytes, the last one perhaps in part.
    pub(super) fn end(&self, size: i64) -> i64 {
        let (visible, extent) = (size.saturating_sub(self.start), self.tile.extent());
        if visible <= 0 || self.tile.size() == 0 || self.unit == 0 {
            return 0;
        }
        let (begin, len) = (self.tile.true_lower_bound(), self.tile.true_extent());
        // Tiles that lie before the end whole.
        let whole = match extent {
            1.. => (visible - begin - len).div_euclid(extent).saturating_add(1).max(0),
            _ => 0,
        };
        let (mut bytes, mut tile) = (whole * self.tile.size(), whole);
        while tile.saturating_mul(extent).saturating_add(begin) < visible {
            let base = tile * extent;
            self.tile.for_each_run(1, |run| bytes += (visible - base - run.offset).clamp(0, run.len));
            tile += 1;
            if extent <= 0 {
                break;
            }
        }
        (bytes + self.unit - 1) / self.unit
    }
}

#[cold]
fn too_far() -> Error {
    Class::ARG.error("the offset is too far: the access would end behind byte 2^63 of the file")
}

#[cold]
fn misplaced() -> Error {
    let text = "the displacements of the file type must not be negative, must ascend, and must not overlap";
    Class::TYPE.error(text)
}

/// Whether a file type may be one.
fn check(etype: &Datatype, filetype: &Datatype, unit: i64, tile: &Datatype) -> Result<()> {
    if etype.size() == 0 {
        return Err(Class::TYPE.error("the elementary type of the view has no data"));
    }
    let is_made_of = filetype.size() % etype.size() == 0 && unit > 0 && tile.size() % unit == 0;
    if !is_made_of {
        return Err(Class::TYPE.error(format!(
            "the file type has {} B of data, which is no multiple of the {} B of the elementary type",
            filetype.size(),
            etype.size()
        )));
    }
    let (mut end, mut is_wrong) = (i64::MIN, tile.true_lower_bound() < 0 || tile.extent() < 0);
    if tile.max_runs(1) <= LOOKED_AT {
        tile.for_each_run(1, |run| {
            is_wrong |= run.offset < end;
            end = run.offset + run.len;
        });
    }
    if is_wrong { Err(misplaced()) } else { Ok(()) }
}

impl File {
    /// `MPI_File_set_view`
    ///
    /// # Errors
    /// An argument is wrong, or ranks give elementary types or representations that differ.
    pub(crate) fn set_view(self: &Arc<File>, wish: &Wish<'_>, info: Info) -> Result<()> {
        let given = info::optional(info);
        let current = if self.amode.is_sequential() { self.shared_byte() } else { Ok(CURRENT) };
        let view = given.and_then(|given| Ok((given, View::new(wish, current?)?)));
        let name = crate::algorithm::check::number(wish.representation).unwrap_or(0) as i64;
        let row = match &view {
            Ok((_, view)) => [0, view.etype.extent(), view.etype.size(), name],
            Err(_) => [1, 0, 0, 0],
        };
        let mut hints = lock(&self.hints).clone();
        if let Ok((given, _)) = &view {
            given.iter().for_each(|given| hints.take(|key| given.get(key)));
        }
        let mine: Vec<i64> = row.into_iter().chain(hints.numbers()).collect();
        let all = gathered(&self.on.comm, &mine)?;
        let (_, view) = view?;
        let rows: Vec<[i64; 4]> =
            all.chunks(mine.len()).filter_map(|row| row.first_chunk().copied()).collect();
        if let Some(rank) = rows.iter().position(|other| other[0] != 0) {
            return Err(self.error(Class::OTHER, format_args!("rank {rank} could not set its view")));
        }
        if let Some(rank) = rows.iter().position(|other| *other != row) {
            let text =
                format_args!("rank {rank} gives another elementary type or representation for its view");
            return Err(self.error(Class::NOT_SAME, text));
        }
        hints.agree(all[4..].first_chunk().copied().unwrap_or_default());
        self.take_hints(hints)?;
        *lock(&self.view) = Arc::new(view);
        *lock(&self.position) = 0;
        if self.rank() == 0 {
            self.shared.set(0)?;
        }
        // Nobody uses the shared pointer before it is set.
        gathered(&self.on.comm, &[0]).map(drop)
    }

    /// The view: displacement, types, and the name of the representation. The caller frees the types.
    pub(crate) fn told_view(&self) -> (i64, Type, Type, String) {
        let view = self.view();
        let [etype, filetype] = [&view.etype, &view.filetype].map(hand_out_type);
        (view.start, etype, filetype, view.representation.name().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Form;

    fn view(start: i64, etype: &Datatype, tile: &Datatype) -> View {
        View {
            start,
            etype: etype.clone(),
            filetype: tile.clone(),
            representation: Representation::Native,
            unit: etype.size(),
            tile: tile.clone(),
        }
    }

    #[test]
    fn offsets_and_ends_count_what_the_view_shows() {
        let int = Datatype::of(Basic::Int);
        // Every third int.
        let third = Datatype::resized(Form::Int, 0, 12, &int).unwrap();
        let view = view(100, &int, &third);
        let pieces = view.pieces(2, 8).unwrap();
        assert_eq!(pieces.list(), [Piece { offset: 124, len: 4 }, Piece { offset: 136, len: 4 }]);
        assert_eq!([0, 1, 5].map(|offset| view.byte(offset).unwrap()), [100, 112, 160]);
        let ends = [0, 100, 101, 104, 112, 113, 124, 125, 1000].map(|size| view.end(size));
        assert_eq!(ends, [0, 0, 1, 1, 1, 2, 2, 3, 75]);
        assert_eq!(view.elements(8), Ok(2));
        assert_eq!(view.elements(6).unwrap_err().class(), Class::ARG);
        assert_eq!(view.pieces(-1, 4).unwrap_err().class(), Class::ARG);
        assert_eq!(view.pieces(i64::MAX / 2, 4).unwrap_err().class(), Class::ARG);
    }

    #[test]
    fn the_end_is_where_the_first_byte_is_that_the_file_has_not() {
        let byte = Datatype::of(Basic::Byte);
        let pair = Datatype::indexed(Form::Int, &[2, 3], &[1, 5], &byte).unwrap();
        let pair = Datatype::resized(Form::Int, 0, 11, &pair).unwrap();
        let view = view(7, &byte, &pair);
        for size in 0..60 {
            let inside = (0..100).take_while(|&offset| view.byte(offset).unwrap() < size).count() as i64;
            assert_eq!(view.end(size), inside, "{size} B");
        }
    }

    #[test]
    fn file_types_that_go_back_or_overlap_are_refused() {
        let int = Datatype::of(Basic::Int);
        let wrong = |tile: &Datatype| check(&int, tile, 4, tile).is_err();
        assert!(wrong(&Datatype::indexed(Form::Int, &[1, 1], &[3, 0], &int).unwrap()));
        assert!(wrong(&Datatype::indexed(Form::Int, &[2, 1], &[0, 1], &int).unwrap()));
        assert!(wrong(&Datatype::hindexed(Form::Int, &[1], &[-4], &int).unwrap()));
        let vector = Datatype::vector(Form::Int, 2, 1, 3, &int).unwrap();
        let short = Datatype::resized(Form::Int, 0, 4, &vector).unwrap();
        assert!(!wrong(&short) && !wrong(&vector), "tiles may reach into each other");
        let view = view(0, &int, &short);
        assert!(view.written(0, 16).is_ok() && view.pieces(0, 32).is_ok());
        assert_eq!(view.written(0, 32).unwrap_err().class(), Class::TYPE, "byte 12 is written twice");
        assert!(wrong(&Datatype::of(Basic::Short)), "no multiple of an int");
    }
}
