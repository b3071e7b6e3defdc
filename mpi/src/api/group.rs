//! Groups of processes.

use crate::constant::{Comparison, UNDEFINED};
use crate::error::Result;
use crate::group::Range;
use crate::handle::Group;
use crate::objects::{free_group, group, hand_out_group};
use crate::world::world;

/// `MPI_Group_size`
///
/// # Errors
/// There is no such group.
pub fn group_size(of: Group) -> Result<i32> {
    Ok(group(of)?.size())
}

/// `MPI_Group_rank`: the rank of the calling process, or UNDEFINED.
///
/// # Errors
/// There is no such group, or MPI is not initialised.
pub fn group_rank(of: Group) -> Result<i32> {
    let me = world()?.session().rank();
    Ok(group(of)?.rank_of(me).unwrap_or(UNDEFINED))
}

/// `MPI_Group_translate_ranks`: a rank of the second group for each rank of the first one.
///
/// # Errors
/// There is no such group or rank.
pub fn group_translate_ranks(from: Group, ranks: &[i32], to: Group) -> Result<Vec<i32>> {
    group(from)?.translate(ranks, &group(to)?)
}

/// `MPI_Group_compare`
///
/// # Errors
/// There is no such group.
pub fn group_compare(one: Group, other: Group) -> Result<Comparison> {
    Ok(group(one)?.compare(&group(other)?))
}

/// `MPI_Group_union`
///
/// # Errors
/// There is no such group.
pub fn group_union(one: Group, other: Group) -> Result<Group> {
    Ok(hand_out_group(group(one)?.union(&group(other)?)))
}

/// `MPI_Group_intersection`
///
/// # Errors
/// There is no such group.
pub fn group_intersection(one: Group, other: Group) -> Result<Group> {
    Ok(hand_out_group(group(one)?.intersection(&group(other)?)))
}

/// `MPI_Group_difference`
///
/// # Errors
/// There is no such group.
pub fn group_difference(one: Group, other: Group) -> Result<Group> {
    Ok(hand_out_group(group(one)?.difference(&group(other)?)))
}

/// `MPI_Group_incl`
///
/// # Errors
/// There is no such group or rank, or a rank comes twice.
pub fn group_incl(of: Group, ranks: &[i32]) -> Result<Group> {
    Ok(hand_out_group(group(of)?.incl(ranks)?))
}

/// `MPI_Group_excl`
///
/// # Errors
/// There is no such group or rank, or a rank comes twice.
pub fn group_excl(of: Group, ranks: &[i32]) -> Result<Group> {
    Ok(hand_out_group(group(of)?.excl(ranks)?))
}

fn ranges_of(triplets: &[[i32; 3]]) -> Vec<Range> {
    triplets.iter().map(|&[first, last, stride]| Range { first, last, stride }).collect()
}

/// `MPI_Group_range_incl`: ranges as first rank, last rank, stride.
///
/// # Errors
/// There is no such group or rank, a rank comes twice, or a stride is zero.
pub fn group_range_incl(of: Group, ranges: &[[i32; 3]]) -> Result<Group> {
    Ok(hand_out_group(group(of)?.range_incl(&ranges_of(ranges))?))
}

/// `MPI_Group_range_excl`: ranges as first rank, last rank, stride.
///
/// # Errors
/// There is no such group or rank, a rank comes twice, or a stride is zero.
pub fn group_range_excl(of: Group, ranges: &[[i32; 3]]) -> Result<Group> {
    Ok(hand_out_group(group(of)?.range_excl(&ranges_of(ranges))?))
}

/// `MPI_Group_free`
///
/// # Errors
/// There is no such group.
pub fn group_free(of: &mut Group) -> Result<()> {
    free_group(of)
}
