//! Collectives: each operation in its three forms.

use crate::algorithm::check::Operation::{Exscan, Scan};
use crate::algorithm::check::{Form, Operation};
use crate::collective::{moves, neighbors, reductions, refuse, vectors};
use crate::error::Result;
use crate::handle::{Comm, Info, Op, Request, Type};
use std::ffi::c_void;

/// The three forms of an operation, from what makes it ready.
macro_rules! forms {
    ($(
        $name:literal $operation:ident $blocking:ident $nonblocking:ident $persistent:ident
        ($($argument:ident: $kind:ty),*) = $form:ident, $comm:ident => $ready:expr;
    )*) => {$(
        #[doc = concat!("`MPI_", $name, "`")]
        ///
        /// # Errors
        /// An argument is invalid, the ranks call different collectives, or a process is gone.
        #[allow(clippy::too_many_arguments)] // as many as the standard has
        pub fn $blocking($($argument: $kind,)* $comm: Comm) -> Result<()> {
            let $form = Form::Blocking;
            $ready.or_else(|why| Err(refuse(Operation::$operation, ($form, $comm), why)))?.block()
        }

        #[doc = concat!("The nonblocking form of `MPI_", $name, "`: a request that ends with it.")]
        ///
        /// # Errors
        /// An argument is invalid.
        #[allow(clippy::too_many_arguments)] // as many as the standard has
        pub fn $nonblocking($($argument: $kind,)* $comm: Comm) -> Result<Request> {
            let $form = Form::Nonblocking;
            $ready.or_else(|why| Err(refuse(Operation::$operation, ($form, $comm), why)))?.begin()
        }

        #[doc = concat!("The persistent form of `MPI_", $name, "`: a request to be started.")]
        ///
        /// # Errors
        /// An argument is invalid.
        #[allow(clippy::too_many_arguments)] // as many as the standard has
        pub fn $persistent($($argument: $kind,)* $comm: Comm, _info: Info) -> Result<Request> {
            let $form = Form::Persistent;
            $ready.or_else(|why| Err(refuse(Operation::$operation, ($form, $comm), why)))?.keep()
        }
    )*};
}

forms! {
    "Barrier" Barrier barrier ibarrier barrier_init() = form, comm => moves::barrier(form, comm);

    "Bcast" Bcast bcast ibcast bcast_init(
        buffer: *mut c_void, count: i64, datatype: Type, root: i32
    ) = form, comm => moves::bcast(form, (buffer, count, datatype), root, comm);

    "Gather" Gather gather igather gather_init(
        sendbuf: *const c_void, sendcount: i64, sendtype: Type,
        recvbuf: *mut c_void, recvcount: i64, recvtype: Type, root: i32
    ) = form, comm =>
        moves::gather(form, (sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype), root, comm);

    "Gatherv" Gatherv gatherv igatherv gatherv_init(
        sendbuf: *const c_void, sendcount: i64, sendtype: Type,
        recvbuf: *mut c_void, recvcounts: &[i64], displs: &[i64], recvtype: Type, root: i32
    ) = form, comm => vectors::gatherv(
        form, (sendbuf, sendcount, sendtype), (recvbuf, (recvcounts, displs, recvtype)), root, comm
    );

    "Scatter" Scatter scatter iscatter scatter_init(
        sendbuf: *const c_void, sendcount: i64, sendtype: Type,
        recvbuf: *mut c_void, recvcount: i64, recvtype: Type, root: i32
    ) = form, comm =>
        moves::scatter(form, (sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype), root, comm);

    "Scatterv" Scatterv scatterv iscatterv scatterv_init(
        sendbuf: *const c_void, sendcounts: &[i64], displs: &[i64], sendtype: Type,
        recvbuf: *mut c_void, recvcount: i64, recvtype: Type, root: i32
    ) = form, comm => vectors::scatterv(
        form, (sendbuf, (sendcounts, displs, sendtype)), (recvbuf, recvcount, recvtype), root, comm
    );

    "Allgather" Allgather allgather iallgather allgather_init(
        sendbuf: *const c_void, sendcount: i64, sendtype: Type,
        recvbuf: *mut c_void, recvcount: i64, recvtype: Type
    ) = form, comm =>
        moves::allgather(form, (sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype), comm);

    "Allgatherv" Allgatherv allgatherv iallgatherv allgatherv_init(
        sendbuf: *const c_void, sendcount: i64, sendtype: Type,
        recvbuf: *mut c_void, recvcounts: &[i64], displs: &[i64], recvtype: Type
    ) = form, comm => vectors::allgatherv(
        form, (sendbuf, sendcount, sendtype), (recvbuf, (recvcounts, displs, recvtype)), comm
    );

    "Alltoall" Alltoall alltoall ialltoall alltoall_init(
        sendbuf: *const c_void, sendcount: i64, sendtype: Type,
        recvbuf: *mut c_void, recvcount: i64, recvtype: Type
    ) = form, comm =>
        moves::alltoall(form, (sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype), comm);

    "Alltoallv" Alltoallv alltoallv ialltoallv alltoallv_init(
        sendbuf: *const c_void, sendcounts: &[i64], sdispls: &[i64], sendtype: Type,
        recvbuf: *mut c_void, recvcounts: &[i64], rdispls: &[i64], recvtype: Type
    ) = form, comm => vectors::alltoallv(
        form, (sendbuf, (sendcounts, sdispls, sendtype)), (recvbuf, (recvcounts, rdispls, recvtype)), comm
    );

    "Alltoallw" Alltoallw alltoallw ialltoallw alltoallw_init(
        sendbuf: *const c_void, sendcounts: &[i64], sdispls: &[i64], sendtypes: &[Type],
        recvbuf: *mut c_void, recvcounts: &[i64], rdispls: &[i64], recvtypes: &[Type]
    ) = form, comm => vectors::alltoallw(
        form, (sendbuf, (sendcounts, sdispls, sendtypes)), (recvbuf, (recvcounts, rdispls, recvtypes)), comm
    );

    "Reduce" Reduce reduce ireduce reduce_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Type, op: Op, root: i32
    ) = form, comm => reductions::reduce(form, (sendbuf, recvbuf), (count, datatype, op), root, comm);

    "Allreduce" Allreduce allreduce iallreduce allreduce_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Type, op: Op
    ) = form, comm => reductions::allreduce(form, (sendbuf, recvbuf), (count, datatype, op), comm);

    "Reduce_scatter" ReduceScatter reduce_scatter ireduce_scatter reduce_scatter_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: &[i64], datatype: Type, op: Op
    ) = form, comm => reductions::reduce_scatter(form, (sendbuf, recvbuf), (recvcounts, datatype, op), comm);

    "Reduce_scatter_block" ReduceScatterBlock
    reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: i64, datatype: Type, op: Op
    ) = form, comm =>
        reductions::reduce_scatter_block(form, (sendbuf, recvbuf), (recvcount, datatype, op), comm);

    "Scan" Scan scan iscan scan_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Type, op: Op
    ) = form, comm => reductions::scan((Scan, form), (sendbuf, recvbuf), (count, datatype, op), comm);

    "Exscan" Exscan exscan iexscan exscan_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Type, op: Op
    ) = form, comm => reductions::scan((Exscan, form), (sendbuf, recvbuf), (count, datatype, op), comm);

    "Neighbor_allgather" NeighborAllgather neighbor_allgather ineighbor_allgather neighbor_allgather_init(
        sendbuf: *const c_void, sendcount: i64, sendtype: Type,
        recvbuf: *mut c_void, recvcount: i64, recvtype: Type
    ) = form, comm =>
        neighbors::allgather(form, (sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype), comm);

    "Neighbor_allgatherv" NeighborAllgatherv
    neighbor_allgatherv ineighbor_allgatherv neighbor_allgatherv_init(
        sendbuf: *const c_void, sendcount: i64, sendtype: Type,
        recvbuf: *mut c_void, recvcounts: &[i64], displs: &[i64], recvtype: Type
    ) = form, comm => neighbors::allgatherv(
        form, (sendbuf, sendcount, sendtype), (recvbuf, (recvcounts, displs, recvtype)), comm
    );

    "Neighbor_alltoall" NeighborAlltoall neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init(
        sendbuf: *const c_void, sendcount: i64, sendtype: Type,
        recvbuf: *mut c_void, recvcount: i64, recvtype: Type
    ) = form, comm =>
        neighbors::alltoall(form, (sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype), comm);

    "Neighbor_alltoallv" NeighborAlltoallv neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init(
        sendbuf: *const c_void, sendcounts: &[i64], sdispls: &[i64], sendtype: Type,
        recvbuf: *mut c_void, recvcounts: &[i64], rdispls: &[i64], recvtype: Type
    ) = form, comm => neighbors::alltoallv(
        form, (sendbuf, (sendcounts, sdispls, sendtype)), (recvbuf, (recvcounts, rdispls, recvtype)), comm
    );

    "Neighbor_alltoallw" NeighborAlltoallw neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init(
        sendbuf: *const c_void, sendcounts: &[i64], sdispls: &[i64], sendtypes: &[Type],
        recvbuf: *mut c_void, recvcounts: &[i64], rdispls: &[i64], recvtypes: &[Type]
    ) = form, comm => neighbors::alltoallw(
        form, (sendbuf, (sendcounts, sdispls, sendtypes)), (recvbuf, (recvcounts, rdispls, recvtypes)), comm
    );
}
