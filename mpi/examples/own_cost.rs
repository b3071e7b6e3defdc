//! What MAD-MPI costs over the native interface: instructions of a pair of messages through both, of a
//! process to itself, counted by callgrind. And what an access to memory that the process sees costs with its
//! flush, which takes no message.
//!
//!     cargo run --release -p nmad-mpi --example own_cost
//!
//! 100 ns are 300 to 400 instructions on the machines of today. What requests cost varies by a hundred from
//! one build and one run to the next, for which their budgets leave room. Exit code 1 if one is exceeded, 3
//! if valgrind is missing.
//!
//! With `--traced` it measures instead what a trace costs a call in time: turns without and with what the
//! functions of C do where a session is traced, one after the other in one process.

mod callgrind;

use newmadeleine::engine::{Context, Hints, PeerId, Source, Tag, TagMatch};
use newmadeleine::{RequestId, Segments, Session};
use nmad_mpi::{Comm, Info, Op, Request, Status, Type, Win, api};
use std::ffi::c_void;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Instructions of MAD-MPI's own for a send and a receive: blocking, with requests, and with requests that
/// are waited for together.
const BUDGETS: [i64; 3] = [250, 620, 700];
/// Instructions of an access of 8 B and its flush, in the order of [`ACCESSES`].
const ACCESS_BUDGETS: [i64; 3] = [170, 170, 330];
/// Instructions of a pair of messages in a job that survives the death of ranks (`NMAD_FT=on`), in
/// thousandths of those in another job.
const SURVIVING_BUDGET: i64 = 1_020;
/// The ways that are counted for it.
const SURVIVING: [&str; 2] = ["mpi-blocking", "mpi"];
/// The variable that is changed, and its usual value.
const USUAL: (&str, &str) = ("NMAD_FT", "off");
/// Pairs of a run; what happens once is little beside them.
const PAIRS: i64 = 5_000;
/// Runs of each way, in turns: how often a waiting thread looks depends on the clock, so the median counts.
const RUNS: usize = 7;
/// MPI_BYTE
const BYTE: Type = Type::BYTE;
/// MPI_INT64_T
const INT64: Type = Type(0x58);
/// MPI_SUM
const SUM: Op = Op(1);

/// A way to exchange a number of pairs of messages, by its name on the command line.
type Way = (&'static str, fn(u64));

const WAYS: [Way; 6] = [
    ("native-blocking", |count| native(count, measured_native_blocking)),
    ("mpi-blocking", |count| mpi(count, measured_mpi_blocking)),
    ("native", |count| native(count, measured_native)),
    ("mpi", |count| mpi(count, measured_mpi)),
    ("native-several", |count| native(count, measured_native_several)),
    ("mpi-several", |count| mpi(count, measured_mpi_several)),
];

const ACCESSES: [Way; 3] = [
    ("put", |count| accesses(count, measured_put)),
    ("get", |count| accesses(count, measured_get)),
    ("fetch_and_op", |count| accesses(count, measured_fetch)),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let mut ways = WAYS.iter().chain(&ACCESSES);
    if let [_, way, count] = arguments.as_slice()
        && let (Some((_, run)), Ok(count)) = (ways.find(|(name, _)| name == way), count.parse())
    {
        run(count);
        return ExitCode::SUCCESS;
    }
    match arguments.as_slice() {
        [_, word] if word == "--traced" => return traced(),
        [_, word] if word == IN_TURNS => return in_turns(),
        _ => {}
    }
    let counted = messages().and_then(|(messages, usual)| Some(messages | surviving(&usual)? | accessed()?));
    match counted {
        Some(exceeded) => ExitCode::from(u8::from(exceeded)),
        _ => {
            eprintln!("valgrind is missing or did not run: install it to count instructions");
            ExitCode::from(3)
        }
    }
}

/// By which this program begins the part that is measured, with a trace.
const IN_TURNS: &str = "in-turns";
/// Pairs of messages of a turn, and turns of each way.
const TURN: usize = 2_000;
const TURNS: usize = 201;

/// Runs itself with a trace, in a folder of its own.
fn traced() -> ExitCode {
    let ran = std::env::current_exe().and_then(|own| {
        let folder = tempfile::tempdir()?;
        Command::new(own).arg(IN_TURNS).env("NMAD_TRACE", folder.path()).status()
    });
    match ran {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => ExitCode::from(status.code().map_or(3, |code| code as u8)),
        Err(error) => {
            eprintln!("cannot run with a trace in a folder of its own: {error}");
            ExitCode::from(3)
        }
    }
}

/// Prints by how much a call that is noted takes longer: half of what a pair of messages does.
fn in_turns() -> ExitCode {
    api::init().expect("a job of one process");
    assert!(api::is_observed(), "the trace has begun");
    let (out, mut into) = ([7u8; 8], [0u8; 8]);
    let mut turn = |note: fn(&'static str, &mut dyn FnMut())| {
        let start = Instant::now();
        for _ in 0..TURN {
            note("MPI_Send", &mut || {
                api::send(out.as_ptr().cast(), 8, BYTE, 0, 1, Comm::WORLD).expect("it is sent");
            });
            note("MPI_Recv", &mut || {
                let into = into.as_mut_ptr().cast();
                api::recv(into, 8, BYTE, 0, 1, Comm::WORLD, None).expect("it is there");
            });
        }
        start.elapsed().as_nanos() as f64 / (2 * TURN) as f64
    };
    // The trace is full from then on, as that of a long run.
    (0..TURNS / 2).for_each(|_| _ = turn(noted));
    let pairs: Vec<[f64; 2]> = (0..TURNS).map(|_| [turn(plain), turn(noted)]).collect();
    api::finalize().expect("nobody else is there");
    let sorted = |of: &dyn Fn(&[f64; 2]) -> f64| {
        let mut all: Vec<f64> = pairs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (without, more) = (sorted(&|pair| pair[0]), sorted(&|pair| pair[1] - pair[0]));
    let [lower, median, upper] = [1, 2, 3].map(|quarter| more[quarter * TURNS / 4]);
    println!(
        "a blocking call with 8 B to oneself: {:.0} ns, {median:.1} ns more where it is noted (quartiles \
         {lower:.1} .. {upper:.1}); at 1 M calls per second {:.1} % of the time",
        without[TURNS / 2],
        median / 10.0
    );
    ExitCode::SUCCESS
}

fn plain(_: &'static str, call: &mut dyn FnMut()) {
    call();
}

/// As the functions of C do it.
fn noted(name: &'static str, call: &mut dyn FnMut()) {
    api::call_begins();
    call();
    api::call_ended(name, Some(Comm::WORLD), 0);
}

/// Counts messages; true: a budget is exceeded. Returns also the instructions of each way.
fn messages() -> Option<(bool, [i64; WAYS.len()])> {
    let mut counted = WAYS.map(|_| Vec::new());
    for _ in 0..RUNS {
        for ((way, _), counted) in WAYS.iter().zip(&mut counted) {
            counted.push(instructions(way, USUAL)?);
        }
    }
    let medians = counted.map(median);
    let mut exceeded = false;
    for (index, budget) in BUDGETS.into_iter().enumerate() {
        let [native, mpi] = [2 * index, 2 * index + 1];
        let own = medians[mpi] - medians[native];
        exceeded |= own > budget;
        println!(
            "{}: {} instructions a pair, {}: {}; {own} of its own, budget {budget}",
            WAYS[native].0, medians[native], WAYS[mpi].0, medians[mpi]
        );
    }
    Some((exceeded, medians))
}

/// Counts messages in a job that survives the death of ranks, beside those of another job; true: the budget
/// is exceeded.
fn surviving(usual: &[i64; WAYS.len()]) -> Option<bool> {
    let mut exceeded = false;
    for ((way, _), without) in WAYS.iter().zip(usual).filter(|((way, _), _)| SURVIVING.contains(way)) {
        let counted: Option<Vec<i64>> = (0..RUNS).map(|_| instructions(way, ("NMAD_FT", "on"))).collect();
        let with = median(counted?);
        exceeded |= with * 1_000 > without * SURVIVING_BUDGET;
        println!("{way} with NMAD_FT=on: {with} instructions a pair, without: {without}; budget 2 % more");
    }
    Some(exceeded)
}

fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// The same for accesses: nothing waits, so every run counts the same.
fn accessed() -> Option<bool> {
    let mut exceeded = false;
    for ((access, _), budget) in ACCESSES.iter().zip(ACCESS_BUDGETS) {
        let own = instructions(access, USUAL)?;
        exceeded |= own > budget;
        println!("{access}: {own} instructions with its flush, budget {budget}");
    }
    Some(exceeded)
}

/// Instructions of a pair, as they are counted in many.
fn instructions(way: &str, variable: (&str, &str)) -> Option<i64> {
    Some(callgrind::instructions(&[way, &PAIRS.to_string()], variable)? / PAIRS)
}

fn native(count: u64, pair: fn(&Session, &mut [u8], &mut [u8])) {
    let session = Session::open().expect("a job of one process");
    let (mut out, mut into) = ([7u8; 8], [0u8; 8]);
    (0..count).for_each(|_| pair(&session, &mut out, &mut into));
    session.close().expect("nobody else is there");
}

fn mpi(count: u64, pair: fn(&[u8], &mut [u8])) {
    api::init().expect("a job of one process");
    let (out, mut into) = ([7u8; 8], [0u8; 8]);
    (0..count).for_each(|_| pair(&out, &mut into));
    api::finalize().expect("nobody else is there");
}

/// Accesses to a window of this process alone, which sees its memory as that of other ranks of a node.
fn accesses(count: u64, access: fn(&mut i64, i64, Win)) {
    api::init().expect("a job of one process");
    let unit = size_of::<i64>() as i64;
    let (_, mut win) = api::win_allocate(64 * unit, unit, Info::NULL, Comm::SELF).expect("there is memory");
    api::win_lock_all(0, win).expect("no epoch is open");
    let mut value = 1;
    (0..count).for_each(|round| access(&mut value, round as i64 % 64, win));
    api::win_unlock_all(win).expect("it is locked");
    api::win_free(&mut win).expect("no epoch is open");
    api::finalize().expect("nobody else is there");
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_put(value: &mut i64, at: i64, win: Win) {
    let from: *const i64 = value;
    api::put(from.cast(), 1, INT64, 0, at, 1, INT64, win).expect("it is in the window");
    api::win_flush(0, win).expect("it is locked");
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_get(value: &mut i64, at: i64, win: Win) {
    let into: *mut i64 = value;
    api::get(into.cast(), 1, INT64, 0, at, 1, INT64, win).expect("it is in the window");
    api::win_flush(0, win).expect("it is locked");
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_fetch(value: &mut i64, at: i64, win: Win) {
    let mut old = 0_i64;
    let (from, into): (*const i64, *mut c_void) = (value, (&raw mut old).cast());
    api::fetch_and_op(from.cast(), into, INT64, 0, at, SUM, win).expect("it is in the window");
    api::win_flush(0, win).expect("it is locked");
}

#[allow(unsafe_code)]
fn lend(memory: &mut [u8]) -> Segments {
    // SAFETY: the requests end before the caller's borrow does.
    unsafe { Segments::from_raw(memory.as_mut_ptr(), memory.len()) }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_native_blocking(session: &Session, out: &mut [u8], into: &mut [u8]) {
    let (node, to) = (session.node(), (PeerId(0), Context(2), Tag(1)));
    node.send(&to, &lend(out), Hints::default()).expect("it is sent");
    let from = (Source::Peer(PeerId(0)), TagMatch::Exact(Tag(1)));
    node.call(|engine| engine.recv(from.0, Context(2), from.1, lend(into))).expect("it is there");
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_native(session: &Session, out: &mut [u8], into: &mut [u8]) {
    let [receive, send] = native_pair(session, out, into);
    session.node().wait(receive).expect("it is there");
    session.node().wait(send).expect("it is sent");
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_native_several(session: &Session, out: &mut [u8], into: &mut [u8]) {
    let pair = native_pair(session, out, into);
    session.node().wait_all(&pair, |outcome| assert!(outcome.is_ok()));
}

#[inline(always)]
fn native_pair(session: &Session, out: &mut [u8], into: &mut [u8]) -> [RequestId; 2] {
    let node = session.node();
    let from = (Source::Peer(PeerId(0)), TagMatch::Exact(Tag(1)));
    let receive = node.submit(|engine| engine.recv(from.0, Context(2), from.1, lend(into)));
    let send = node.submit_send(&(PeerId(0), Context(2), Tag(1)), &lend(out), Hints::default());
    [receive, send]
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_mpi_blocking(out: &[u8], into: &mut [u8]) {
    let mut status = Status::EMPTY;
    api::send(out.as_ptr().cast(), 8, BYTE, 0, 1, Comm::WORLD).expect("it is sent");
    let into = into.as_mut_ptr().cast();
    api::recv(into, 8, BYTE, 0, 1, Comm::WORLD, Some(&mut status)).expect("it is there");
    assert_eq!(status.count_bytes, 8);
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_mpi(out: &[u8], into: &mut [u8]) {
    let mut status = Status::EMPTY;
    let [mut receive, mut send] = mpi_pair(out, into);
    api::wait(&mut receive, Some(&mut status)).expect("it is there");
    api::wait(&mut send, None).expect("it is sent");
    assert_eq!(status.count_bytes, 8);
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_mpi_several(out: &[u8], into: &mut [u8]) {
    let mut statuses = [Status::EMPTY; 2];
    api::waitall(&mut mpi_pair(out, into), Some(&mut statuses)).expect("both have ended");
    assert_eq!(statuses[0].count_bytes, 8);
}

#[inline(always)]
fn mpi_pair(out: &[u8], into: &mut [u8]) -> [Request; 2] {
    let receive = api::irecv(into.as_mut_ptr().cast(), 8, BYTE, 0, 1, Comm::WORLD).expect("it is posted");
    let send = api::isend(out.as_ptr().cast(), 8, BYTE, 0, 1, Comm::WORLD).expect("it is submitted");
    [receive, send]
}
