//! Whole jobs: processes that the launcher starts, on this host and on hosts of a testbed.
//!
//! This binary is three things: the test (starts jobs), the program of the ranks (when a launcher has
//! started it), and the command that enters a host of the testbed. A case names what its ranks do and how
//! the job must end.

mod cases;
mod datagrams;
mod node;
mod profiles;
mod refused;
mod runtime;
mod strategies;

use nmad_launch::{ExitReport, Host, Job, Placement};
use nmad_testbed::{Rate, Spec, Testbed};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Which case a rank belongs to.
const CASE: &str = "NMAD_TEST_CASE";
/// Which of several jobs, from zero.
const ROUND: &str = "NMAD_TEST_ROUND";

/// A test and its surroundings.
pub struct Case {
    /// The expectation, in a few words.
    pub name: &'static str,
    /// Ranks of the job.
    pub ranks: u32,
    /// Rails of a testbed of two hosts; none: the job runs on this host.
    pub rails: &'static [Rate],
    /// Settings of the ranks.
    pub env: &'static [(&'static str, &'static str)],
    /// What each rank does; a panic fails the case.
    pub rank: fn(),
    /// The exit code that the job must have.
    pub code: i32,
    /// Jobs, one after the other, that share a cache folder.
    pub rounds: u32,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == "testbed-enter") {
        return enter(&arguments[2..]);
    }
    if let Ok(name) = std::env::var(CASE) {
        let case = cases::ALL.iter().find(|case| case.name == name).expect("a case of this name");
        (case.rank)();
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().skip(1).find(|word| !word.starts_with('-'));
    run_all(filter.map_or("", |word| word))
}

fn enter(words: &[String]) -> ExitCode {
    let (pid, program) = words.split_first().expect("the process whose host it is");
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]);
    eprintln!("{}", nmad_testbed::enter(pid.parse().expect("a process id"), command));
    ExitCode::FAILURE
}

fn run_all(filter: &str) -> ExitCode {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for case in cases::ALL.iter().filter(|case| case.name.contains(filter)) {
        let ended = match surroundings(case) {
            Ok((placement, testbed)) => {
                let cache = tempfile::tempdir().expect("a folder can be made");
                let mut rounds = (0..case.rounds).map(|round| run(case, &placement, (cache.path(), round)));
                let ended = rounds.find(|ended| *ended != Some(case.code)).unwrap_or(Some(case.code));
                drop(testbed);
                ended
            }
            Err(why) => {
                println!("test {} ... skipped: {why}", case.name);
                skipped += 1;
                continue;
            }
        };
        let verdict = if ended == Some(case.code) { "ok" } else { "FAILED" };
        println!("test {} ... {verdict} (ended with {ended:?})", case.name);
        *(if verdict == "ok" { &mut passed } else { &mut failed }) += 1;
    }
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    ExitCode::from(u8::from(failed > 0))
}

fn surroundings(case: &Case) -> Result<(Placement, Option<Testbed>), String> {
    if case.rails.is_empty() {
        return Ok((Placement::Here, None));
    }
    let testbed = Testbed::build(&Spec::new(2, case.rails.to_vec())).map_err(|e| e.to_string())?;
    let hosts = Host::parse_list(&testbed.environment()).map_err(|e| e.to_string())?;
    Ok((Placement::Hosts(hosts), Some(testbed)))
}

fn run(case: &Case, placement: &Placement, (cache, round): (&Path, u32)) -> Option<i32> {
    let own = std::env::current_exe().expect("this program has a path");
    let mut job = Job::new(own, [] as [&str; 0], case.ranks);
    if let Placement::Hosts(hosts) = placement {
        let text: Vec<String> =
            hosts.iter().map(|host| format!("{}={}", host.name, host.prefix.join(" "))).collect();
        job.env.push((nmad_testbed::ENVIRONMENT.into(), text.join(";").into()));
    }
    job.placement = placement.clone();
    job.env.push((CASE.into(), case.name.into()));
    job.env.push((ROUND.into(), round.to_string().into()));
    // What the user keeps is not touched, and time is for the cases that are about measuring.
    job.env.push(("XDG_CACHE_HOME".into(), cache.into()));
    job.env.push(("NMAD_SAMPLE".into(), "off".into()));
    job.env.extend(case.env.iter().map(|(key, value)| (key.into(), value.into())));
    // One of them may make no long file, which this test may write to.
    job.tag_output = true;
    job.timeout = Some(Duration::from_secs(60));
    // Ranks that look at the death of another must live a little longer than it.
    job.grace = Duration::from_secs(8);
    match nmad_launch::run(job) {
        Ok(ExitReport { code, .. }) => Some(code),
        Err(why) => {
            println!("{why}");
            None
        }
    }
}
