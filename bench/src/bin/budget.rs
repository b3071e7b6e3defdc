//! The engine's cost in instructions, as a budget that a shared machine can check.
//!
//! Runs itself under callgrind with two numbers of messages; the difference is what messages cost, free of
//! start-up. Exit code 1 if a budget is exceeded, 3 if valgrind is missing or a case fails.

use std::process::{Command, ExitCode};

use nmad_bench::budget::{self, Case};

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
    if arguments.len() > 1 {
        eprintln!("usage: budget    (counts instructions per message with valgrind --tool=callgrind)");
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
