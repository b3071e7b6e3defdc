//! Processes of other jobs. This process knows each by a number of its own, behind those of
//! `MPI_COMM_WORLD`; what processes tell each other of such a process is its *identity*, which is the same
//! everywhere: its job, and its rank there.
//!
//! `meet` makes an intercommunicator of two groups whose roots meet at a port, `exchange` is the job that
//! the rails between them believe to be in.

pub(super) mod exchange;
pub(crate) mod meet;
pub(crate) mod port;

use super::Members;
use crate::error::{Class, Result};
use crate::world::World;
use newmadeleine::Bridge;
use newmadeleine::launch::port::digest;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// A process: a name of its job, and its rank there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    job: [u8; 16],
    rank: u32,
}

/// Bytes of an identity.
pub(super) const IDENTITY: usize = 20;

impl Identity {
    pub(super) fn to_bytes(self) -> [u8; IDENTITY] {
        let mut bytes = [0; IDENTITY];
        bytes[..16].copy_from_slice(&self.job);
        bytes[16..].copy_from_slice(&self.rank.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; IDENTITY]) -> Identity {
        let (job, rank) = bytes.split_at(16);
        let rank = u32::from_le_bytes(rank.try_into().expect("four bytes"));
        Identity { job: job.try_into().expect("sixteen bytes"), rank }
    }
}

/// Processes of other jobs, and the rails to them.
struct Known {
    peers: BTreeMap<Identity, u32>,
    identities: BTreeMap<u32, Identity>,
    bridges: Vec<Arc<Bridge>>,
}

static KNOWN: Mutex<Known> =
    Mutex::new(Known { peers: BTreeMap::new(), identities: BTreeMap::new(), bridges: Vec::new() });
/// There is or was a bridge.
static ANY: AtomicBool = AtomicBool::new(false);

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The name of our job for others.
fn own_job(world: &World) -> [u8; 16] {
    static OWN: OnceLock<[u8; 16]> = OnceLock::new();
    *OWN.get_or_init(|| {
        let secret = world.session().with_job(|job| job.secret()).unwrap_or_default();
        digest(&secret)
    })
}

/// The identity of a process.
pub(super) fn identity(world: &World, process: u32) -> Identity {
    if process < world.session().size() {
        return Identity { job: own_job(world), rank: process };
    }
    let unknown = Identity { job: [0; 16], rank: process };
    known().identities.get(&process).copied().unwrap_or(unknown)
}

/// The process of an identity; none if this process does not reach it.
pub(super) fn process(world: &World, identity: Identity) -> Option<u32> {
    if identity.job == own_job(world) {
        return Some(identity.rank);
    }
    known().peers.get(&identity).copied()
}

/// Members as bytes.
pub(super) fn encode_members(world: &World, members: &Members) -> Vec<u8> {
    members.processes().flat_map(|process| identity(world, process).to_bytes()).collect()
}

/// Members from bytes.
///
/// # Errors
/// This process does not reach one of them.
pub(super) fn decode_members(world: &World, bytes: &[u8]) -> Result<Members> {
    let (identities, _) = bytes.as_chunks::<IDENTITY>();
    let process = |bytes: &[u8; IDENTITY]| {
        let identity = Identity::from_bytes(bytes);
        process(world, identity).ok_or_else(|| {
            let rank = identity.rank;
            let text = format!(
                "rank {rank} of another job is in the remote group, and has no connection to this process"
            );
            Class::COMM.error(text)
        })
    };
    Ok(Members::new(identities.iter().map(process).collect::<Result<Vec<u32>>>()?))
}

/// Takes note of a bridge; `identities` are those of its processes.
fn learn(bridge: Bridge, identities: &[Identity]) {
    ANY.store(true, Ordering::Release);
    let mut known = known();
    for (&process, &identity) in bridge.processes.iter().zip(identities) {
        if bridge.fresh.contains(&process) {
            known.peers.insert(identity, process);
            known.identities.insert(process, identity);
        }
    }
    known.bridges.push(Arc::new(bridge));
}

/// The bridges that lead to members of a communicator, to be kept while it is there.
pub(super) fn bridges_to(members: &[&Members]) -> Vec<Arc<Bridge>> {
    if !ANY.load(Ordering::Acquire) {
        return Vec::new();
    }
    let is_member = |process: &u32| members.iter().any(|members| members.rank_of(*process).is_some());
    let leads = |bridge: &&Arc<Bridge>| bridge.fresh.iter().any(is_member);
    known().bridges.iter().filter(leads).cloned().collect()
}

/// Closes bridges that nothing uses.
pub(crate) fn close(world: &World, bridges: Vec<Arc<Bridge>>) {
    for bridge in bridges {
        {
            let mut known = known();
            known.bridges.retain(|each| !Arc::ptr_eq(each, &bridge));
            for process in &bridge.fresh {
                if let Some(identity) = known.identities.remove(process) {
                    known.peers.remove(&identity);
                }
            }
        }
        world.session().close_bridge(&bridge);
    }
}

/// The cache of each process, for those of our node: see [`newmadeleine::Session::caches`], or so many
/// processes in a row, unless it is zero. None if nothing is known of them.
pub(crate) fn caches(world: &World, members: &Members, each: u32) -> Option<Vec<u32>> {
    let (known, nodes, me) = (world.session().caches(), world.session().nodes(), world.session().rank());
    let told: Vec<(u32, u32)> = match each {
        0 => Vec::new(),
        _ => {
            let own = (0u32..).zip(nodes).filter(|(_, node)| Some(*node) == nodes.get(me as usize));
            own.zip(0..).map(|((process, _), place)| (process, place / each)).collect()
        }
    };
    let known = if each == 0 { known } else { &told };
    if known.is_empty() {
        return None;
    }
    let of = |process| known.binary_search_by_key(&process, |known| known.0).map_or(0, |at| known[at].1);
    Some(members.processes().map(of).collect())
}

/// The switch of each process's node; none unless those of all nodes are known, and where processes of
/// several jobs take part.
pub(crate) fn switches(world: &World, members: &Members) -> Option<Vec<u32>> {
    let (known, nodes) = (world.session().switches(), world.session().nodes());
    let of = |process: u32| {
        let node = nodes.get(process as usize)?;
        known.binary_search_by_key(node, |known| known.0).ok().map(|at| known[at].1)
    };
    members.processes().map(of).collect()
}

/// The node of each process as far as all that take part see it alike: processes of several jobs count as
/// processes of as many nodes.
pub(crate) fn nodes(world: &World, members: &Members) -> Vec<u32> {
    let (session, size) = (world.session(), world.session().size());
    match members.processes().all(|process| process < size) {
        true => members.processes().map(|process| session.nodes()[process as usize]).collect(),
        false => (0..members.len() as u32).collect(),
    }
}
