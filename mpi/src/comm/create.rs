//! Making communicators from communicators and groups.

use super::party::{Other, Party, decode, encode};
use super::{COMMS, Communicator, Members, Named, agree, bad_tag, context, lookup, share};
use crate::constant::UNDEFINED;
use crate::error::{Class, Result};
use crate::fault;
use crate::group::Group as Processes;
use crate::handle::{Comm, Request};
use crate::info::Infos;
use crate::request::State;
use crate::status::Status;
use crate::task::{self, Async, block_on};
use crate::topology::Topology;
use crate::world::world;
use newmadeleine::engine::Context;
use newmadeleine::engine::profile::hash::fnv1a;
use nmad_mpi_base::colors::Colors;
use std::sync::Arc;

/// Tags of agreements; those of collective operations are below.
const AGREE: u64 = 1 << 63;
/// Of those among some processes of a communicator.
const GROUP: u64 = AGREE | 1 << 62;

/// The processes of a communicator, for one agreement.
pub(crate) fn party(comm: &Communicator) -> Party {
    let (context, tag) = (comm.collective(), AGREE | comm.next_agreement());
    let leader = comm.remote().and_then(|remote| remote.world(0));
    let other = leader.map(|process| Other { process, context, tag });
    Party { members: comm.local().clone(), rank: comm.rank(), context, tag, other }
}

/// The numbers of all processes, in the order of ranks; all give as many.
pub(crate) fn gathered(comm: &Communicator, mine: &[i64]) -> Result<Vec<i64>> {
    block_on(party(comm).gather(encode(mine))).map(|all| decode(&all))
}

/// A communicator that was agreed upon, in the table.
///
/// # Errors
/// MPI is not initialized.
pub(crate) fn insert(comm: Communicator) -> Result<Comm> {
    let handle = Comm(COMMS.reserve());
    insert_as(handle, Arc::new(comm))?;
    Ok(handle)
}

/// Puts a communicator that was agreed upon into the table, under a handle that is reserved or predefined.
///
/// # Errors
/// MPI is not initialized.
pub(crate) fn insert_as(handle: Comm, comm: Arc<Communicator>) -> Result<()> {
    COMMS.set(handle.0, comm.clone());
    fault::watch(&comm)
}

/// A communicator of those processes of another one that `is_left` names.
pub(crate) fn survivor(
    old: &Communicator,
    number: u32,
    is_left: impl Fn(u32) -> bool,
) -> Result<Communicator> {
    let part =
        |all: &Arc<Members>| Arc::new(Members::new(all.processes().filter(|process| is_left(*process))));
    heir(old, number, part(old.local()), old.remote().map(part))
}

/// A copy of a communicator that has no number yet, for the handle of one that is being created from it.
pub(crate) fn awaiting(old: &Communicator) -> Result<Communicator> {
    heir(old, context::AWAITED, old.local().clone(), old.remote().cloned())
}

/// A new communicator that inherits what all kinds of creation inherit.
fn heir(
    old: &Communicator,
    number: u32,
    local: Arc<Members>,
    remote: Option<Arc<Members>>,
) -> Result<Communicator> {
    let mut new = Communicator::new(number, local, remote, world()?.session().rank());
    new.set_errhandler(old.errhandler());
    new.set_session(old.session());
    Ok(new)
}

/// A duplicate in the table, with everything but its number. Hints are not passed on (MPI 5.0, section
/// 7.4.2), it has those of `info`.
fn duplicate(
    handle: Comm,
    old: &Communicator,
    info: Option<Arc<Infos>>,
) -> Result<(Comm, Arc<Communicator>)> {
    let mut new = awaiting(old)?;
    info.map_or(Ok(()), |info| new.inform(&info))?;
    new.set_topology(old.topology().cloned());
    let new = Arc::new(new);
    let copy = Comm(COMMS.insert(new.clone()));
    let copied = old.attributes().copy(handle.0, (new.attributes(), copy.0));
    copied.inspect_err(|_| drop(COMMS.remove(copy.0)))?;
    Ok((copy, new))
}

/// Duplicates.
pub(crate) fn dup(handle: Comm, info: Option<Arc<Infos>>) -> Result<Comm> {
    let old = share(handle)?;
    let (copy, new) = duplicate(handle, &old, info)?;
    let number = block_on(agree::number(&party(&old))).inspect_err(|_| drop(COMMS.remove(copy.0)))?;
    new.set_number(number);
    fault::watch(&new)?;
    Ok(copy)
}

/// Duplicates in steps; the new handle is usable when the request has ended.
pub(crate) fn idup(handle: Comm, info: Option<Arc<Infos>>) -> Result<(Comm, Request)> {
    let named = Named::of(handle)?;
    let old = &named.comm;
    // Programs may already set its error handler, say, while the number is agreed upon.
    let (copy, new) = duplicate(handle, old, info)?;
    let party = party(old);
    let work = Async::served(async move {
        new.set_number(agree::number(&party).await?);
        fault::watch(&new)?;
        Ok(Status::EMPTY)
    });
    Ok((copy, State::Task(task::start(world()?, Box::new(work)), named).into_request()))
}

/// Splits by color (none: in no part) and orders by key. `topology` is asked for that of our part.
pub(crate) fn split(
    handle: Comm,
    color: Option<i32>,
    key: i32,
    topology: impl FnOnce(&Members) -> Option<Arc<Topology>>,
) -> Result<Comm> {
    let old = share(handle)?;
    let party = party(&old);
    let mine = color.unwrap_or(UNDEFINED);
    let (all, others, number) = block_on(async {
        let all = party.colors(mine, key).await?;
        let others = if old.remote().is_some() { party.exchange(all.clone()).await? } else { Vec::new() };
        Ok((all, others, agree::number(&party).await?))
    })?;
    let local = part(old.local(), &all, mine)?;
    let remote = old.remote().map(|remote| part(remote, &others, mine)).transpose()?;
    if color.is_none() || remote.as_ref().is_some_and(|remote| remote.len() == 0) {
        context::release(number);
        return Ok(Comm::NULL);
    }
    let topology = topology(&local);
    let mut new = heir(&old, number, Arc::new(local), remote.map(Arc::new))?;
    new.set_topology(topology);
    insert(new)
}

/// The members of one color, ordered by key and then by rank.
fn part(members: &Members, written: &[u8], color: i32) -> Result<Members> {
    let mut colors = Colors::default();
    if !colors.add(written, members.len() as u32) {
        return Err(Class::INTERN.error("the colors of the other ranks arrived malformed"));
    }
    Ok(Members::new(colors.ranks(color).into_iter().filter_map(|rank| members.world(rank as i32))))
}

/// Of the same processes, without attributes and hints; and the numbers that all of them give, in the order
/// of ranks.
pub(crate) fn same(handle: Comm, mine: &[i64]) -> Result<(Comm, Vec<i64>)> {
    let old = share(handle)?;
    let party = party(&old);
    let (number, all) = block_on(agree::number_with(&party, mine))?;
    Ok((heir(&old, number, old.local().clone(), None).and_then(insert)?, all))
}

/// By a group of the communicator's own processes; all of its processes call.
pub(crate) fn create(handle: Comm, group: &Processes) -> Result<Comm> {
    let old = share(handle)?;
    let outside = group.processes().find(|&process| old.local().rank_of(process).is_none());
    if let Some(process) = outside {
        let text = format!("process {process} of the group is not in the communicator");
        return Err(Class::GROUP.error(text));
    }
    let party = party(&old);
    // Processes have numbers of their own in each job, and the same rank everywhere.
    let rank = |process: u32| old.local().rank_of(process).map(i64::from);
    let mine: Vec<i64> = group.processes().filter_map(rank).collect();
    let (others, number) = block_on(async {
        let others = if old.remote().is_some() { Some(party.exchange(encode(&mine)).await?) } else { None };
        Ok((others, agree::number(&party).await?))
    })?;
    let process = |rank: i64| old.remote().and_then(|remote| remote.world(rank as i32));
    let remote = others.map(|bytes| Members::new(decode(&bytes).into_iter().filter_map(process)));
    let is_member = group.rank_of(world()?.session().rank()).is_some();
    if !is_member || remote.as_ref().is_some_and(|remote| remote.len() == 0) {
        context::release(number);
        return Ok(Comm::NULL);
    }
    heir(&old, number, group.members().clone(), remote.map(Arc::new)).and_then(insert)
}

/// By a group; only its processes call, with the same tag.
pub(crate) fn create_group(handle: Comm, group: &Processes, tag: i32) -> Result<Comm> {
    let old = lookup(handle)?;
    if tag < 0 {
        return Err(bad_tag(tag));
    }
    let Some(party) = group_party(group, old.collective(), GROUP | tag as u64)? else {
        return Ok(Comm::NULL);
    };
    let number = block_on(agree::number(&party))?;
    heir(old, number, group.members().clone(), None).and_then(insert)
}

/// By a group and a text, without any communicator.
pub(crate) fn create_from_group(group: &Processes, text: &str) -> Result<Option<Communicator>> {
    let Some(party) = group_party(group, LIBRARY, text_tag(text))? else { return Ok(None) };
    let number = block_on(agree::number(&party))?;
    let mut new = Communicator::new(number, group.members().clone(), None, world()?.session().rank());
    new.set_session(group.session());
    Ok(Some(new))
}

/// The context of agreements that belong to no communicator.
pub(super) const LIBRARY: Context = Context(super::COLLECTIVE);

/// A tag for a text; two agreements at the same time with texts that have the same would disturb
/// each other, as they would with equal texts.
pub(super) fn text_tag(text: &str) -> u64 {
    fnv1a(text.as_bytes()) | GROUP
}

fn group_party(group: &Processes, context: Context, tag: u64) -> Result<Option<Party>> {
    let Some(rank) = group.rank_of(world()?.session().rank()) else { return Ok(None) };
    Ok(Some(Party { members: group.members().clone(), rank, context, tag, other: None }))
}

/// The greatest of everybody's values, place by place, of both groups if there are two.
pub(crate) fn greatest<const N: usize>(comm: &Communicator, mine: [i64; N]) -> Result<[i64; N]> {
    block_on(party(comm).greatest(mine))
}

/// Waits until all processes of a communicator are here.
pub(crate) fn meet(handle: Comm) -> Result<()> {
    let party = party(lookup(handle)?);
    block_on(party.greatest([0])).map(drop)
}

/// Whether all processes of a communicator, of both groups if there are two, say yes.
pub(crate) fn agree_all(comm: &Communicator, mine: bool) -> Result<bool> {
    let party = party(comm);
    Ok(block_on(party.greatest([i64::from(!mine)]))? == [0])
}
