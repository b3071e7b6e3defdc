//! Mismatched collectives are found out (`NMAD_MPI_CHECK=1`): before any data moves, all ranks tell each
//! other which collective they are in, and compare. Of an intercommunicator the ranks of both groups do.

use super::cost::log2_ceil;
use super::inter::Role;
use super::place::Place;
use super::schedule::{Builder, SLOTS, Seats};
use super::team::Team;
use crate::error::Class;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Numbers of a record: kind, root, operator, arguments, bytes sent and received, basic types likewise, the
/// class of a refusal.
pub(super) const FIELDS: usize = 11;
/// Bytes of a record.
pub(super) const RECORD: u64 = (FIELDS * size_of::<u64>()) as u64;
/// A field that may differ, or says nothing.
pub(super) const ANY: u64 = u64::MAX;
/// The root `MPI_ROOT`.
pub(super) const ITSELF: u64 = u64::MAX - 1;
/// The root `MPI_PROC_NULL`.
pub(super) const NULL: u64 = u64::MAX - 2;

/// Slots of the exchange; none of the algorithms comes so far.
const FIRST_SLOT: u32 = SLOTS - 64;

/// What a rank says about the collective that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Which collective.
    pub kind: Kind,
    /// With what.
    pub alike: Alike,
}

/// What ranks say alike about a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alike {
    /// Its root; none if it has none.
    pub root: Option<Root>,
    /// A number for the operator; none if it has none.
    pub operator: Option<u64>,
    /// Numbers for other arguments, as [`Operation::arguments`] names them; none if they may differ.
    pub arguments: [Option<u64>; ARGUMENTS],
    /// Data for the other group of an intercommunicator; of one group, the data that all ranks have alike.
    pub sent: Amount,
    /// Data from the other group; of one group, the same again.
    pub received: Amount,
    /// The rank has refused its arguments, with an error of this class.
    pub refused: Option<Class>,
}

/// Arguments that are compared beside root, operator and amount.
pub const ARGUMENTS: usize = 3;

/// Which root a rank names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// A rank: of the communicator, or of the other group.
    Rank(u32),
    /// `MPI_ROOT`.
    Itself,
    /// `MPI_PROC_NULL`.
    Null,
}

impl From<Role> for Root {
    fn from(role: Role) -> Root {
        match role {
            Role::Root => Root::Itself,
            Role::Bystander => Root::Null,
            Role::Peer(rank) => Root::Rank(rank as u32),
        }
    }
}

/// How much data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes, if they are the same on all ranks.
    pub len: Option<u64>,
    /// A number for the sequence of basic types, if it is the same on all ranks.
    pub signature: Option<u64>,
}

impl Alike {
    /// An amount that all ranks have alike, of both groups if there are two.
    pub fn of(amount: Amount) -> Alike {
        Alike { sent: amount, received: amount, ..Alike::default() }
    }
}

/// A number for an argument, the same wherever it is the same.
pub fn number(argument: impl Hash) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    argument.hash(&mut hasher);
    Some(hasher.finish() & !(1 << 63))
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
    IntercommCreate "intercomm_create";
    IntercommMerge "intercomm_merge";
    CartCreate "cart_create";
    CartSub "cart_sub";
    GraphCreate "graph_create";
    DistGraphCreate "dist_graph_create";
    DistGraphCreateAdjacent "dist_graph_create_adjacent";
}

impl Operation {
    /// What [`Alike::arguments`] stand for.
    pub(super) fn arguments(self) -> [&'static str; ARGUMENTS] {
        match self {
            Operation::ReduceScatter => ["recvcounts", "", ""],
            Operation::ReduceScatterBlock => ["recvcount", "", ""],
            Operation::CommSplitType => ["split_type", "", ""],
            Operation::IntercommCreate => ["local_leader", "", ""],
            Operation::IntercommMerge => ["high", "", ""],
            Operation::CartCreate => ["dims", "periods", "reorder"],
            Operation::CartSub => ["remain_dims", "", ""],
            Operation::GraphCreate => ["index", "edges", "reorder"],
            Operation::DistGraphCreate | Operation::DistGraphCreateAdjacent => ["reorder", "weights", ""],
            // The other two: how large it is, and whether it has the rank that gives it.
            Operation::CommCreate => ["group", "", ""],
            _ => [""; ARGUMENTS],
        }
    }
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
    pub(super) fn number(self) -> u64 {
        u64::from(self.operation as u8) << 8 | u64::from(self.form as u8)
    }

    /// The operation of the kind that [`Kind::number`] turned into `number`.
    pub(super) fn operation_of(number: u64) -> Option<Operation> {
        Operation::ALL.get((number >> 8) as usize).copied()
    }

    pub(super) fn name_of(number: u64) -> String {
        let name = Kind::operation_of(number).map_or("?", Operation::name);
        match number as u8 {
            0 => format!("MPI_{}{}", name[..1].to_uppercase(), &name[1..]),
            1 => format!("MPI_I{name}"),
            _ => format!("MPI_{}{}_init", name[..1].to_uppercase(), &name[1..]),
        }
    }
}

impl Record {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let Alike { root, operator, arguments, sent, received, refused } = self.alike;
        let root = root.map(|root| match root {
            Root::Rank(rank) => u64::from(rank),
            Root::Itself => ITSELF,
            Root::Null => NULL,
        });
        let [first, second, third] = arguments;
        let refused = refused.map(|class| class.0 as u64);
        let rest = [sent.len, received.len, sent.signature, received.signature, refused];
        let fields = [Some(self.kind.number()), root, operator, first, second, third].into_iter().chain(rest);
        fields.flat_map(|field| field.unwrap_or(ANY).to_le_bytes()).collect()
    }

    /// Adds the exchange and the comparison to a schedule; all later steps wait for them. `team` has all
    /// ranks that must agree, in one order: `first` of them of one group and then those of the other.
    pub fn build(&self, team: &Team, first: usize, builder: &mut Builder) {
        let (size, me) = (team.size(), team.me());
        let rows = builder.scratch(RECORD * size as u64);
        let records = |first: usize, count: usize| {
            Place::bytes(rows.skip((first as u64 * RECORD) as i64), count as u64 * RECORD)
        };
        builder.write(&self.bytes(), rows);
        // As Bruck's allgather: row d is the record of the rank d behind us.
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
        builder.compare(records(0, size), Seats { me: me as u32, first: first as u32 }, &[]);
        builder.round();
    }
}
