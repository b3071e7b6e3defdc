//! The engine's cost in instructions, as a budget that a shared machine can check.
//!
//! Runs itself under callgrind with two numbers of messages; the difference is what messages cost, free of
//! start-up. Exit code 1 if a budget is exceeded, 3 if valgrind is missing or a case fails. `budget over`
//! does the same with the drivers of networks on an interface.
//!
//! With `pairs` it measures instead what a trace costs a message in time: turns without and with one, one
//! after the other, so that what disturbs one of a pair disturbs the other too.

use std::process::{Command, ExitCode, Output};
use std::time::Instant;

use nmad_bench::budget::callgrind::{self, Counted};
use nmad_bench::budget::{self, Case, Couple, network};
use nmad_bench::stats::Summary;

/// Messages of the two runs.
const FEW: u64 = 2_000;
const MANY: u64 = 12_000;
/// The same over a network, where each is waited for.
const FEW_OVER: u64 = 20;
const MANY_OVER: u64 = 120;
/// What a driver may cost beside the first that is named.
const RATIO: f64 = 1.2;
/// Libraries of providers, whose instructions are not ours.
const PROVIDERS: [&str; 5] = ["libibverbs", "librxe", "libmlx", "libfabric", "libsiw"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => check_all(),
        ["pairs"] => {
            pairs();
            ExitCode::SUCCESS
        }
        ["over", interface, drivers @ ..] if !drivers.is_empty() => check_over(interface, drivers),
        ["carry", driver, interface, count] => carry(driver, interface, count),
        [case, count] => match (Case::named(case), count.parse()) {
            (Some(case), Ok(count)) => {
                budget::run(case, count);
                ExitCode::SUCCESS
            }
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: budget          counts instructions per message with valgrind --tool=callgrind\n       \
         budget pairs    measures what a trace costs a message in time\n       \
         budget over INTERFACE DRIVER...    counts with drivers; none may cost {RATIO} times the first"
    );
    ExitCode::from(2)
}

fn check_all() -> ExitCode {
    let mut exceeded = false;
    for case in Case::ALL {
        let (Some(few), Some(many)) = (instructions(case, FEW), instructions(case, MANY)) else {
            eprintln!("{}: valgrind is missing or did not run to its end", case.describe());
            return ExitCode::from(3);
        };
        let each = (many - few) / (MANY - FEW);
        let verdict = if each <= case.budget() { "ok" } else { "EXCEEDED" };
        println!(
            "{:<44} {each:>5} instructions a message, budget {:>5}: {verdict}",
            case.describe(),
            case.budget()
        );
        exceeded |= each > case.budget();
    }
    ExitCode::from(u8::from(exceeded))
}

/// Messages of a turn, and turns of each way.
const TURN: u64 = 20_000;
const TURNS: usize = 201;

/// Prints what a trace costs, on both sides of a message together, and its part of their time where a rank
/// sends or receives a million messages in a second.
fn pairs() {
    let (mut plain, mut traced) = (Couple::timed(Case::Direct), Couple::timed(Case::Traced));
    let turn = |couple: &mut Couple| {
        let start = Instant::now();
        couple.carry(TURN);
        start.elapsed().as_nanos() as f64 / TURN as f64
    };
    let pairs: Vec<[f64; 2]> = (0..TURNS).map(|_| [turn(&mut plain), turn(&mut traced)]).collect();
    let summary = |of: &dyn Fn(&[f64; 2]) -> f64| {
        Summary::of(&pairs.iter().map(of).collect::<Vec<_>>()).expect("there are turns")
    };
    let (without, more) = (summary(&|pair| pair[0]), summary(&|pair| pair[1] - pair[0]));
    // A side has a microsecond for each message.
    let percent = |ns: f64| ns / 2.0 / 1_000.0 * 100.0;
    println!(
        "8 B, past the window, send and receive: {:.0} ns without a trace, {:.1} ns more with one (quartiles \
         {:.1} .. {:.1}); at 1 M messages per second {:.1} % of each side's time ({:.1} .. {:.1})",
        without.median,
        more.median,
        more.lower,
        more.upper,
        percent(more.median),
        percent(more.lower),
        percent(more.upper)
    );
}

/// Instructions of a whole run, as callgrind counts them.
fn instructions(case: Case, count: u64) -> Option<u64> {
    let ran = counted(&["--callgrind-out-file=/dev/null"], &[case.name(), &count.to_string()])?;
    let log = String::from_utf8_lossy(&ran.stderr).into_owned();
    let line = log.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(' ').next()?.trim().parse().ok()
}

/// Runs this program under callgrind. None: valgrind is missing, or the run has failed, and has said why.
fn counted(options: &[&str], arguments: &[&str]) -> Option<Output> {
    let own = std::env::current_exe().ok()?;
    let mut command = Command::new("valgrind");
    let ran = command.arg("--tool=callgrind").args(options).arg(own).args(arguments).output().ok()?;
    if !ran.status.success() {
        eprint!("{}", String::from_utf8_lossy(&ran.stderr));
    }
    ran.status.success().then_some(ran)
}

fn carry(driver: &str, interface: &str, count: &str) -> ExitCode {
    let Ok(count) = count.parse() else { return usage() };
    match network::run(driver, interface, count) {
        Ok(turns) => {
            println!("{turns}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{driver}: {why}");
            ExitCode::from(3)
        }
    }
}

/// Instructions and turns of the pump of each message.
struct Each {
    own: f64,
    libraries: f64,
    turns: f64,
}

fn check_over(interface: &str, drivers: &[&str]) -> ExitCode {
    let (mut first, mut exceeded) = (None, false);
    for driver in drivers {
        let Some(Each { own, libraries, turns }) = over(driver, interface) else {
            eprintln!("{driver}: valgrind is missing or did not run to its end");
            return ExitCode::from(3);
        };
        let ratio = own / *first.get_or_insert(own);
        let verdict = if ratio <= RATIO { "ok" } else { "EXCEEDED" };
        println!(
            "8 B over {driver}, send and receive: {own:.0} instructions, {libraries:.0} more in libraries of \
             providers, {turns:.2} turns; {ratio:.2} of {}, at most {RATIO}: {verdict}",
            drivers[0]
        );
        exceeded |= ratio > RATIO;
    }
    ExitCode::from(u8::from(exceeded))
}

fn over(driver: &str, interface: &str) -> Option<Each> {
    let (few, few_turns) = counted_over(driver, interface, FEW_OVER)?;
    let (many, many_turns) = counted_over(driver, interface, MANY_OVER)?;
    let each = |few: u64, many: u64| many.saturating_sub(few) as f64 / (MANY_OVER - FEW_OVER) as f64;
    let own = |counted: Counted| counted.all - counted.libraries;
    Some(Each {
        own: each(own(few), own(many)),
        libraries: each(few.libraries, many.libraries),
        turns: each(few_turns, many_turns),
    })
}

fn counted_over(driver: &str, interface: &str, count: u64) -> Option<(Counted, u64)> {
    let out = tempfile::NamedTempFile::new().ok()?;
    let file = format!("--callgrind-out-file={}", out.path().display());
    let options = ["--toggle-collect=measured_*", "--compress-strings=no", "--compress-pos=no", &file];
    let ran = counted(&options, &["carry", driver, interface, &count.to_string()]);
    let text = std::fs::read_to_string(out.path());
    let turns = String::from_utf8_lossy(&ran?.stdout).trim().parse().ok()?;
    Some((callgrind::read(&text.ok()?, &PROVIDERS)?, turns))
}
