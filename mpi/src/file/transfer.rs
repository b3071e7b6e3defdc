//! One access, prepared: the bytes of the file and the memory of the program. An access of one rank goes
//! through [`Transfer::perform`] or [`Transfer::perform_later`], one of all ranks through
//! [`Transfer::perform_together`] or the exchange with owners.

use super::view::View;
use super::{File, Kind, background};
use crate::datatype::Datatype;
use crate::error::{Class, Result};
use crate::handle::Type;
use crate::memory;
use crate::message;
use crate::objects::committed;
use crate::status::Status;
use newmadeleine::Segments;
use nmad_file::Pieces;
use nmad_file::access::perform;
use std::ffi::c_void;
use std::future::ready;
use std::sync::Arc;

/// A buffer of the program: address, count, type.
pub(crate) type Buffer = (*const c_void, i64, Type);

/// A buffer that was looked at.
pub(super) struct Asked {
    pub(super) kind: Kind,
    address: usize,
    count: i64,
    datatype: Datatype,
    segments: Segments,
}

/// An access.
pub(super) struct Transfer {
    pub(super) file: Arc<File>,
    pub(super) pieces: Pieces,
    /// The data as they are in the file: the program's buffer, or a converted copy.
    pub(super) memory: Segments,
    asked: Asked,
    copy: Option<Copy>,
    /// Bytes of an element in the file.
    element: i64,
}

/// Data of the file that differ from the program's.
struct Copy {
    data: Vec<u8>,
    view: Arc<View>,
}

impl Asked {
    /// Looks at a buffer.
    ///
    /// # Errors
    /// There is no such type, or no memory.
    pub(super) fn new(kind: Kind, (buffer, count, datatype): Buffer) -> Result<Asked> {
        let segments = message::segments(buffer, count, datatype)?;
        let datatype = if count == 0 && datatype.is_null() {
            Datatype::of(crate::datatype::Basic::Byte)
        } else {
            committed(datatype)?.clone()
        };
        Ok(Asked { kind, address: buffer.expose_provenance(), count, datatype, segments })
    }

    /// Bytes of the program's data.
    pub(super) fn len(&self) -> i64 {
        self.segments.len() as i64
    }

    /// The places of the file that `len` bytes are written to or read from.
    ///
    /// # Errors
    /// The offset is wrong, or a byte would be written twice.
    fn places(&self, view: &View, offset: i64, len: i64) -> Result<Pieces> {
        match self.kind {
            Kind::Write => view.written(offset, len),
            Kind::Read => view.pieces(offset, len),
        }
    }

    /// Prepares the access from an offset of the view on, in elementary types.
    ///
    /// # Errors
    /// The offset is wrong, or a function of the program fails.
    pub(super) fn at(self, file: &Arc<File>, view: &Arc<View>, offset: i64) -> Result<Transfer> {
        if view.representation().is_as_in_memory(self.kind == Kind::Write) {
            let pieces = self.places(view, offset, self.len())?;
            let (memory, element) = (self.segments.clone(), self.datatype.size());
            return Ok(Transfer { file: file.clone(), pieces, memory, asked: self, copy: None, element });
        }
        let element = view.representation().in_file(&self.datatype)?.size();
        let too_many = || Class::COUNT.error(format!("{} elements are too many", self.count));
        let len = element.checked_mul(self.count).and_then(|len| usize::try_from(len).ok());
        let mut data = vec![0; len.ok_or_else(too_many)?];
        if self.kind == Kind::Write {
            let buffer = std::ptr::with_exposed_provenance(self.address);
            view.representation().write(buffer, (self.count, &self.datatype), &mut data)?;
        }
        let pieces = self.places(view, offset, data.len() as i64)?;
        let memory = memory::contiguous(data.as_mut_ptr().cast(), data.len());
        let copy = Some(Copy { data, view: view.clone() });
        Ok(Transfer { file: file.clone(), pieces, memory, asked: self, copy, element })
    }
}

impl Transfer {
    pub(super) fn kind(&self) -> Kind {
        self.asked.kind
    }

    /// Does it, on this thread.
    ///
    /// # Errors
    /// The system refuses it, or no owner is left.
    pub(super) fn perform(self) -> Result<Status> {
        let done = self.file.access(self.kind(), (&self.pieces, &self.memory))?;
        self.finish(done)
    }

    /// Does it while the program computes. A system call is made by a thread of the library's own, unless
    /// functions of the program convert the data.
    ///
    /// # Errors
    /// The system refuses it, or no owner is left.
    pub(super) async fn perform_later(self) -> Result<Status> {
        let (file, kind) = (self.file.clone(), self.kind());
        let begun = file.begun();
        let (pieces, memory, of) = (self.pieces.clone(), self.memory.clone(), file.clone());
        let call = move || background::answer(move || of.call_system(kind, (&pieces, &memory)));
        let (done, way) = perform(&file, kind, (&self.pieces, &self.memory), call).await?;
        file.ended_alone(begun, kind, (way, &self.pieces));
        self.finish(done)
    }

    /// Does its part of an access of all ranks.
    ///
    /// # Errors
    /// The system refuses it, or no owner is left.
    pub(super) async fn perform_together(self) -> Result<Status> {
        let (file, kind) = (self.file.clone(), self.kind());
        let data = (&self.pieces, &self.memory);
        let (done, _) = perform(&file, kind, data, || ready(file.move_here(kind, data))).await?;
        self.finish(done)
    }

    /// The end, after `done` bytes of the file were moved.
    ///
    /// # Errors
    /// A function of the program fails.
    pub(super) fn finish(mut self, done: u64) -> Result<Status> {
        let mut count_bytes = done as i64;
        if let Some(copy) = &mut self.copy {
            let elements = if self.element > 0 { done as i64 / self.element } else { 0 };
            count_bytes = elements * self.asked.datatype.size();
            if self.asked.kind == Kind::Read {
                let data = &mut copy.data[..(elements * self.element) as usize];
                let buffer = std::ptr::with_exposed_provenance_mut(self.asked.address);
                copy.view.representation().read(data, buffer, (elements, &self.asked.datatype))?;
            }
        }
        Ok(Status { count_bytes, ..Status::SENT })
    }
}
