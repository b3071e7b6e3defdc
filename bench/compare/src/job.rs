//! A job under watch: its lines are read as they come, and it is ended if it falls silent.

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::facts::{Choice, Facts};
use crate::interrupt;

/// By which processes of a job are found, wherever its launcher has put them.
const MARK: &str = "COMPARE_JOB";
/// From the launcher's start until all ranks are there: rails that are not known yet are measured meanwhile.
const START_MIN: Duration = Duration::from_secs(60);
/// For what follows the last line, and for a launcher that was asked to end.
const END_LIMIT: Duration = Duration::from_secs(10);
const ASKED_LIMIT: Duration = Duration::from_secs(3);
const TICK: Duration = Duration::from_millis(50);
/// How much of what a job complained is repeated.
const COMPLAINT: usize = 300;

/// What a job says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Library(String),
    Begin(usize),
    Cell {
        number: usize,
        us: f64,
        low: f64,
        high: f64,
    },
    /// The circumstances of a cell, before its figure.
    Facts {
        number: usize,
        facts: Facts,
    },
    /// The library chooses an algorithm.
    Choice(Choice),
    Skip {
        number: usize,
        why: String,
    },
    /// What one rank did in an iteration of a program with a communication phase.
    Rank {
        number: usize,
        figures: RankFigures,
    },
    /// Microseconds of communication and of an iteration, and 10^9 operations in a second.
    Phase {
        number: usize,
        communication_us: f64,
        iteration_us: f64,
        gflops: f64,
    },
    End,
}

/// One rank in an iteration: means over all iterations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RankFigures {
    /// Which one.
    pub rank: u32,
    /// Microseconds in calls that send, receive and wait.
    pub communication_us: f64,
    /// Microseconds of calculation.
    pub calculation_us: f64,
    /// Microseconds in the collective at the end.
    pub synchronization_us: f64,
    /// Messages sent, fragments counted.
    pub messages: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Bytes by which resident memory grew at most, the program's own messages not counted; zero for the
    /// conjugate gradient.
    pub memory: u64,
}

/// Why a job did not do all of its cells.
#[derive(Debug, PartialEq)]
pub(crate) struct Failure {
    /// The one that it was at.
    pub(crate) cell: Option<usize>,
    pub(crate) why: String,
}

impl Said {
    /// Reads a line; none for what libraries print themselves.
    fn read(line: &str) -> Option<Said> {
        let fields: Vec<&str> = line.trim_end().split('\t').collect();
        let figure = |text: &str| text.parse::<f64>().ok().filter(|us| us.is_finite() && *us >= 0.0);
        match *fields {
            ["library", text] => Some(Said::Library(text.into())),
            ["begin", number] => Some(Said::Begin(number.parse().ok()?)),
            ["cell", number, us, low, high] => {
                let (us, low, high) = (figure(us)?, figure(low)?, figure(high)?);
                Some(Said::Cell { number: number.parse().ok()?, us, low, high })
            }
            ["facts", number, ref fields @ ..] => {
                Some(Said::Facts { number: number.parse().ok()?, facts: Facts::read(fields)? })
            }
            ["skip", number, why] => Some(Said::Skip { number: number.parse().ok()?, why: why.into() }),
            ["rank", number, rank, communication, calculation, synchronization, messages, bytes, memory] => {
                let figures = RankFigures {
                    rank: rank.parse().ok()?,
                    communication_us: figure(communication)?,
                    calculation_us: figure(calculation)?,
                    synchronization_us: figure(synchronization)?,
                    messages: messages.parse().ok()?,
                    bytes: bytes.parse().ok()?,
                    memory: memory.parse().ok()?,
                };
                Some(Said::Rank { number: number.parse().ok()?, figures })
            }
            ["phase", number, communication, iteration, gflops] => {
                let (communication_us, iteration_us) = (figure(communication)?, figure(iteration)?);
                let (number, gflops) = (number.parse().ok()?, figure(gflops)?);
                Some(Said::Phase { number, communication_us, iteration_us, gflops })
            }
            ["end"] => Some(Said::End),
            _ => None,
        }
    }
}

/// Runs a job and hands on what it says. It may be silent for `silence` at most.
pub(crate) fn run(
    mut command: Command,
    silence: Duration,
    each: &mut dyn FnMut(Said),
) -> Result<(), Failure> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    command.env(MARK, &mark).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let spawned = command.spawn();
    let mut child = spawned.map_err(|error| Failure {
        cell: None,
        why: format!("cannot start {}: {error}", command.get_program().display()),
    })?;
    let (tell, choices) = channel();
    let heard = Heard { lines: lines(&mut child), choices };
    let complaint = complaint(&mut child, Some(tell));
    let outcome = follow(&mut child, &heard, silence, each);
    // Also after a good end: a launcher may leave ranks behind that spin.
    let status = end(&mut child, &mark, outcome.is_ok());
    let said = match complaint.is_finished() || wait_for(&complaint) {
        true => complaint.join().unwrap_or_default(),
        false => String::new(),
    };
    outcome.map_err(|(cell, why)| Failure { cell, why: explain(why, status, &said) })
}

/// The reason why a job was not followed to its end.
enum Wrong {
    Silent(Duration),
    Ended,
    Interrupted(i32),
}

/// The output of a job, as it comes.
struct Heard {
    /// Lines of its standard output.
    lines: Receiver<String>,
    /// Choices among the lines of its standard error.
    choices: Receiver<Choice>,
}

fn follow(
    child: &mut Child,
    heard: &Heard,
    silence: Duration,
    each: &mut dyn FnMut(Said),
) -> Result<(), (Option<usize>, Wrong)> {
    let (mut cell, mut is_done) = (None, false);
    let (mut last, mut limit) = (Instant::now(), silence.max(START_MIN));
    let mut ended: Option<Instant> = None;
    loop {
        if let Some(signal) = interrupt::caught() {
            return Err((cell, Wrong::Interrupted(signal)));
        }
        match heard.lines.recv_timeout(TICK) {
            Ok(line) => {
                let Some(said) = Said::read(&line) else { continue };
                // Choices of the cell before would be taken for those of one that begins.
                heard.choices.try_iter().for_each(|choice| each(Said::Choice(choice)));
                last = Instant::now();
                limit = silence;
                match &said {
                    Said::Begin(number) => cell = Some(*number),
                    Said::Cell { .. } | Said::Skip { .. } => cell = None,
                    Said::End => (is_done, limit) = (true, END_LIMIT),
                    Said::Library(_)
                    | Said::Rank { .. }
                    | Said::Phase { .. }
                    | Said::Facts { .. }
                    | Said::Choice(_) => {}
                }
                each(said);
            }
            Err(RecvTimeoutError::Disconnected) if is_done => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err((cell, Wrong::Ended)),
            Err(RecvTimeoutError::Timeout) => {
                // Its children may keep the pipe open without saying more.
                if ended.is_none() && child.try_wait().is_ok_and(|status| status.is_some()) {
                    ended = Some(Instant::now());
                }
                let is_over = ended.is_some_and(|at| at.elapsed() > TICK * 10);
                let is_silent = last.elapsed() > limit;
                match is_done {
                    true if is_over || is_silent => return Ok(()),
                    false if is_over => return Err((cell, Wrong::Ended)),
                    false if is_silent => return Err((cell, Wrong::Silent(limit))),
                    _ => {}
                }
            }
        }
    }
}

fn lines(child: &mut Child) -> Receiver<String> {
    let (tell, lines) = channel();
    if let Some(out) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
                if tell.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
    }
    lines
}

/// The end of what it writes to standard error; choices of algorithms go to `choices`.
fn complaint(child: &mut Child, choices: Option<Sender<Choice>>) -> JoinHandle<String> {
    let err = child.stderr.take();
    std::thread::spawn(move || {
        let mut last = Vec::new();
        if let Some(err) = err {
            for line in BufReader::new(err).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim().to_string();
                if let (Some(choices), Some(choice)) = (&choices, Choice::read(&line)) {
                    // After the end of the job there is no listener.
                    let _ = choices.send(choice);
                    continue;
                }
                if line.chars().any(char::is_alphanumeric) {
                    last.push(line);
                    let surplus = last.len().saturating_sub(4);
                    last.drain(..surplus);
                }
            }
        }
        shorten(&last.join(" / "))
    })
}

fn wait_for<T>(thread: &JoinHandle<T>) -> bool {
    let begun = Instant::now();
    while !thread.is_finished() && begun.elapsed() < TICK * 10 {
        std::thread::sleep(TICK / 5);
    }
    thread.is_finished()
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(COMPLAINT) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.into(),
    }
}

fn explain(wrong: Wrong, status: Option<ExitStatus>, complaint: &str) -> String {
    let what = match wrong {
        Wrong::Interrupted(signal) => format!("was ended by {}", interrupt::name(signal)),
        Wrong::Silent(limit) => format!("said nothing for {} s and was ended", limit.as_secs()),
        Wrong::Ended => status.map_or("ended".to_string(), |status| format!("ended with {status}")),
    };
    if complaint.is_empty() { what } else { format!("{what}: {complaint}") }
}

/// Ends the launcher, asking first, and then everything that bears the mark.
fn end(child: &mut Child, mark: &str, is_good: bool) -> Option<ExitStatus> {
    if let Some(status) = wait(child, if is_good { END_LIMIT } else { TICK }) {
        remove(mark);
        return Some(status);
    }
    if let Some(pid) = Pid::from_raw(child.id() as i32) {
        let _ = kill_process(pid, Signal::TERM);
    }
    if wait(child, ASKED_LIMIT).is_none() {
        let _ = child.kill();
    }
    remove(mark);
    child.wait().ok()
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    wait_while(child, || begun.elapsed() < limit)
}

fn wait_while(child: &mut Child, goes_on: impl Fn() -> bool) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if goes_on() => std::thread::sleep(TICK / 5),
            _ => return None,
        }
    }
}

/// Kills every process that has `mark` in its environment.
fn remove(mark: &str) {
    let entry = format!("{MARK}={mark}");
    let Ok(processes) = fs::read_dir("/proc") else { return };
    for process in processes.flatten() {
        let Some(number) = process.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let has_mark = fs::read(process.path().join("environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == entry.as_bytes()));
        if let Some(pid) = Pid::from_raw(number).filter(|_| has_mark) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// What a command prints, if it ends well within `limit`; otherwise why not.
pub(crate) fn output(command: &mut Command, limit: Duration) -> Result<String, String> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let name = command.get_program().display().to_string();
    let mut child = child.map_err(|error| format!("cannot run {name}: {error}"))?;
    let (complaint, out) = (complaint(&mut child, None), child.stdout.take());
    let read = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.map(|mut out| out.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let begun = Instant::now();
    let goes_on = || begun.elapsed() < limit && interrupt::caught().is_none();
    let Some(status) = wait_while(&mut child, goes_on) else {
        let _ = child.kill();
        let _ = child.wait();
        if let Some(signal) = interrupt::caught() {
            return Err(format!("{name} was ended by {}", interrupt::name(signal)));
        }
        return Err(format!("{name} is not done within {} s", limit.as_secs()));
    };
    // Both end with it, unless it has left something behind.
    let said = if wait_for(&complaint) { complaint.join().unwrap_or_default() } else { String::new() };
    match status.success() {
        true if wait_for(&read) => Ok(read.join().unwrap_or_default()),
        true => Err(format!("{name} has ended, but its output is held open")),
        false => Err(format!("{name} ended with {status}: {said}")),
    }
}

#[cfg(test)]
mod tests;
