//! Communicators.

use crate::algorithm::check::{Operation, number};
use crate::collective::announce;
use crate::comm::by_type::by_type;
use crate::comm::foreign::port;
use crate::comm::{self, Communicator, create, inter, lookup, share};
use crate::constant::{Comparison, ROOT, SplitType, UNDEFINED};
use crate::errhandler;
use crate::error::{Class, Result};
use crate::group::Group as Processes;
use crate::handle::{Comm, Errhandler, Group, Info, Request};
use crate::info;
use crate::objects::{group, hand_out_group};
use crate::world::world;
use std::sync::Arc;

/// `MPI_Comm_rank`
///
/// # Errors
/// There is no such communicator.
pub fn comm_rank(comm: Comm) -> Result<i32> {
    Ok(lookup(comm)?.rank())
}

/// `MPI_Comm_size`
///
/// # Errors
/// There is no such communicator.
pub fn comm_size(comm: Comm) -> Result<i32> {
    Ok(lookup(comm)?.local().len())
}

/// `MPI_Comm_remote_size`
///
/// # Errors
/// There is no such communicator, or it has no remote group.
pub fn comm_remote_size(comm: Comm) -> Result<i32> {
    Ok(remote(comm)?.len())
}

fn remote(comm: Comm) -> Result<&'static Arc<comm::Members>> {
    let none = || Class::COMM.error("the communicator has no remote group: it is an intracommunicator");
    lookup(comm)?.remote().ok_or_else(none)
}

/// `MPI_Comm_test_inter`
///
/// # Errors
/// There is no such communicator.
pub fn comm_test_inter(comm: Comm) -> Result<bool> {
    Ok(lookup(comm)?.remote().is_some())
}

/// How many processes the lists of a collective with this root name in our call.
///
/// # Errors
/// There is no such communicator.
pub fn peers_at_root(comm: Comm, root: i32) -> Result<usize> {
    let comm = lookup(comm)?;
    let (is_root, peers) = match comm.remote() {
        Some(remote) => (root == ROOT, remote.len()),
        None => (root == comm.rank(), comm.local().len()),
    };
    Ok(if is_root { peers as usize } else { 0 })
}

/// `MPI_Comm_compare`
///
/// # Errors
/// One of the communicators does not exist.
pub fn comm_compare(comm1: Comm, comm2: Comm) -> Result<Comparison> {
    Ok(lookup(comm1)?.compare(lookup(comm2)?))
}

/// `MPI_Comm_group`
///
/// # Errors
/// There is no such communicator.
pub fn comm_group(comm: Comm) -> Result<Group> {
    let comm = lookup(comm)?;
    Ok(insert_group(comm, comm.local()))
}

/// `MPI_Comm_remote_group`
///
/// # Errors
/// There is no such communicator, or it has no remote group.
pub fn comm_remote_group(comm: Comm) -> Result<Group> {
    Ok(insert_group(lookup(comm)?, remote(comm)?))
}

fn insert_group(comm: &Communicator, members: &Arc<comm::Members>) -> Group {
    hand_out_group(Processes::of(members.clone()).made_from(comm.session().cloned()))
}

/// `MPI_Comm_dup`
///
/// # Errors
/// There is no such communicator, a copy function fails, or a process is gone.
pub fn comm_dup(comm: Comm) -> Result<Comm> {
    announce(Operation::CommDup, comm, Ok(()), |()| [None; 3])?;
    create::dup(comm, None)
}

/// `MPI_Comm_dup_with_info`
///
/// # Errors
/// As [`comm_dup`], or there is no such info object.
pub fn comm_dup_with_info(comm: Comm, info: Info) -> Result<Comm> {
    let infos = announce(Operation::CommDup, comm, info::optional(info), |_| [None; 3])?;
    create::dup(comm, infos)
}

/// `MPI_Comm_idup`: the new communicator, usable when the request has ended.
///
/// # Errors
/// As [`comm_dup`].
pub fn comm_idup(comm: Comm) -> Result<(Comm, Request)> {
    create::idup(comm, None)
}

/// `MPI_Comm_idup_with_info`
///
/// # Errors
/// As [`comm_dup_with_info`].
pub fn comm_idup_with_info(comm: Comm, info: Info) -> Result<(Comm, Request)> {
    create::idup(comm, info::optional(info)?)
}

/// `MPI_Comm_create`: the null communicator for processes that are not in the group.
///
/// # Errors
/// There is no such communicator or group, or it is no part of the communicator.
pub fn comm_create(comm: Comm, group: Group) -> Result<Comm> {
    let me = world()?.session().rank();
    let group = announce(Operation::CommCreate, comm, self::group(group), |group| {
        let (size, is_member) = (group.size() as u64, group.rank_of(me).is_some());
        [number(group.members().order()), Some(size), Some(u64::from(is_member))]
    })?;
    create::create(comm, &group)
}

/// `MPI_Comm_create_group`: only processes of the group call.
///
/// # Errors
/// There is no such communicator or group, or the tag is negative.
pub fn comm_create_group(comm: Comm, group: Group, tag: i32) -> Result<Comm> {
    create::create_group(comm, &self::group(group)?, tag)
}

/// `MPI_Comm_create_from_group`
///
/// # Errors
/// There is no such group, info or error handler.
pub fn comm_create_from_group(
    group: Group,
    stringtag: &str,
    info: Info,
    errhandler: Errhandler,
) -> Result<Comm> {
    let (info, handler) = (info::optional(info)?, errhandler::lookup(errhandler)?);
    let new = create::create_from_group(&self::group(group)?, stringtag)?;
    new.map_or(Ok(Comm::NULL), |new| finish(new, info, handler))
}

fn finish(
    new: Communicator,
    info: Option<Arc<info::Infos>>,
    handler: Arc<errhandler::Handler>,
) -> Result<Comm> {
    new.set_errhandler(handler);
    info.map_or(Ok(()), |info| new.inform(&info))?;
    create::insert(new)
}

/// `MPI_Comm_split`: the null communicator for color [`UNDEFINED`].
///
/// # Errors
/// There is no such communicator, or the color is negative.
pub fn comm_split(comm: Comm, color: i32, key: i32) -> Result<Comm> {
    let color = match color {
        0.. => Ok(Some(color)),
        UNDEFINED => Ok(None),
        _ => Err(Class::ARG.error(format!("color {color} is negative, and not MPI_UNDEFINED"))),
    };
    let color = announce(Operation::CommSplit, comm, color, |_| [None; 3])?;
    create::split(comm, color, key, |_| None)
}

/// `MPI_Comm_split_type`; none: MPI_UNDEFINED. The null communicator for a process that is not bound to one
/// unit of the hardware that is asked for; `shmem_topo` and `nbhd_common_dirname` are hints of MPICH's.
///
/// # Errors
/// There is no such communicator or info object.
pub fn comm_split_type(comm: Comm, split_type: Option<SplitType>, key: i32, info: Info) -> Result<Comm> {
    let asked = split_type.and_then(|split_type| number(split_type as i32));
    let infos = info::optional(info);
    let infos = announce(Operation::CommSplitType, comm, infos, |_| [asked, None, None])?;
    by_type(comm, split_type, key, infos.as_ref())
}

/// `MPI_Comm_free`
///
/// # Errors
/// There is no such communicator, it is predefined, or a delete function fails.
pub fn comm_free(comm: &mut Comm) -> Result<()> {
    let world = world()?;
    if *comm == Comm::WORLD || *comm == Comm::SELF {
        return Err(Class::COMM.error("MPI_COMM_WORLD and MPI_COMM_SELF cannot be freed"));
    }
    share(*comm)?.attributes().delete_all(comm.0)?;
    port::forget_parent(*comm);
    comm::free(*comm, world);
    *comm = Comm::NULL;
    Ok(())
}

/// `MPI_Comm_set_name`
///
/// # Errors
/// There is no such communicator.
pub fn comm_set_name(comm: Comm, name: &str) -> Result<()> {
    *lookup(comm)?.name() = name.into();
    Ok(())
}

/// `MPI_Comm_get_name`
///
/// # Errors
/// There is no such communicator.
pub fn comm_get_name(comm: Comm) -> Result<String> {
    Ok(match comm {
        Comm::NULL => "MPI_COMM_NULL".into(),
        comm => lookup(comm)?.name().clone(),
    })
}

/// `MPI_Comm_set_info`
///
/// # Errors
/// There is no such communicator or info object.
pub fn comm_set_info(comm: Comm, info: Info) -> Result<()> {
    let comm = lookup(comm)?;
    info::optional(info)?.map_or(Ok(()), |info| comm.inform(&info))
}

/// `MPI_Comm_get_info`
///
/// # Errors
/// There is no such communicator.
pub fn comm_get_info(comm: Comm) -> Result<Info> {
    Ok(info::insert(lookup(comm)?.info().told()))
}

/// `MPI_Intercomm_create`; `peer_comm` and `remote_leader` matter at the local leader only.
///
/// # Errors
/// There is no such communicator or rank, the tag is negative, or the groups have a process in common.
pub fn intercomm_create(
    local_comm: Comm,
    local_leader: i32,
    peer_comm: Comm,
    remote_leader: i32,
    tag: i32,
) -> Result<Comm> {
    announce(Operation::IntercommCreate, local_comm, Ok(()), |()| [number(local_leader), None, None])?;
    inter::create((local_comm, local_leader), (peer_comm, remote_leader), tag)
}

/// `MPI_Intercomm_create_from_groups`
///
/// # Errors
/// There is no such group, rank, info or error handler, or the groups have a process in common.
pub fn intercomm_create_from_groups(
    local_group: Group,
    local_leader: i32,
    remote_group: Group,
    remote_leader: i32,
    stringtag: &str,
    info: Info,
    errhandler: Errhandler,
) -> Result<Comm> {
    let (info, handler) = (info::optional(info)?, errhandler::lookup(errhandler)?);
    let (local, remote) = (group(local_group)?, group(remote_group)?);
    let new = inter::create_from_groups((&local, local_leader), (&remote, remote_leader), stringtag)?;
    finish(new, info, handler)
}

/// `MPI_Intercomm_merge`
///
/// # Errors
/// There is no such communicator, or it is an intracommunicator.
pub fn intercomm_merge(intercomm: Comm, high: bool) -> Result<Comm> {
    announce(Operation::IntercommMerge, intercomm, Ok(()), |()| [number(high), None, None])?;
    inter::merge(intercomm, high)
}
