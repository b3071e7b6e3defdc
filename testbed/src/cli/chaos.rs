//! `nmad testbed chaos`: a program runs while rails fail and come back.

use super::run::exit_code;
use crate::chaos::{Episode, schedule};
use crate::{Inside, Rate, Spec, Testbed, TestbedError};
use nmad_words::{say_line, tell_user};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

/// Where NewMadeleine's processes write their counts.
const STATS: &str = "NMAD_STATS";
/// Time between two looks at whether the program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Runs a program while rails fail and come back, one at a time
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  nmad testbed chaos --seed 7 -- nmad run -n 2 ./program
  nmad testbed --rails 1gbit,1gbit chaos --seconds 60 -- mpiexec -n 4 python job.py

A rail is switched off, swallows everything or one direction, flaps, loses its address, loses one in three to
five frames, or becomes narrow; the others are whole meanwhile. The same seed is the same schedule. When the
program has ended, the report says how long the longest stall was, what was sent again, and how often
rails were left and used again, as far as NewMadeleine has carried its messages. The exit code is the
program's.")]
pub struct ChaosArgs {
    /// What happens when
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// How long rails fail; the program may run on for as long as it likes
    #[arg(long, value_name = "N", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Only print what would happen
    #[arg(long)]
    pub dry: bool,
    /// The program with its arguments, behind `--`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Runs the program in this testbed, or, outside of one, in one of its own.
pub(super) fn run(args: &ChaosArgs, hosts: u32, rails: &[Rate]) -> Result<ExitCode, TestbedError> {
    match Inside::from_env()? {
        Some(inside) => run_inside(args, &inside),
        None if args.dry => {
            let rails = at_least_two(rails.len())?;
            schedule(args.seed, hosts, rails, Duration::from_secs(args.seconds)).iter().for_each(say_line);
            Ok(ExitCode::SUCCESS)
        }
        None => {
            at_least_two(rails.len())?;
            let testbed = Testbed::build(&Spec::new(hosts, rails.to_vec()))?;
            let words: Vec<OsString> = std::env::args_os().skip(1).collect();
            let program = std::env::current_exe().unwrap_or_else(|_| "nmad".into()).into_os_string();
            super::run::run(&testbed, &[vec![program], words].concat())
        }
    }
}

/// The number of rails, of which one is whole all the time.
fn at_least_two(rails: usize) -> Result<u32, TestbedError> {
    let what = "chaos needs two rails at least, of which one is whole all the time: --rails 1gbit,1gbit";
    if rails < 2 { Err(TestbedError::Spec { what: what.into() }) } else { Ok(rails as u32) }
}

fn run_inside(args: &ChaosArgs, inside: &Inside) -> Result<ExitCode, TestbedError> {
    let rates: Vec<Rate> = inside.hosts[0].rails()?.iter().map(|rail| rail.rate).collect();
    let (hosts, rails) = (inside.hosts.len() as u32, at_least_two(rates.len())?);
    let episodes = schedule(args.seed, hosts, rails, Duration::from_secs(args.seconds));
    if args.dry {
        episodes.iter().for_each(say_line);
        return Ok(ExitCode::SUCCESS);
    }
    // New and private: its name is known to the program alone.
    let folder = tempfile::Builder::new().prefix("nmad-chaos-").tempdir().map_err(|source| {
        let step = format!("make a folder in {}", std::env::temp_dir().display());
        TestbedError::Kernel { step, source, remedy: "set TMPDIR to a folder that may be written" }
    })?;
    let outcome = start(args, folder.path()).and_then(|child| drive(child, inside, &episodes, &rates));
    let report = Report::read(folder.path(), args.seed);
    let (status, happened) = outcome?;
    report.print(happened);
    Ok(exit_code(status))
}

fn start(args: &ChaosArgs, folder: &Path) -> Result<Child, TestbedError> {
    let mut command = Command::new(args.command.first().cloned().unwrap_or_default());
    command.args(args.command.iter().skip(1)).env(STATS, folder);
    command.spawn().map_err(|source| TestbedError::Start {
        host: "host0".into(),
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })
}

/// Makes the changes at their times until the program ends, and leaves all rails whole; how it has ended, and
/// how many episodes there were.
fn drive(
    mut child: Child,
    inside: &Inside,
    episodes: &[Episode],
    rates: &[Rate],
) -> Result<(ExitStatus, usize), TestbedError> {
    let begun = Instant::now();
    for (number, episode) in episodes.iter().enumerate() {
        let mut told = Some(episode);
        for (at, change) in episode.changes(rates) {
            let mut ended = None;
            while ended.is_none() && begun.elapsed() < at {
                std::thread::sleep(LOOK.min(at.saturating_sub(begun.elapsed())));
                ended = child.try_wait().ok().flatten();
            }
            if let Some(status) = ended {
                // An episode that has begun ends all the same.
                if told.is_none() {
                    inside.set(&change)?;
                }
                return Ok((status, number + usize::from(told.is_none())));
            }
            told.take().into_iter().for_each(|episode| tell_user(format_args!("chaos: {episode}")));
            inside.set(&change)?;
        }
    }
    let status = child.wait().map_err(|source| TestbedError::Kernel {
        step: "wait for the program".into(),
        source,
        remedy: "was it taken over by another process?",
    })?;
    Ok((status, episodes.len()))
}

/// What the processes of the program have written.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    seed: u64,
    processes: usize,
    stall_us: u64,
    rails: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Report {
    fn read(folder: &Path, seed: u64) -> Report {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.fold(Report { seed, ..Report::default() }, Report::with)
    }

    /// Adds what one process has written.
    fn with(mut self, text: String) -> Report {
        self.processes += 1;
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["stall_us", us] => self.stall_us = self.stall_us.max(us.parse().unwrap_or(0)),
                ["rail", name, ref counts @ ..] => {
                    let sums = self.rails.entry(name.to_owned()).or_default();
                    for pair in counts.chunks_exact(2) {
                        *sums.entry(pair[0].to_owned()).or_default() += pair[1].parse().unwrap_or(0);
                    }
                }
                _ => {}
            }
        }
        self
    }

    fn print(&self, episodes: usize) {
        let seed = self.seed;
        say_line(format_args!("chaos: seed {seed}, {episodes} episodes"));
        if self.processes == 0 {
            return say_line("chaos: no process of the program has used NewMadeleine to its end");
        }
        let ms = self.stall_us as f64 / 1e3;
        let count = self.processes;
        say_line(format_args!("chaos: {count} processes, longest stall {ms:.1} ms"));
        for (name, sums) in &self.rails {
            let sum = |what: &str| sums.get(what).copied().unwrap_or(0);
            say_line(format_args!(
                "chaos: {name}: {} B, sent again {} B, arrived twice {}, left {} times, used again {} times",
                sum("bytes"),
                sum("again_bytes"),
                sum("duplicates"),
                sum("left"),
                sum("returned")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_processes_write_is_added_up() {
        let one = "stall_us 12000\nrail tcp/r0 bytes 10 again_bytes 1 duplicates 0 left 1 returned 1\n";
        let other = "stall_us 9000\nrail tcp/r0 bytes 5 again_bytes 2 duplicates 3 left 0 returned 0\n";
        let report = Report::default().with(one.into()).with(other.into());
        assert_eq!((report.processes, report.stall_us), (2, 12_000));
        let sums = &report.rails["tcp/r0"];
        assert_eq!((sums["bytes"], sums["again_bytes"], sums["duplicates"], sums["left"]), (15, 3, 3, 1));
    }
}
