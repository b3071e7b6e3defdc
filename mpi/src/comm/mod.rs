//! Communicators: their processes, and the context that keeps their messages apart.

pub(crate) mod agree;
pub(crate) mod arrange;
pub(crate) mod by_type;
mod context;
pub(crate) mod create;
pub(crate) mod foreign;
pub(crate) mod inter;
mod members;
mod named;
mod party;
mod wishes;

pub(crate) use context::{FAULTS, FILES, FRAMES, JOINING};
pub(crate) use create::{gathered, party};
pub(crate) use members::Members;
pub(crate) use named::{Named, free, let_go};
pub(crate) use party::{Ends, Party, Way, decode, encode, failed, fill, lend, submit_blank, submit_data};

use crate::attribute::Attributes;
use crate::collective::Desk;
use crate::constant::{ANY_SOURCE, ANY_TAG, Comparison, PROC_NULL};
use crate::errhandler::{self, Handler};
use crate::error::{Class, Error, Result};
use crate::group::Group as Processes;
use crate::handle::{Comm, DYNAMIC};
use crate::health::{Health, revoked};
use crate::info::Infos;
use crate::point::Attached;
use crate::session::SessionObject;
use crate::shown;
use crate::table::Table;
use crate::topology::Topology;
use newmadeleine::engine::{Context, Envelope, PeerId, Source, Tag, TagMatch};
use newmadeleine::{Bridge, Hints};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use wishes::Wishes;

/// All communicators.
pub(crate) static COMMS: Table<Communicator> = Table::new(DYNAMIC);

/// Each communicator has two contexts: an even one for point-to-point messages, and the one that has this
/// bit for everything collective.
const COLLECTIVE: u32 = 1;

/// A communicator.
pub(crate) struct Communicator {
    /// Point-to-point; that of [`context::AWAITED`] while it is not agreed upon.
    context: AtomicU32,
    /// Our rank in the local group.
    rank: i32,
    local: Arc<Members>,
    /// The other group of an intercommunicator.
    remote: Option<Arc<Members>>,
    /// Collective operations that were begun: part of their tags.
    operations: AtomicU64,
    /// The same for those that do not block.
    background: AtomicU64,
    /// Agreements that were begun, likewise.
    agreements: AtomicU64,
    /// What collectives keep.
    desk: Desk,
    attributes: Attributes,
    topology: Option<Arc<Topology>>,
    /// For buffered sends.
    buffer: Attached,
    errhandler: Mutex<Arc<Handler>>,
    name: Mutex<String>,
    info: Infos,
    wishes: Wishes,
    /// The session that its group was made from, if it was.
    session: Option<Arc<SessionObject>>,
    /// Rails to members that belong to other jobs.
    bridges: Vec<Arc<Bridge>>,
    health: Health,
}

/// Where a message goes, in the engine's words.
pub(crate) type Target = (PeerId, Context, Tag);

/// Where a message comes from, in the engine's words.
pub(crate) type Origin = (Source, Context, TagMatch);

impl Communicator {
    /// A communicator in whose local group we are.
    pub(crate) fn new(number: u32, local: Arc<Members>, remote: Option<Arc<Members>>, me: u32) -> Self {
        let groups: Vec<&Members> = std::iter::once(&*local).chain(remote.as_deref()).collect();
        let bridges = foreign::bridges_to(&groups);
        Communicator {
            context: AtomicU32::new(number << COLLECTIVE.trailing_ones()),
            rank: local.rank_of(me).unwrap_or(PROC_NULL),
            local,
            remote,
            operations: AtomicU64::new(0),
            background: AtomicU64::new(0),
            agreements: AtomicU64::new(0),
            desk: Desk::default(),
            attributes: Attributes::default(),
            topology: None,
            buffer: Attached::none(),
            errhandler: Mutex::new(errhandler::fatal()),
            name: Mutex::default(),
            info: Infos::default(),
            wishes: Wishes::default(),
            session: None,
            bridges,
            health: Health::default(),
        }
    }

    /// Its failure state.
    #[inline]
    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// Rails to members that belong to other jobs.
    pub(crate) fn bridges(&self) -> &[Arc<Bridge>] {
        &self.bridges
    }

    /// Its number is agreed upon.
    fn set_number(&self, number: u32) {
        self.context.store(number << COLLECTIVE.trailing_ones(), Ordering::Relaxed);
    }

    /// The session that its group was made from, if it was.
    pub(crate) fn session(&self) -> Option<&Arc<SessionObject>> {
        self.session.as_ref()
    }

    pub(crate) fn set_session(&mut self, session: Option<&Arc<SessionObject>>) {
        self.session = session.cloned();
    }

    pub(crate) fn rank(&self) -> i32 {
        self.rank
    }

    pub(crate) fn local(&self) -> &Arc<Members> {
        &self.local
    }

    pub(crate) fn remote(&self) -> Option<&Arc<Members>> {
        self.remote.as_ref()
    }

    pub(crate) fn buffer(&self) -> &Attached {
        &self.buffer
    }

    pub(crate) fn info(&self) -> &Infos {
        &self.info
    }

    /// Takes over info keys, and what they wish for messages.
    ///
    /// # Errors
    /// A key or a value of this library's is unknown.
    pub(crate) fn inform(&self, infos: &Infos) -> Result<()> {
        self.wishes.take(infos)?;
        self.info.merge(infos);
        Ok(())
    }

    /// The hints of a message, with what the program wishes for all messages of the communicator.
    #[inline(always)]
    pub(crate) fn hints(&self, hints: Hints) -> Hints {
        self.wishes.of(hints)
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub(crate) fn topology(&self) -> Option<&Arc<Topology>> {
        self.topology.as_ref()
    }

    fn set_topology(&mut self, topology: Option<Arc<Topology>>) {
        self.topology = topology;
    }

    pub(crate) fn errhandler(&self) -> Arc<Handler> {
        self.errhandler.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    pub(crate) fn set_errhandler(&self, handler: Arc<Handler>) {
        *self.errhandler.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = handler;
    }

    pub(crate) fn name(&self) -> MutexGuard<'_, String> {
        self.name.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whom ranks of point-to-point messages name.
    #[inline]
    pub(crate) fn peers(&self) -> &Members {
        self.remote.as_ref().unwrap_or(&self.local)
    }

    /// Context of point-to-point messages.
    #[inline]
    pub(crate) fn context(&self) -> Context {
        Context(self.context.load(Ordering::Relaxed))
    }

    /// Context of everything collective.
    #[inline]
    pub(crate) fn collective(&self) -> Context {
        Context(self.context.load(Ordering::Relaxed) | COLLECTIVE)
    }

    /// The number of a collective operation that begins: the same in all processes, which begin them in the
    /// same order. Even, below 2^63.
    #[inline]
    pub(crate) fn next_operation(&self) -> u64 {
        self.operations.fetch_add(1, Ordering::Relaxed) << 1
    }

    /// The same for those that do not block. They are counted apart from those that do: programs that mix
    /// both in an order of their own are wrong by the standard, but run on other libraries (mpi4py's tests
    /// do).
    #[inline]
    pub(crate) fn next_in_background(&self) -> u64 {
        self.background.fetch_add(1, Ordering::Relaxed) << 1 | 1
    }

    fn next_agreement(&self) -> u64 {
        self.agreements.fetch_add(1, Ordering::Relaxed)
    }

    /// Where a message to a rank goes; none: to no process.
    #[inline]
    pub(crate) fn target(&self, dest: i32, tag: i32) -> Result<Option<Target>> {
        if tag < 0 {
            return Err(bad_tag(tag));
        }
        match self.one_target(dest, tag) {
            Some(target) => Ok(Some(target)),
            None if self.health.is_revoked() => Err(revoked()),
            None if dest == PROC_NULL => Ok(None),
            None => Err(self.bad_rank(dest)),
        }
    }

    /// As [`Communicator::target`], if nothing is wrong, and it is a process.
    #[inline(always)]
    pub(crate) fn one_target(&self, dest: i32, tag: i32) -> Option<Target> {
        let peer = self.peers().world(dest).filter(|_| tag | self.health.sign() >= 0)?;
        Some((PeerId(peer), self.context(), Tag(tag as u64)))
    }

    /// As [`Communicator::origin`], if that is one process and one tag.
    #[inline(always)]
    pub(crate) fn one_origin(&self, source: i32, tag: i32) -> Option<Origin> {
        let peer = self.peers().world(source).filter(|_| tag >= 0)?;
        Some((Source::Peer(PeerId(peer)), self.context(), TagMatch::Exact(Tag(tag as u64))))
    }

    /// From where a message comes; none: from no process.
    #[inline]
    pub(crate) fn origin(&self, source: i32, tag: i32) -> Result<Option<Origin>> {
        let tag = match tag {
            0.. => TagMatch::Exact(Tag(tag as u64)),
            ANY_TAG => TagMatch::Any,
            _ => return Err(bad_tag(tag)),
        };
        let source = match self.peers().world(source) {
            Some(peer) => Source::Peer(PeerId(peer)),
            None if self.health.is_revoked() => return Err(revoked()),
            None if source == ANY_SOURCE => Source::Any,
            None if source == PROC_NULL => return Ok(None),
            None => return Err(self.bad_rank(source)),
        };
        Ok(Some((source, self.context(), tag)))
    }

    /// The rank of a message's sender.
    #[inline]
    pub(crate) fn sender(&self, envelope: &Envelope) -> i32 {
        self.peers().rank_of(envelope.peer.0).unwrap_or(ANY_SOURCE)
    }

    /// How two communicators compare.
    pub(crate) fn compare(&self, other: &Communicator) -> Comparison {
        if std::ptr::eq(self, other) {
            return Comparison::Ident;
        }
        let group = |members: &Arc<Members>| Processes::of(members.clone());
        let remote = match (&self.remote, &other.remote) {
            (None, None) => Comparison::Ident,
            (Some(mine), Some(theirs)) => group(mine).compare(&group(theirs)),
            _ => return Comparison::Unequal,
        };
        match (group(&self.local).compare(&group(&other.local)), remote) {
            (Comparison::Unequal, _) | (_, Comparison::Unequal) => Comparison::Unequal,
            (Comparison::Similar, _) | (_, Comparison::Similar) => Comparison::Similar,
            _ => Comparison::Congruent,
        }
    }

    #[cold]
    fn bad_rank(&self, rank: i32) -> Error {
        let last = self.peers().len() - 1;
        Class::RANK
            .error(format!("rank {} is not in the communicator (ranks 0 to {last})", shown::rank(rank)))
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        context::release(*self.context.get_mut() >> COLLECTIVE.trailing_ones());
    }
}

#[cold]
fn bad_tag(tag: i32) -> Error {
    Class::TAG.error(format!("tag {} is out of range (0 to {})", shown::tag(tag), i32::MAX))
}

/// The communicator of a handle.
#[inline]
pub(crate) fn lookup(comm: Comm) -> Result<&'static Communicator> {
    match COMMS.get(comm.0) {
        Some(found) => Ok(found),
        None => Err(no_comm(comm)),
    }
}

/// The communicator of a handle, to keep.
#[inline]
pub(crate) fn share(comm: Comm) -> Result<Arc<Communicator>> {
    COMMS.share(comm.0).ok_or_else(|| no_comm(comm))
}

#[cold]
fn no_comm(comm: Comm) -> Error {
    if let Err(early) = crate::world::world() {
        return early;
    }
    Class::COMM.error(match comm {
        Comm::NULL => "the communicator is MPI_COMM_NULL".to_string(),
        Comm::WORLD | Comm::SELF => "the predefined communicators are there between MPI_Init and \
            MPI_Finalize: with sessions, make one from a group"
            .to_string(),
        Comm(index) => format!("there is no communicator {index}: it never was, or is freed"),
    })
}
