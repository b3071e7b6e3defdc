//! Whole jobs: processes that the launcher starts, on this host and on hosts of a testbed.
//!
//! This binary is four things: the test (has cases tried), one case (starts its jobs), the program of the
//! ranks (when a launcher has started it), and the command that enters a host of the testbed. A case names
//! what its ranks do and how the job must end.

mod capture;
mod cases;
mod ciphers;
mod datagrams;
mod lost;
mod messages;
mod node;
mod profiles;
mod refused;
mod runtime;
mod strangers;
mod strategies;

use nmad_launch::{ExitReport, Host, Job, Placement};
use nmad_testbed::{Rate, Spec, Testbed};
use std::path::Path;
use std::process::{Command, ExitCode, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Which case a rank belongs to.
const CASE: &str = "NMAD_TEST_CASE";
/// Which of several jobs, from zero.
const ROUND: &str = "NMAD_TEST_ROUND";

/// What the process of one case ends with if it cannot be tried here.
const SKIPPED: u8 = 77;
/// Cases that are tried at once: mostly they wait. Each has a process, since a launcher catches signals. What
/// measures rails is tried alone.
const AT_ONCE: usize = 2;
/// Cases that are tried at once beside those, of the ones that wait for many seconds.
const WAITING: usize = 5;

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
    /// Runs in the launcher before it starts the job.
    pub before: fn(),
    /// What each rank does; a panic fails the case.
    pub rank: fn(),
    /// The exit code that the job must have.
    pub code: i32,
    /// Jobs, one after the other, that share a cache folder.
    pub rounds: u32,
    /// It waits for many seconds without work, so others are tried meanwhile.
    pub waits: bool,
}

impl Case {
    /// Whether its ranks measure their rails, which other cases would disturb.
    fn measures(&self) -> bool {
        !self.waits && self.env.iter().any(|(key, value)| *key == "NMAD_SAMPLE" && *value != "off")
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == "testbed-enter") {
        return enter(&arguments[2..]);
    }
    let named = |name: &str| cases::ALL.iter().find(|case| case.name == name).expect("a case of this name");
    if let Ok(name) = std::env::var(CASE) {
        (named(&name).rank)();
        return ExitCode::SUCCESS;
    }
    if let [_, word, name] = &arguments[..]
        && word == "case"
    {
        return try_one(named(name));
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

/// Bytes that differ with the seed and from place to place.
pub fn pattern(len: usize, seed: usize) -> Vec<u8> {
    // It repeats itself then; byte by byte it would take long, since tests are not optimised.
    const PERIOD: usize = 251 * 128;
    let byte = |i: usize| (i * 31 + i / 251 + seed * 7) as u8;
    let mut all = (0..len.min(PERIOD)).map(byte).collect::<Vec<u8>>().repeat(len.div_ceil(PERIOD));
    all.truncate(len);
    all
}

fn run_all(filter: &str) -> ExitCode {
    let wanted = |case: &&Case| case.name.contains(filter);
    let (measuring, others): (Vec<&Case>, Vec<&Case>) =
        cases::ALL.iter().filter(wanted).partition(|case| case.measures());
    let (waiting, working): (Vec<&Case>, Vec<&Case>) = others.into_iter().partition(|case| case.waits);
    let counts = Mutex::new([0; 3]);
    for groups in [vec![(waiting, WAITING), (working, AT_ONCE)], vec![(measuring, 1)]] {
        std::thread::scope(|scope| {
            for (cases, at_once) in groups {
                let cases = Arc::new(Mutex::new(cases.into_iter()));
                for _ in 0..at_once {
                    let (cases, counts) = (cases.clone(), &counts);
                    scope.spawn(move || {
                        while let Some(case) = { cases.lock().unwrap().next() } {
                            let ended = in_a_process(case);
                            counts.lock().unwrap()[ended as usize] += 1;
                        }
                    });
                }
            }
        });
    }
    let [passed, failed, skipped] = counts.into_inner().unwrap();
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    ExitCode::from(u8::from(failed > 0))
}

/// How a case ended.
enum Verdict {
    Passed,
    Failed,
    Skipped,
}

fn in_a_process(case: &Case) -> Verdict {
    let own = std::env::current_exe().expect("this program has a path");
    let ended = Command::new(own).args(["case", case.name]).output().expect("this program starts");
    let Output { status, stdout, stderr } = ended;
    let (verdict, word) = match status.code() {
        Some(0) => (Verdict::Passed, "ok"),
        Some(code) if code == i32::from(SKIPPED) => (Verdict::Skipped, "skipped"),
        _ => (Verdict::Failed, "FAILED"),
    };
    let said = String::from_utf8_lossy(&stderr).into_owned() + &String::from_utf8_lossy(&stdout);
    println!("{said}test {} ... {word}", case.name);
    verdict
}

fn try_one(case: &Case) -> ExitCode {
    let (placement, testbed) = match surroundings(case) {
        Ok(surroundings) => surroundings,
        Err(why) => {
            println!("skipped: {why}");
            return ExitCode::from(SKIPPED);
        }
    };
    (case.before)();
    let cache = tempfile::tempdir().expect("a folder can be made");
    let mut rounds = (0..case.rounds).map(|round| run(case, &placement, (cache.path(), round)));
    let wrong = rounds.find(|ended| *ended != Some(case.code));
    drop(testbed);
    if let Some(ended) = wrong {
        println!("it ended with {ended:?}, not with {}", case.code);
    }
    ExitCode::from(u8::from(wrong.is_some()))
}

fn surroundings(case: &Case) -> Result<(Placement, Option<Testbed>), String> {
    if case.rails.is_empty() {
        return Ok((Placement::Here, None));
    }
    let testbed = Testbed::build(&Spec::new(2, case.rails.to_vec())).map_err(|e| e.to_string())?;
    let hosts = Host::parse_list(&testbed.environment()).map_err(|e| e.to_string())?;
    Ok((Placement::Hosts { hosts, each: 1 }, Some(testbed)))
}

fn run(case: &Case, placement: &Placement, (cache, round): (&Path, u32)) -> Option<i32> {
    let own = std::env::current_exe().expect("this program has a path");
    let mut job = Job::new(own, [] as [&str; 0], case.ranks);
    if let Placement::Hosts { hosts, .. } = placement {
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
    job.output.tag = true;
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
