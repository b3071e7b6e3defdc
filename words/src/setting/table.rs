//! The table of all settings.

use super::Reader::{Compiler, Internal, Launcher, Mpi, Running, Session};
use super::Values::{Form, Seconds, Size, Switch, Words};
use super::{Setting, Values};

macro_rules! settings {
    ($($name:ident: $reader:expr, $values:expr, $default:literal, $meaning:literal, $when:literal;)*) => {
        $(
            #[doc = concat!("`NMAD_", stringify!($name), "`: ", $meaning, ".")]
            pub const $name: Setting = Setting {
                name: concat!("NMAD_", stringify!($name)),
                reader: $reader,
                values: $values,
                default: $default,
                meaning: $meaning,
                when: $when,
            };
        )*

        /// All settings, by name.
        pub const ALL: &[&Setting] = &[$(&$name),*];
    };
}

const ALGORITHM: Values = Form("ALGORITHM");

settings! {
    ADVICE: Launcher, Switch, "off",
        "Whether a job that writes a trace (NMAD_TRACE) says at its end which setting would have made it \
         faster, and by how much",
        "to tune a program";
    CC: Compiler, Form("COMMAND"), "cc", "The C compiler that mpicc calls, with arguments if wanted", "";
    CHUNK: Session, Size { least: 4096 }, "1048576",
        "How much of a large message a rail is given at once, in bytes",
        "smaller if small messages must not wait behind large ones; larger for the last percent of bandwidth";
    CONFIG: Launcher, Form("FILE"), "nmad/config.toml in the configuration folder of the user",
        "The configuration file", "";
    CONGESTION: Session, Words(&["share", "newreno", "swift"]), "share",
        "What bounds the bytes in flight on rails that lose packets (udp, packet): newreno is RFC 9002, \
         swift is of SIGCOMM 2020; nmad sim --golden congestion compares them",
        "to compare";
    CREDIT: Session, Size { least: 262_144 }, "4194304",
        "Eager data that one peer may leave in this process without a receive, in bytes; beyond it \
         senders use rendezvous",
        "smaller with thousands of peers; larger for bursts of small messages that are received late";
    CROSS_MEMORY: Session, Switch, "on",
        "Whether large data between ranks of a node may be copied straight from process to process \
         (single copy, CMA); off: always through shared memory",
        "the system logs or kills who accesses another process; or to compare";
    CXX: Compiler, Form("COMMAND"), "c++", "The C++ compiler that mpicxx calls, with arguments if wanted", "";
    DEATHS_FD: Internal, Form("NUMBER"), "none",
        "The descriptor on which mpiexec --ft reports the deaths of other ranks", "";
    DRIVER: Session, Form("tcp, udp, packet, verbs or ofi:PROVIDER; several with commas"), "tcp",
        "Drivers of the interfaces for which NMAD_RAILS names none",
        "short messages between hosts matter most; or there is an adapter for RDMA";
    EAGER_MAX: Session, Size { least: 0 }, "as measured; 32768 without a profile",
        "Longest message that is sent without asking its receiver, in bytes; a longer one uses \
         rendezvous, unless its receiver is late. A value switches off that exception",
        "smaller if unexpected messages cost memory; otherwise leave it to the library";
    ENCRYPT: Session, Words(&["auto", "off", "on"]), "auto",
        "Which links between ranks are encrypted and protected against changes: auto: those to other subnets \
         and to public addresses; on: all except shared memory",
        "on where strangers can reach the network";
    EXPLAIN: Session, Form("on, off or FILE"), "off",
        "A line for each message that is sent, on standard error or in FILE.RANK",
        "a message took another way than expected";
    FC: Compiler, Form("COMMAND"), "the first of gfortran, flang, ifx, nvfortran",
        "The Fortran compiler that mpifort calls, with arguments if wanted", "";
    FEED: Session, Form("accumulate, prepare or backlog:BYTES"), "accumulate",
        "When packets are made: when a rail is idle, one in advance, or when BYTES bytes wait",
        "to compare";
    FT: Mpi, Switch, "off; on under mpiexec --ft",
        "Whether the job survives the death of ranks: calls that need the dead end with MPIX_ERR_PROC_FAILED",
        "another launcher than ours keeps the other ranks alive";
    HOST_SILENCE: Launcher, Seconds, "3.5; 1 under mpiexec --ft",
        "How long a host may not answer before mpiexec regards it as lost, in seconds; TCP notices up to 1 s \
         later",
        "networks that are silent for longer, or hosts whose loss shall be found earlier";
    IN_PLACE_MIN: Session, Size { least: 0 }, "as measured; 16384 without a profile",
        "Shortest data that is sent from where it lies instead of being copied into its packet, in bytes; \
         matters for packets that go through the window",
        "to compare";
    LAUNCH_TIMEOUT: Launcher, Seconds, "as long as the launcher lives",
        "How long a process waits for its launcher and the other ranks, and the launcher for its agents, \
         in seconds",
        "hosts that start slowly, or jobs that shall give up early";
    LOCAL_RANK: Internal, Form("NUMBER"), "none",
        "Number of this process among those of its job on its host", "";
    LOCAL_SIZE: Internal, Form("NUMBER"), "none", "Number of processes of the job on this host", "";
    LOG: Session, Words(&["off", "error", "warn", "info", "debug"]), "warn",
        "Level of the messages on standard error: rails that are lost or slow are warnings, why each link \
         ended is info, which links open is debug",
        "off if these lines are unwanted, debug to see which links open";
    MPI_ABI: Compiler, Words(&["standard", "mpich"]), "standard",
        "The binary interface for which mpicc, mpicxx and mpifort compile", "";
    MPI_ALLGATHER: Mpi, ALGORITHM, "auto", "The algorithm of MPI_Allgather", "to compare";
    MPI_ALLREDUCE: Mpi, ALGORITHM, "auto", "The algorithm of MPI_Allreduce", "to compare";
    MPI_ALLTOALL: Mpi, ALGORITHM, "auto", "The algorithm of MPI_Alltoall", "to compare";
    MPI_BARRIER: Mpi, ALGORITHM, "auto", "The algorithm of MPI_Barrier", "to compare";
    MPI_BCAST: Mpi, ALGORITHM, "auto", "The algorithm of MPI_Bcast", "to compare";
    MPI_CACHE_RANKS: Mpi, Form("NUMBER"), "system",
        "How many ranks of a node share a last-level cache, in their order: collectives may treat caches \
         apart. By default as the system says of the cores to which ranks are bound",
        "a virtual machine hides its caches, or ranks are not bound";
    MPI_CHECK: Mpi, Switch, "off",
        "Finds collectives that do not match on all ranks, and buffers that overlap",
        "a program hangs or has wrong results";
    MPI_EXPLAIN: Mpi, Switch, "off", "Says which algorithm each collective has, and why", "to look";
    MPI_FILE: Mpi, Words(&["auto", "direct", "owners"]), "auto",
        "How accesses of one rank reach a file that several ranks have open: direct by system calls of that \
         rank, owners by messages to the ranks that own its regions; a file's hint nmad_indep_rw comes first",
        "to compare, or on a file system that is not coherent and not known as such";
    MPI_GATHER: Mpi, ALGORITHM, "auto", "The algorithm of MPI_Gather", "to compare";
    MPI_INITIAL_ERRHANDLER: Mpi,
        Words(&["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"]), "mpi_errors_are_fatal",
        "The initial error handler (MPI 4.1, section 11.5)", "";
    MPI_MEMORY: Mpi, Size { least: 0 }, "0",
        "Bytes that the memory of a node reads and writes in a second for all of its cores, for the choice \
         of algorithms of long collectives; 0: not known",
        "many ranks of a node have long collectives: what the benchmark STREAM measures, for example 200GB";
    MPI_REDUCE: Mpi, ALGORITHM, "auto", "The algorithm of MPI_Reduce", "to compare";
    MPI_REDUCE_SCATTER: Mpi, ALGORITHM, "auto", "The algorithm of MPI_Reduce_scatter", "to compare";
    MPI_SCAN: Mpi, ALGORITHM, "auto", "The algorithm of MPI_Scan", "to compare";
    MPI_SCATTER: Mpi, ALGORITHM, "auto", "The algorithm of MPI_Scatter", "to compare";
    MPI_SEND_BUFFER: Mpi, Size { least: 0 }, "4194304",
        "Bytes of blocking sends that are copied so that the call returns before a late receiver has them, \
         in one process; 0: none. For messages between hosts that ask their receiver (rendezvous) while \
         messages advance in the background or rails have taken all of it, and no nonblocking collective \
         is under way",
        "smaller where memory is scarce; larger if programs send much before others receive";
    MPI_SWITCH: Mpi, Form("NAME"), "as Slurm says",
        "The switch, or group of a dragonfly, of this host, by any name: collectives may treat hosts of \
         equal names apart if all hosts have one; mpiexec does not pass it on to other hosts",
        "hosts of a switch have more bandwidth among themselves than to others, and Slurm does not tell";
    MPI_TAPER: Mpi, Form("NUMBER"), "1",
        "Bandwidth of all hosts of a switch over that of its links to other switches, for the choice of \
         algorithms of collectives",
        "switches are known, and such links have less bandwidth: 2 for a fat tree of 2:1";
    MPI_TRIALS: Mpi, Switch, "on",
        "Whether collectives of more than 2 KiB that a program calls often try several algorithms and go on \
         with the one that was fastest; sums of floating-point numbers may be rounded differently then",
        "off where a job must give the same bits each time";
    MPI_WINDOW: Mpi, Words(&["auto", "network", "frames"]), "auto",
        "How windows of other processes are accessed: auto also uses memory in common, network only \
         adapters and messages, frames only messages",
        "to compare";
    OBSERVATIONS: Session, Form("FILE"), "none",
        "Where each rank writes what its estimators were told, at the end: FILE.RANK; nmad sim \
         --observations FILE.0 replays it",
        "a decision was wrong, and its developers shall see why";
    PMIX: Launcher, Form("FILE"), "libpmix.so.2",
        "The PMIx library that is loaded", "it is in no usual folder";
    PREEMPT: Session, Words(&["auto", "off", "always"]), "auto",
        "When a thread of the program that computes is interrupted so that its core posts a part of a \
         message of another thread: auto: if the message gains more than that thread loses; always: if the \
         message gains",
        "off where threads that compute must never be interrupted";
    PROFILE: Session, Form("FILE"), "none",
        "A file of profiles that nmad sample --out made, used instead of those measured here",
        "profiles for a cluster, measured once with care";
    PROGRESS: Running, Form("off, auto, idle or dedicated:CORES"), "auto",
        "What moves messages while the program computes",
        "dedicated:CORES where a core can be spared; off where no thread may run beside those of the program";
    RAILS: Session, Form("INTERFACE[=RATE] or DRIVER/INTERFACE[=RATE]; several with commas"),
        "all interfaces that lead to a peer",
        "Interfaces that are used, with their bandwidth if wanted: eth0,udp/eth1=2.8gbit; shm is shared \
         memory, lo the loopback interface",
        "an interface is not for messages; or the system does not know its speed, and it is not measured";
    RETURN_WITHIN: Session, Seconds, "3",
        "Seconds for which a rank is waited for whose rails have all failed",
        "longer if all networks may be away at once; 0 to be told at once";
    SAMPLE: Session, Words(&["auto", "off", "force"]), "auto",
        "Whether rails are measured when a session opens: auto: those without a reliable profile; force: all",
        "off where a second at first use is too much";
    SECRET: Internal, Form("HEX"), "none", "The secret of the job", "";
    SINGLETON: Launcher, Switch, "off",
        "Whether a process that Slurm started without PMI is a job of its own", "";
    STARTED_BY: Internal, Form("PORT"), "none", "Port of the process that spawned this one", "";
    STATS: Session, Form("on, off or a folder (with a / in it)"), "off",
        "What the rails have carried, told at the end: on standard error, or in a file of each process in \
         the folder",
        "to see what each rail has done";
    STRATEGY: Running, Form("NAME or FILE.so:NAME"), "auto",
        "The strategy, which distributes messages over rails; with a file, one that is loaded from a plug-in",
        "to compare, and to try one of your own";
    TESTBED: Internal, Form("HOST"), "none", "The host of a testbed on which this process runs", "";
    THROTTLE: Session, Form("RATE; several with commas"), "none",
        "Rates to which software slows down the rails, in their order: 4gbit,2.8gbit",
        "demonstrations where networks cannot be shaped";
    TRACE: Session, Form("FILE"), "none",
        "Where each rank writes what its rails do: FILE.RANK; a folder that is there is written into",
        "to look";
}

/// Variables of tests, examples and scripts, which are no settings.
pub const OF_TESTS: [&str; 23] = [
    "NMAD_CLIENTS",
    "NMAD_INSIDE",
    "NMAD_INSIDE_SLURM",
    "NMAD_MACHINES",
    "NMAD_NFS_LIMIT_S",
    "NMAD_NFS_MB",
    "NMAD_NFS_NMAD",
    "NMAD_RDMA_BUDGET",
    "NMAD_RDMA_CACHE",
    "NMAD_RDMA_LIMIT_S",
    "NMAD_RDMA_MIB",
    "NMAD_RDMA_NMAD",
    "NMAD_SIZES",
    "NMAD_TEST_AGAIN",
    "NMAD_TEST_BULK",
    "NMAD_TEST_CASE",
    "NMAD_TEST_DRIVER",
    "NMAD_TEST_EXITS",
    "NMAD_TEST_INTERFACE",
    "NMAD_TEST_PARENT",
    "NMAD_TEST_REFUSED",
    "NMAD_TEST_ROUND",
    "NMAD_TEST_TARGET",
];
