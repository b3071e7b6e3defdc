//! Whole jobs: processes that the launcher starts, each of which is a rank that calls the core as a front
//! does.
//!
//! This binary is two things: the test (starts jobs) and the program of the ranks (when a launcher has
//! started it). A case names what its ranks do and how the job must end.

mod background;
mod colls;
mod comms;
mod data;
mod errors;
mod gathered;
mod inter;
mod many;
mod operator;
mod parts;
mod point;
mod requests;
mod threads;
mod topology;
mod trials;
mod windows;

use nmad_launch::{ExitReport, Job};
use nmad_mpi::api;
use nmad_mpi::constant::ThreadLevel;
use std::process::ExitCode;
use std::time::Duration;

/// Which case a rank belongs to.
const CASE: &str = "NMAD_TEST_CASE";

/// A test and its job.
struct Case {
    /// The expectation, in a few words.
    name: &'static str,
    /// Ranks of the job.
    ranks: u32,
    /// What each rank does between Init and Finalize; a panic fails the case.
    rank: fn(),
    /// The exit code that the job must have.
    code: i32,
    /// A variable of the environment.
    setting: Option<(&'static str, &'static str)>,
}

const fn with(name: &'static str, value: &'static str, case: Case) -> Case {
    Case { setting: Some((name, value)), ..case }
}

const fn case(name: &'static str, ranks: u32, rank: fn()) -> Case {
    Case { name, ranks, rank, code: 0, setting: None }
}

/// Every case.
const ALL: &[Case] = &[
    case("every mode of sending brings its message", 2, point::modes),
    case("a process talks to itself", 1, point::modes),
    case("messages of any source come with their names", 4, point::any_source),
    case("no process answers at once", 1, point::no_process),
    case("pairs of messages, also in place", 3, point::pairs),
    case("a pair with a wrong half is refused and leaves nothing", 1, point::refused_pairs),
    case("buffered messages wait in the attached buffer", 2, point::buffered),
    case("the room of a buffered message is its own until it has left", 2, point::flushed),
    with(
        "NMAD_RAILS",
        "lo,udp/lo",
        case("blocking sends end before their receivers answer", 2, point::early),
    ),
    with("NMAD_RAILS", "lo,udp/lo", case("a cancelled send holds up no end", 2, point::never_received)),
    case("a computing rank is reached nevertheless", 6, point::while_others_compute),
    case("a message that was matched is nobody else's", 2, point::matched),
    case("types with gaps land where they belong", 2, data::gaps),
    case("large types with gaps are not packed", 2, data::large),
    case("requests end in any order", 3, requests::any_order),
    case("persistent requests run again and again", 2, requests::persistent),
    case("persistent requests outlive the handles that they were made with", 2, requests::outlived),
    case("generalized requests end when the program says so", 1, requests::generalized),
    case("a cancelled receive ends, and its message stays", 2, requests::cancelled),
    case("a request that was given away goes on", 2, requests::freed),
    case("communicators keep their messages apart", 4, comms::apart),
    case("splitting orders by key", 5, comms::split),
    case("communicators of groups", 5, comms::groups),
    case("duplicates are made while other things go on", 4, comms::idup),
    case("attributes are copied as their keys say", 2, comms::attributes),
    case("no key has the number of a freed one that attributes use", 1, comms::freed_keys),
    case("contexts are used again", 3, comms::many),
    case("more communicators than contexts are an error", 1, comms::too_many),
    case("more communicators than contexts are an error for all who make one", 3, comms::too_many),
    with("NMAD_MPI_CHECK", "1", case("buffers that overlap are refused", 2, colls::overlapping)),
    case("two groups talk to each other and become one", 5, inter::create_and_merge),
    case("intercommunicators are split and duplicated", 6, inter::split),
    case("grids and their parts", 7, topology::grid),
    case("graphs that everybody knows", 4, topology::graph),
    case("graphs of which everybody knows a part", 4, topology::distributed),
    case("wrong edges are everybody's error", 3, topology::wrong),
    case("collectives move data", 4, colls::moves),
    case("a collective of one rank", 1, colls::moves),
    case("more ranks than cores move data", 7, colls::moves),
    case("collectives move uneven data", 5, colls::vectors),
    case("collectives combine data", 4, colls::reductions),
    case("three ranks combine data", 3, colls::reductions),
    case("collectives of long data", 3, colls::long),
    with(
        "NMAD_MPI_ALLREDUCE",
        "boards",
        case("short collectives of more ranks than a board serves", 34, many::short),
    ),
    with("NMAD_MPI_CACHE_RANKS", "2", case("ranks of caches combine data", 5, colls::reductions)),
    case("collectives are right while algorithms are tried", 3, trials::all),
    with("NMAD_MPI_ALLREDUCE", "ring", case("an algorithm that is asked for", 4, colls::long)),
    case("collectives at once, in any order", 4, colls::at_once),
    case("many collectives at once, short enough for shared memory", 2, colls::short_and_many),
    case("many collectives at once, where ranks outnumber cores", 5, colls::short_and_many),
    case("parts of all lengths, many at once, come in any order", 3, parts::in_any_order),
    case("parts of all lengths come where ranks outnumber cores", 5, parts::in_any_order),
    with("NMAD_MPI_CHECK", "1", case("parts of all lengths are checked", 2, parts::in_any_order)),
    case("a part that is too long for its receiver is an error of that request", 3, parts::truncated),
    case("blocking and nonblocking collectives are matched apart", 2, colls::matched_apart),
    case("operators of programs keep their order", 5, colls::user_operator),
    with(
        "NMAD_MPI_ALLREDUCE",
        "ring",
        case("collectives go on while all ranks but one compute", 2, background::collectives),
    ),
    case("a communicator is duplicated while all ranks but one compute", 3, background::duplicates),
    case("collectives go on where more ranks than cores compute", 5, background::collectives),
    case("collectives go on where no core is idle", 3, background::without_idle_cores),
    with(
        "NMAD_DRIVER",
        "tcp",
        case("persistent messages go on while the program computes", 2, background::persistent),
    ),
    with(
        "NMAD_DRIVER",
        "tcp",
        case("partitioned messages go on while their receiver computes", 2, background::partitioned),
    ),
    with(
        "NMAD_DRIVER",
        "tcp",
        case("accesses with requests go on while their origin computes", 2, background::accesses),
    ),
    with("NMAD_DRIVER", "tcp", case("a thousand puts leave in a few packets", 2, gathered::puts)),
    with(
        "NMAD_MPI_WINDOW",
        "frames",
        case("only those are asked for a lock that are accessed", 2, gathered::locks),
    ),
    with("NMAD_DRIVER", "tcp", case("small partitions leave together", 2, gathered::partitions)),
    case("long windows of a rank alone have huge pages where there are some", 1, windows::huge_pages),
    case("long windows of several ranks have huge pages where there are some", 2, windows::huge_pages),
    case("the memory of a rank alone begins where it wants it", 1, windows::alignments),
    case("the memory of several ranks begins where one of them wants it", 2, windows::alignments),
    case("the library says in what memory buffers may lie", 1, windows::kinds_of_memory),
    case(
        "a request that a thread of the program ends does so while another computes",
        2,
        background::generalized,
    ),
    case("collectives between two groups", 5, colls::between_groups),
    case("neighbours exchange data", 4, colls::neighbors),
    with("NMAD_MPI_CHECK", "1", case("mismatched collectives get an error", 3, colls::mismatches)),
    with(
        "NMAD_MPI_CHECK",
        "1",
        case("two groups that call different collectives get an error", 5, colls::mismatches_between_groups),
    ),
    with(
        "NMAD_MPI_CHECK",
        "1",
        case("what is checked and right goes on between groups", 5, colls::between_groups),
    ),
    case("wrong arguments of collectives are named", 2, colls::arguments),
    case("wrong buffers are refused by all ranks alike", 3, colls::buffers),
    with("NMAD_MPI_ALLREDUCE", "ring", case("wrong buffers are refused by any algorithm", 3, colls::buffers)),
    case("wrong arguments are named", 2, errors::arguments),
    with(
        "NMAD_MPI_INITIAL_ERRHANDLER",
        "mpi_errors_return",
        case("a job may begin with another error handler", 2, errors::initial),
    ),
    case("a message that is too long is an error and loses nothing else", 2, errors::truncated),
    case("a failed request belongs to its communicator", 2, errors::owned),
    case("a failed request belongs to a communicator that is freed", 2, errors::owned_by_the_freed),
    case("threads talk at the same time", 2, threads::at_once),
    case("threads take turns with their peers", 2, threads::in_turns),
    with("NMAD_DRIVER", "tcp", case("threads take turns over tcp", 2, threads::in_turns)),
    case("threads make communicators at the same time", 3, threads::comms),
    Case { code: 134, ..case("a rank that dies ends the job", 4, errors::killed) },
    Case { code: 3, ..case("a rank aborts the job with its code", 2, errors::abort) },
];

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(CASE) {
        let case = ALL.iter().find(|case| case.name == name).expect("a case of this name");
        assert!(!api::initialized() && !api::finalized());
        assert_eq!(api::init_thread(ThreadLevel::Multiple), Ok(ThreadLevel::Multiple));
        (case.rank)();
        api::finalize().unwrap();
        assert!(api::initialized() && api::finalized());
        return ExitCode::SUCCESS;
    }
    let filter = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    let (mut passed, mut failed) = (0, 0);
    for case in ALL.iter().filter(|case| case.name.contains(&filter)) {
        let ended = run(case);
        let verdict = if ended == Some(case.code) { "ok" } else { "FAILED" };
        println!("test {} ... {verdict} (ended with {ended:?})", case.name);
        *(if verdict == "ok" { &mut passed } else { &mut failed }) += 1;
    }
    println!("\n{passed} passed, {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

fn run(case: &Case) -> Option<i32> {
    let own = std::env::current_exe().expect("this program has a path");
    let cache = tempfile::tempdir().expect("a folder can be made");
    let mut job = Job::new(own, [] as [&str; 0], case.ranks);
    job.env.push((CASE.into(), case.name.into()));
    // What the user keeps is not touched, and time is not spent on measuring.
    job.env.push(("XDG_CACHE_HOME".into(), cache.path().into()));
    job.env.push(("NMAD_SAMPLE".into(), "off".into()));
    job.env.extend(case.setting.map(|(name, value)| (name.into(), value.into())));
    job.timeout = Some(Duration::from_secs(60));
    match nmad_launch::run(job) {
        Ok(ExitReport { code, .. }) => Some(code),
        Err(why) => {
            println!("{why}");
            None
        }
    }
}
