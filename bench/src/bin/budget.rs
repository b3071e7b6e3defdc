//! The engine's cost in instructions, as a budget that a shared machine can check.
//!
//! Runs itself under callgrind with two numbers of messages; the difference is what messages cost, free of
//! start-up. Exit code 1 if a budget is exceeded, 3 if valgrind is missing or a case fails.
//!
//! With `--pairs` it measures instead what a trace costs a message in time: turns without and with one, one
//! after the other, so that what disturbs one of a pair disturbs the other too.

use std::process::{Command, ExitCode};
use std::time::Instant;

use nmad_bench::budget::{self, Case, Couple};
use nmad_bench::stats::Summary;

/// Messages of the two runs.
const FEW: u64 = 2_000;
const MANY: u64 = 12_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, case, count] = arguments.as_slice()
        && let (Some(case), Ok(count)) = (Case::named(case), count.parse())
    {
        budget::run(case, count);
        return ExitCode::SUCCESS;
    }
    if let [_, option] = arguments.as_slice()
        && option == "--pairs"
    {
        pairs();
        return ExitCode::SUCCESS;
    }
    if arguments.len() > 1 {
        eprintln!(
            "usage: budget            counts instructions per message with valgrind --tool=callgrind\n       \
             budget --pairs    measures what a trace costs a message in time"
        );
        return ExitCode::from(2);
    }
    check_all()
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
    let own = std::env::current_exe().ok()?;
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args([case.name(), &count.to_string()])
        .output()
        .ok()
        .filter(|ran| ran.status.success())?;
    let log = String::from_utf8_lossy(&ran.stderr).into_owned();
    let line = log.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(' ').next()?.trim().parse().ok()
}
