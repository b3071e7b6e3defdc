//! The calls that move data: of one process and of all, which return at the end or before.

use super::collective::{self, Parties};
use super::of::Of;
use super::transfer::Asked;
use super::view::View;
use super::{Buffer, File, Kind, lock, share};
use crate::error::{Class, Result};
use crate::handle::{self, Request};
use crate::request::State;
use crate::status::Status;
use crate::task::{self, Async};
use crate::world::world;
use std::sync::Arc;

/// Where an access begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// At this offset.
    At(i64),
    /// At the individual pointer, which moves on.
    Own,
    /// At the shared pointer, which moves on.
    Shared,
    /// At the shared pointer, one rank behind the other.
    Ordered,
}

impl File {
    /// Checks what is the same for all ranks.
    fn check(&self, kind: Kind, start: Start) -> Result<()> {
        self.amode.check(kind)?;
        match start {
            Start::At(_) | Start::Own => self.amode.check_random(),
            Start::Shared | Start::Ordered => Ok(()),
        }
    }

    /// Where an access of one process begins, in elementary types; its pointer moves on.
    fn begin(&self, view: &View, asked: &Asked, start: Start) -> Result<i64> {
        let elements = view.elements(asked.len())?;
        match start {
            Start::At(offset) => Ok(offset),
            Start::Own => Ok(self.advance(elements)),
            Start::Shared | Start::Ordered => self.shared.advance(elements),
        }
    }
}

/// Reads or writes, and returns at the end.
///
/// # Errors
/// An argument is wrong, or the system refuses the access.
pub(crate) fn alone(
    file: handle::File,
    (kind, start): (Kind, Start),
    buffer: Buffer,
    status: Option<&mut Status>,
) -> Result<()> {
    let file = share(file)?;
    file.check(kind, start)?;
    let asked = Asked::new(kind, buffer)?;
    let view = file.view();
    let offset = file.begin(&view, &asked, start)?;
    let ended = asked.at(&file, &view, offset)?.perform()?;
    if let Some(status) = status {
        *status = ended;
    }
    Ok(())
}

/// Begins to read or write.
///
/// # Errors
/// An argument is wrong.
pub(crate) fn alone_later(
    file: handle::File,
    (kind, start): (Kind, Start),
    buffer: Buffer,
) -> Result<Request> {
    let file = share(file)?;
    file.check(kind, start)?;
    let asked = Asked::new(kind, buffer)?;
    let view = file.view();
    let offset = file.begin(&view, &asked, start)?;
    let transfer = asked.at(&file, &view, offset)?;
    file.settle();
    if transfer.kind() == Kind::Write {
        file.prefer_owners(&transfer.pieces);
    }
    let of = Of(file.clone());
    let work = Async::new(async move { transfer.perform_later().await.map_err(|error| error.on(Some(of))) });
    Ok(State::Task(task::start(world()?, Box::new(work)), file.on.clone()).into_request())
}

/// The access of all ranks, as something that goes on. What is wrong with the arguments of this rank is told
/// at the end: the other ranks count on it.
fn together(
    file: &Arc<File>,
    (kind, start): (Kind, Start),
    buffer: Buffer,
) -> impl Future<Output = Result<Status>> + Send + use<> {
    file.settle();
    let parties = Parties::new(file);
    let asked = Asked::new(kind, buffer);
    let first = match (&asked, start) {
        (Ok(_), Start::Ordered) => Ok(None),
        (Ok(asked), start) => file.begin(&file.view(), asked, start).map(Some),
        // The error is that of the buffer.
        (Err(_), _) => Ok(None),
    };
    let asked = asked.and_then(|asked| first.map(|first| (asked, first)));
    collective::run(file.clone(), (kind, start == Start::Ordered), asked, parties)
}

/// Whether ranks may access the file together now.
pub(super) fn check_together(file: &File, kind: Kind, start: Start) -> Result<()> {
    file.check(kind, start)?;
    if lock(&file.split).is_some() {
        let text = "a split collective access is under way: end it first";
        return Err(file.error(Class::OTHER, text));
    }
    Ok(())
}

/// Reads or writes with all ranks, and returns at the end.
///
/// # Errors
/// An argument is wrong, the system refuses the access, or a rank is gone.
pub(crate) fn all(
    file: handle::File,
    (kind, start): (Kind, Start),
    buffer: Buffer,
    status: Option<&mut Status>,
) -> Result<()> {
    let file = share(file)?;
    check_together(&file, kind, start)?;
    let ended = task::block_on(together(&file, (kind, start), buffer))?;
    if let Some(status) = status {
        *status = ended;
    }
    Ok(())
}

/// Begins to read or write with all ranks.
///
/// # Errors
/// An argument is wrong that is the same on all ranks.
pub(crate) fn all_later(file: handle::File, (kind, start): (Kind, Start), buffer: Buffer) -> Result<Request> {
    let file = share(file)?;
    check_together(&file, kind, start)?;
    Ok(begun(&file, (kind, start), buffer)?.into_request())
}

/// An access of all ranks that goes on.
pub(super) fn begun(file: &Arc<File>, (kind, start): (Kind, Start), buffer: Buffer) -> Result<State> {
    let (run, of) = (together(file, (kind, start), buffer), Of(file.clone()));
    let work = Async::new(async move { run.await.map_err(|error| error.on(Some(of))) });
    Ok(State::Task(task::start(world()?, Box::new(work)), file.on.clone()))
}
