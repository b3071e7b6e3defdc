//! Windows: memory that other ranks access without a call of the process whose memory it is (MPI 5.0, chapter
//! 12).
//!
//! Who accesses what, and how, is settled when a window is made ([`create`]). Memory that the ranks of a node
//! have in common is accessed directly; memory of the program on the same node, where the system permits it,
//! by one copy from process to process; everything else by the protocol of `nmad-rma`, whose frames travel as
//! messages in a context of all windows, and their data in one of the window's own. So the engine gathers,
//! splits and repeats them like all messages, and knows nothing of windows.
//!
//! The origin's side is [`plan`] (how each access travels), [`operation`] (puts, gets, accumulates and their
//! like), [`direct`] (those to memory that it sees), [`outgoing`] (how the rest leaves and ends) and the
//! epochs in which that is allowed ([`epoch`], [`fence`], [`passive`], [`active`]). Words that network
//! adapters change as well are in [`word`]. The target's side is [`service`], which the node runs after each
//! look at the rails, in whichever thread looks.

mod active;
mod combine;
pub(crate) mod create;
mod direct;
mod dynamic;
mod epoch;
mod fence;
mod locks;
#[allow(unsafe_code)]
mod memory;
pub(crate) mod operation;
mod outgoing;
mod passive;
mod peers;
mod places;
mod plan;
mod row;
mod service;
mod settings;
mod wait;
mod word;

use crate::attribute::Attributes;
use crate::comm::Named;
use crate::constant::PROC_NULL;
use crate::errhandler::Handler;
use crate::error::{Class, Error, Result};
use crate::handle::{DYNAMIC, Type, Win};
use crate::info::Infos;
use crate::shown;
use crate::table::Table;
pub(crate) use create::retire;
pub(crate) use fence::mode;

use dynamic::Attached;
use epoch::Epoch;
use locks::{Locks, Words};
use newmadeleine::engine::Exposure;
use nmad_rma::{self as rma, Base, Origin};
use peers::{Marks, Peer, Peers, Way};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard};

/// All windows.
pub(crate) static WINDOWS: Table<Window> = Table::new(DYNAMIC);

/// A buffer at the origin: address, count, type.
pub(crate) type Buffer = (*const c_void, i64, Type);
/// Memory at the target: rank, displacement, count, type.
pub(crate) type Target = (i32, i64, i64, Type);

/// How a window was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Flavor {
    /// Of the program's memory.
    Create = 311,
    /// Of memory that MPI allocated.
    Allocate = 312,
    /// Memory is attached later.
    Dynamic = 313,
    /// Of memory that all ranks load from and store to.
    Shared = 314,
}

/// Numbers that attributes point to.
struct Predefined {
    size: AtomicI64,
    unit: AtomicI32,
    flavor: AtomicI32,
    model: AtomicI32,
}

/// A window.
pub(crate) struct Window {
    flavor: Flavor,
    /// A communicator of its own, of which the program knows nothing.
    on: Named,
    peers: Peers,
    /// By rank: something was asked of it with frames since the last flush.
    asked: Marks,
    /// Our memory.
    base: Base,
    size: u64,
    words: Words,
    epoch: Epoch,
    origin: Mutex<Origin>,
    /// Held by the thread that waits for messages under way.
    flushing: Mutex<()>,
    serving: Mutex<rma::Target>,
    attached: Mutex<Attached>,
    /// How the network reaches our memory.
    exposure: Exposure,
    /// Network adapters may change words of the memory of some ranks.
    adapters_change: bool,
    /// Memory of ours that MPI allocated for this window.
    allocated: Option<Base>,
    attributes: Attributes,
    predefined: Predefined,
    errhandler: Mutex<Arc<Handler>>,
    name: Mutex<String>,
    info: Infos,
    handle: AtomicU32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Window {
    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub(crate) fn info(&self) -> &Infos {
        &self.info
    }

    pub(crate) fn name(&self) -> MutexGuard<'_, String> {
        lock(&self.name)
    }

    pub(crate) fn errhandler(&self) -> Arc<Handler> {
        lock(&self.errhandler).clone()
    }

    pub(crate) fn set_errhandler(&self, handler: Arc<Handler>) {
        *lock(&self.errhandler) = handler;
    }

    fn rank(&self) -> i32 {
        self.on.comm.rank()
    }

    fn peer(&self, rank: i32) -> &Peer {
        self.peers.of(rank)
    }

    /// The process of a rank.
    fn process(&self, rank: i32) -> u32 {
        self.on.comm.local().world(rank).unwrap_or(u32::MAX)
    }

    /// The rank of an access; none: it goes to no process.
    #[inline]
    fn target(&self, rank: i32) -> Result<Option<&Peer>> {
        match self.peers.get(rank) {
            Some(peer) => Ok(Some(peer)),
            None if rank == PROC_NULL => Ok(None),
            None => Err(self.no_rank(rank)),
        }
    }

    #[cold]
    fn no_rank(&self, rank: i32) -> Error {
        let last = self.peers.len() - 1;
        self.error(Class::RANK, format_args!("rank {} is not in it (ranks 0 to {last})", shown::rank(rank)))
    }

    /// The locks of a rank of our node.
    #[inline]
    fn locks(&self, peer: &Peer) -> Option<Locks<'_>> {
        peer.locks.map(|place| self.words.locks(place))
    }

    /// Our own locks.
    fn own_locks(&self) -> Locks<'_> {
        self.words.locks(self.peer(self.rank()).locks.unwrap_or(0))
    }

    /// An error that names the window.
    #[cold]
    fn error(&self, class: Class, text: std::fmt::Arguments<'_>) -> Error {
        let name = self.name();
        let number = self.handle.load(std::sync::atomic::Ordering::Relaxed);
        match name.is_empty() {
            true => class.error(format!("window {number}: {text}")),
            false => class.error(format!("window {number} '{name}': {text}")),
        }
    }

    /// `MPI_WIN_BASE`
    pub(crate) fn base(&self) -> *mut c_void {
        self.base.pointer()
    }

    /// Where the number of a predefined attribute is: size, unit of displacements, flavor, model.
    pub(crate) fn numbers(&self) -> [usize; 4] {
        let Predefined { size, unit, flavor, model } = &self.predefined;
        [
            std::ptr::from_ref(size).expose_provenance(),
            std::ptr::from_ref(unit).expose_provenance(),
            std::ptr::from_ref(flavor).expose_provenance(),
            std::ptr::from_ref(model).expose_provenance(),
        ]
    }
}

/// The window of a handle.
#[inline]
pub(crate) fn lookup(win: Win) -> Result<&'static Window> {
    match WINDOWS.get(win.0) {
        Some(found) => Ok(found),
        None => Err(no_window(win)),
    }
}

/// The window of a handle, to keep.
pub(crate) fn share(win: Win) -> Result<Arc<Window>> {
    WINDOWS.share(win.0).ok_or_else(|| no_window(win))
}

#[cold]
fn no_window(win: Win) -> Error {
    if let Err(early) = crate::world::world() {
        return early;
    }
    Class::WIN.error(match win {
        Win::NULL => "the window is MPI_WIN_NULL".to_string(),
        Win(index) => format!("there is no window {index}: it never was, or is freed"),
    })
}
