//! Mismatched collectives are found out (`NMAD_MPI_CHECK=1`): before any data moves, all ranks tell each
//! other which collective they are in, and compare.

use super::cost::log2_ceil;
use super::place::Place;
use super::schedule::{Builder, SLOTS};
use super::team::Team;
use crate::error::{Class, Result};

/// The variable that switches it on.
pub const CHECK: &str = "NMAD_MPI_CHECK";
/// Slots of the exchange; none of the algorithms comes so far.
const FIRST_SLOT: u32 = SLOTS - 64;
const FIELDS: usize = 5;
const RECORD: u64 = (FIELDS * size_of::<u64>()) as u64;
/// A field that may differ.
const ANY: u64 = u64::MAX;

/// What a rank says about the collective that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Which collective.
    pub kind: Kind,
    /// Its root; none if it has none.
    pub root: Option<u32>,
    /// A number for the operator; none if it has none.
    pub operator: Option<u64>,
    /// Bytes of data, if they are the same on all ranks.
    pub len: Option<u64>,
    /// A number for the sequence of basic types, if it is the same on all ranks.
    pub signature: Option<u64>,
}

macro_rules! kinds {
    ($($kind:ident $name:literal;)*) => {
        /// A collective as programs call it; nonblocking and persistent ones are of another kind, since
        /// they do not match blocking ones (MPI 6.12).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Operation { $(#[doc = $name] $kind,)* }

        impl Operation {
            const ALL: &[Operation] = &[$(Operation::$kind),*];

            /// As the standard names it, without its prefix.
            pub fn name(self) -> &'static str {
                match self { $(Operation::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    Barrier "barrier";
    Bcast "bcast";
    Gather "gather";
    Gatherv "gatherv";
    Scatter "scatter";
    Scatterv "scatterv";
    Allgather "allgather";
    Allgatherv "allgatherv";
    Alltoall "alltoall";
    Alltoallv "alltoallv";
    Alltoallw "alltoallw";
    Reduce "reduce";
    Allreduce "allreduce";
    ReduceScatter "reduce_scatter";
    ReduceScatterBlock "reduce_scatter_block";
    Scan "scan";
    Exscan "exscan";
    NeighborAllgather "neighbor_allgather";
    NeighborAllgatherv "neighbor_allgatherv";
    NeighborAlltoall "neighbor_alltoall";
    NeighborAlltoallv "neighbor_alltoallv";
    NeighborAlltoallw "neighbor_alltoallw";
    CommDup "comm_dup";
    CommCreate "comm_create";
    CommSplit "comm_split";
    CommSplitType "comm_split_type";
    IntercommMerge "intercomm_merge";
    CartCreate "cart_create";
    CartSub "cart_sub";
    GraphCreate "graph_create";
    DistGraphCreate "dist_graph_create";
    DistGraphCreateAdjacent "dist_graph_create_adjacent";
}

/// How a collective is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Form {
    /// The call ends with it.
    Blocking,
    /// A request ends with it.
    Nonblocking,
    /// A request is started again and again.
    Persistent,
}

/// An operation in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The operation.
    pub operation: Operation,
    /// The form.
    pub form: Form,
}

impl Kind {
    fn number(self) -> u64 {
        u64::from(self.operation as u8) << 8 | u64::from(self.form as u8)
    }

    fn name_of(number: u64) -> String {
        let name = Operation::ALL.get((number >> 8) as usize).map_or("?", |operation| operation.name());
        match number as u8 {
            0 => format!("MPI_{}{}", name[..1].to_uppercase(), &name[1..]),
            1 => format!("MPI_I{name}"),
            _ => format!("MPI_{}{}_init", name[..1].to_uppercase(), &name[1..]),
        }
    }
}

impl Record {
    fn bytes(&self) -> Vec<u8> {
        let fields: [u64; FIELDS] = [
            self.kind.number(),
            self.root.map_or(ANY, u64::from),
            self.operator.unwrap_or(ANY),
            self.len.unwrap_or(ANY),
            self.signature.unwrap_or(ANY),
        ];
        fields.iter().flat_map(|field| field.to_le_bytes()).collect()
    }

    /// Adds the exchange and the comparison to a schedule; what follows waits for them.
    pub fn build(&self, team: &Team, builder: &mut Builder) {
        let (size, me) = (team.size(), team.me());
        let rows = builder.scratch(RECORD * size as u64);
        let records = |first: usize, count: usize| {
            Place::bytes(rows.skip((first as u64 * RECORD) as i64), count as u64 * RECORD)
        };
        builder.write(&self.bytes(), rows);
        // As Bruck's allgather: row d is what the rank d behind us says.
        for round in 0..log2_ceil(size) {
            let distance = 1 << round;
            let count = distance.min(size - distance);
            builder.round();
            builder.recv(
                team.party((me + distance) % size),
                FIRST_SLOT + round,
                records(distance, count),
                &[],
            );
            builder.send(
                team.party((me + size - distance) % size),
                FIRST_SLOT + round,
                records(0, count),
                &[],
            );
        }
        builder.round();
        builder.compare(records(0, size), me as u32, &[]);
        builder.round();
    }
}

/// Whether all ranks say the same; `me` says the first record, the ranks behind it the others.
pub(super) fn compare(records: &[u8], me: u32) -> Result<()> {
    let field = |record: &[u8], index: usize| {
        let mut bytes = [0; size_of::<u64>()];
        bytes.copy_from_slice(&record[index * size_of::<u64>()..][..size_of::<u64>()]);
        u64::from_le_bytes(bytes)
    };
    let size = records.len() as u64 / RECORD;
    let rank = |row: usize| (u64::from(me) + row as u64) % size;
    for index in 0..FIELDS {
        let told = records.chunks_exact(RECORD as usize).map(|record| field(record, index)).enumerate();
        let mut told: Vec<(u64, u64)> =
            told.filter(|&(_, value)| value != ANY || index == ROOT).map(|(row, v)| (rank(row), v)).collect();
        told.sort_unstable();
        let Some(&first) = told.first() else { continue };
        if let Some(&other) = told.iter().find(|other| other.1 != first.1) {
            return Err(disagree(index, first, other));
        }
    }
    Ok(())
}

const ROOT: usize = 1;

#[cold]
fn disagree(field: usize, (rank, value): (u64, u64), (other, differs): (u64, u64)) -> crate::error::Error {
    let told = |class: Class, what: &str| {
        class.error(format!("rank {rank} calls it with {what} {value}, rank {other} with {what} {differs}"))
    };
    match field {
        0 => Class::NOT_SAME.error(format!(
            "rank {rank} is in {}, rank {other} in {}: all ranks of a communicator call its collectives in \
             the same order",
            Kind::name_of(value),
            Kind::name_of(differs)
        )),
        ROOT => told(Class::ROOT, "root"),
        2 => Class::OP.error(format!("rank {rank} and rank {other} call it with different operators")),
        3 => told(Class::COUNT, "bytes of data:"),
        _ => Class::TYPE
            .error(format!("rank {rank} and rank {other} call it with datatypes of different basic types")),
    }
}
