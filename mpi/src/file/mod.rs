//! Files (MPI 5.0, chapter 14): views, file pointers, and accesses of one process or of all.
//!
//! The protocol crate `nmad-file` knows which bytes of a file an access touches, who owns them, and how the
//! system is called; this module maps MPI onto it. A file is opened and closed in [`open`]. Where data lie
//! is said by its [`view`], in the [`representation`] of the view; file pointers are in [`pointer`]. Every
//! access is prepared in [`transfer`] and begins in [`call`]. Who calls the file system for which region, and
//! why, is the [`layout`]. An access of one rank is a system call or, by owners, messages ([`asking`]) that
//! the owners serve ([`service`]). What all ranks do together is in [`collective`], whose exchange with the
//! owners of regions is [`exchange`]; [`whole`] has the collective calls that move no data. No lock of the
//! file system is taken: in atomic mode ([`atomic`]) one rank owns the file.

mod amode;
mod asking;
mod atomic;
mod background;
pub(crate) mod call;
mod collective;
mod exchange;
mod layout;
mod lost;
mod near;
mod of;
pub(crate) mod open;
mod page;
pub(crate) mod pointer;
pub(crate) mod representation;
mod route;
mod service;
pub(crate) mod split;
mod told;
mod transfer;
pub(crate) mod view;
pub(crate) mod whole;
mod wire;

pub(crate) use amode::Amode;
pub(crate) use near::release;
pub(crate) use transfer::Buffer;

use crate::comm::Named;
use crate::errhandler::{self, Handler};
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::handle::{self, DYNAMIC};
use crate::info::Infos;
use crate::table::Table;
use crate::task::block_on;
use layout::Mode;
pub(crate) use nmad_file::Kind;
use nmad_file::asking::{Asking, Owners};
use nmad_file::hints::Switch;
use nmad_file::{Cause, Desk, Disk, Fault, Hints, Layout, Near};
use pointer::{Shared, Word};
use split::Split;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use told::Sums;
use view::View;

/// All files.
static FILES: Table<File> = Table::new(DYNAMIC);

/// The handler of `MPI_FILE_NULL`, which files that are opened begin with.
static INITIAL: LazyLock<Mutex<Arc<Handler>>> = LazyLock::new(|| Mutex::new(errhandler::returning()));

/// A file that is open.
pub(crate) struct File {
    /// A communicator of its own, of which the program knows nothing.
    on: Named,
    disk: Disk,
    amode: Amode,
    view: Mutex<Arc<View>>,
    /// The individual file pointer, in elementary types of the view.
    position: Mutex<i64>,
    shared: Shared,
    layout: Mutex<Arc<Layout>>,
    /// The owner of the regions of this rank. A thread with the node's lock does not wait for it.
    desk: Desk,
    /// Short records of this rank.
    near: Mutex<Near>,
    /// Short records may be there.
    keeps: AtomicBool,
    /// What accesses of one rank look at of the layout ([`layout`]).
    mode: Mode,
    /// This process has the file open more than once.
    is_twice: AtomicBool,
    /// Not 0: accesses of one rank go by owners, until the next hand-over. None: they never change.
    word: Option<Word>,
    /// What is known of the owners of all ranks.
    owners: Owners,
    split: Mutex<Option<Split>>,
    hints: Mutex<Hints>,
    /// By rank: the number of its node.
    nodes: Vec<u32>,
    errhandler: Mutex<Arc<Handler>>,
    /// Accesses of this rank, if the user wants to know.
    sums: Mutex<Sums>,
    /// Collective accesses that were begun: their messages are told apart by it.
    accesses: AtomicU64,
    handle: AtomicU32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl File {
    pub(crate) fn amode(&self) -> Amode {
        self.amode
    }

    /// The ranks that opened it.
    pub(crate) fn group(&self) -> Group {
        Group::of(self.on.comm.local().clone())
    }

    /// The hints that are in force.
    pub(crate) fn info(&self) -> Infos {
        let told = Infos::default();
        let way = self.way();
        let entries = lock(&self.hints).told(self.disk.system().block, &self.nodes, way, self.uncached());
        entries.iter().for_each(|(key, value)| told.set(key, value));
        told
    }

    /// How accesses of one rank go, as the hint says it.
    fn way(&self) -> &'static str {
        let may_change = self.word.is_some() && lock(&self.hints).alone() == Switch::Automatic;
        match (self.layout().by_owners, may_change) {
            (true, _) => "owners",
            (false, true) => "automatic",
            (false, false) => "direct",
        }
    }

    pub(crate) fn errhandler(&self) -> Arc<Handler> {
        lock(&self.errhandler).clone()
    }

    fn view(&self) -> Arc<View> {
        lock(&self.view).clone()
    }

    fn rank(&self) -> i32 {
        self.on.comm.rank()
    }

    fn ranks(&self) -> i32 {
        self.on.comm.local().len()
    }

    fn handle(&self) -> handle::File {
        handle::File(self.handle.load(std::sync::atomic::Ordering::Relaxed))
    }

    /// Whether its ranks are on more than one node.
    fn is_on_several_nodes(&self) -> bool {
        self.nodes.iter().any(|node| *node != self.nodes[0])
    }

    /// Whether ranks see each other's writes at once.
    fn is_coherent(&self) -> bool {
        self.disk.system().is_coherent(self.is_on_several_nodes())
    }

    /// Its length in bytes.
    pub(crate) fn size(self: &Arc<File>) -> Result<i64> {
        self.settle();
        Ok(self.end()? as i64)
    }

    /// Where it ends, without what waits in the memory of this rank.
    fn end(self: &Arc<File>) -> Result<u64> {
        let file = self.clone();
        match self.goes_by_owners() {
            true => block_on(async move { nmad_file::asking::end(&file).await }),
            false => self.disk.size().map_err(error_of),
        }
    }

    /// An error that names the file.
    #[cold]
    fn error(&self, class: Class, text: impl fmt::Display) -> Error {
        class.error(format!("file {}: {text}", self.disk.path().display()))
    }
}

/// The error of an access that the system has refused.
#[cold]
fn error_of(fault: Fault) -> Error {
    let class = match fault.cause {
        Cause::NoSuchFile => Class::NO_SUCH_FILE,
        Cause::Exists => Class::FILE_EXISTS,
        Cause::Access => Class::ACCESS,
        Cause::ReadOnly => Class::READ_ONLY,
        Cause::NoSpace => Class::NO_SPACE,
        Cause::Quota => Class::QUOTA,
        Cause::BadFile => Class::BAD_FILE,
        Cause::InUse => Class::FILE_IN_USE,
        Cause::Other => Class::IO,
    };
    class.error(fault.text)
}

/// An error of an access as a cache keeps it.
#[cold]
fn fault_of(error: Error) -> Fault {
    let cause = match error.class() {
        Class::NO_SUCH_FILE => Cause::NoSuchFile,
        Class::FILE_EXISTS => Cause::Exists,
        Class::ACCESS => Cause::Access,
        Class::READ_ONLY => Cause::ReadOnly,
        Class::NO_SPACE => Cause::NoSpace,
        Class::QUOTA => Cause::Quota,
        Class::BAD_FILE => Cause::BadFile,
        Class::FILE_IN_USE => Cause::InUse,
        _ => Cause::Other,
    };
    Fault::worded(cause, error.text())
}

/// The file of a handle.
pub(crate) fn share(file: handle::File) -> Result<Arc<File>> {
    FILES.share(file.0).ok_or_else(|| no_file(file))
}

#[cold]
fn no_file(file: handle::File) -> Error {
    if let Err(early) = crate::world::world() {
        return early;
    }
    Class::FILE.error(match file {
        handle::File::NULL => "the file is MPI_FILE_NULL".to_string(),
        handle::File(index) => format!("there is no file {index}: it never was, or is closed"),
    })
}

/// The error handler of a file, or of those that are not open yet.
pub(crate) fn errhandler_of(file: handle::File) -> Arc<Handler> {
    FILES.share(file.0).map_or_else(|| lock(&INITIAL).clone(), |file| file.errhandler())
}

/// Sets the error handler of a file, or of those that are opened from now on.
///
/// # Errors
/// There is no such file.
pub(crate) fn set_errhandler(file: handle::File, handler: Arc<Handler>) -> Result<()> {
    if file.is_null() {
        *lock(&INITIAL) = handler;
        return Ok(());
    }
    *lock(&share(file)?.errhandler) = handler;
    Ok(())
}
