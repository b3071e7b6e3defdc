//! Intercommunicators: two groups that talk to each other.

use super::create::{LIBRARY, insert, party, text_tag};
use super::party::{Other, Party, decode, encode};
use super::{Communicator, Members, agree, bad_tag, foreign, lookup, share};
use crate::error::{Class, Error, Result};
use crate::group::Group as Processes;
use crate::handle::Comm;
use crate::shown;
use crate::task::block_on;
use crate::world::world;
use std::sync::Arc;

/// Tags of agreements between leaders on the communicator that they have in common.
const LEADERS: u64 = 1 << 63 | 1 << 61;

/// The processes of a group for one agreement, the leader first.
pub(super) fn led_by(leader: i32, members: &Members, rank: i32) -> Party {
    let size = members.len();
    let order = (0..size).filter_map(|place| members.world((place + leader) % size));
    let rank = (rank - leader).rem_euclid(size);
    let context = newmadeleine::engine::Context(0);
    Party { members: Arc::new(Members::new(order)), rank, context, tag: 0, other: None }
}

/// From two communicators whose leaders know each other in a third.
pub(crate) fn create(
    (local, local_leader): (Comm, i32),
    (peer, remote_leader): (Comm, i32),
    tag: i32,
) -> Result<Comm> {
    let old = share(local)?;
    if old.remote().is_some() {
        return Err(Class::COMM.error("the local communicator is an intercommunicator"));
    }
    if old.local().world(local_leader).is_none() {
        return Err(no_leader("local", local_leader));
    }
    if tag < 0 {
        return Err(bad_tag(tag));
    }
    let mut party = Party {
        context: old.collective(),
        tag: super::create::party(&old).tag,
        ..led_by(local_leader, old.local(), old.rank())
    };
    if party.rank == 0 {
        let common = lookup(peer)?;
        let process = common.peers().world(remote_leader);
        let process = process.ok_or_else(|| no_leader("remote", remote_leader))?;
        party.other = Some(Other { process, context: common.collective(), tag: LEADERS | tag as u64 });
    }
    let new = join(&party, old.local())?;
    new.set_errhandler(old.errhandler());
    insert(new)
}

/// From two groups and a text.
pub(crate) fn create_from_groups(
    (local, local_leader): (&Processes, i32),
    (remote, remote_leader): (&Processes, i32),
    text: &str,
) -> Result<Communicator> {
    let me = world()?.session().rank();
    let outside = || Class::GROUP.error("the calling process is not in the local group");
    let rank = local.rank_of(me).ok_or_else(outside)?;
    if local.members().world(local_leader).is_none() {
        return Err(no_leader("local", local_leader));
    }
    let process = remote.members().world(remote_leader);
    let process = process.ok_or_else(|| no_leader("remote", remote_leader))?;
    let tag = text_tag(text);
    let party = Party {
        context: LIBRARY,
        tag,
        other: Some(Other { process, context: LIBRARY, tag: tag ^ 1 }),
        ..led_by(local_leader, local.members(), rank)
    };
    let mut new = join(&party, local.members())?;
    new.set_session(local.session());
    Ok(new)
}

fn join(party: &Party, local: &Arc<Members>) -> Result<Communicator> {
    let world = world()?;
    let mine = foreign::encode_members(world, local);
    let (theirs, number) =
        block_on(async { Ok((party.exchange(mine).await?, agree::number(party).await?)) })?;
    let remote = foreign::decode_members(world, &theirs).inspect_err(|_| super::context::release(number))?;
    if let Some(process) = local.processes().find(|&process| remote.rank_of(process).is_some()) {
        super::context::release(number);
        return Err(Class::COMM.error(format!("process {process} is in both groups: they must be disjoint")));
    }
    Ok(Communicator::new(number, local.clone(), Some(Arc::new(remote)), world.session().rank()))
}

/// One group of both; the one that is `high` comes last.
pub(crate) fn merge(handle: Comm, high: bool) -> Result<Comm> {
    let old = share(handle)?;
    let Some(remote) = old.remote() else {
        return Err(Class::COMM.error("the communicator is no intercommunicator: there is nothing to merge"));
    };
    let (world, party) = (world()?, party(&old));
    let (theirs, number) = block_on(async {
        let theirs = party.exchange(encode(&[i64::from(high)])).await?;
        Ok((decode(&theirs)[0] != 0, agree::number(&party).await?))
    })?;
    let ours = old.local();
    let leader = |members: &Members| members.world(0).map(|process| foreign::identity(world, process));
    let first = if high == theirs { leader(ours) < leader(remote) } else { theirs };
    let (low, high) = if first { (ours, remote) } else { (remote, ours) };
    let all = Members::new(low.processes().chain(high.processes()));
    let new = Communicator::new(number, Arc::new(all), None, world.session().rank());
    new.set_errhandler(old.errhandler());
    insert(new)
}

#[cold]
fn no_leader(which: &str, rank: i32) -> Error {
    Class::RANK.error(format!("the {which} leader {} is no rank of its group", shown::rank(rank)))
}
