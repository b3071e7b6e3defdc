//! A program for the tests of this crate: the launcher, and ranks that misbehave in chosen ways.
//!
//! `launch-probe run ARGS...` is the launcher; `launch-probe rank WHAT [NUMBER]` is a rank.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use nmad_launch::pmi::spawn::{PARENT_PORT, Request, Wanted};
use nmad_launch::port::{self, Port};
use nmad_launch::{Bootstrap, Host, LaunchError, bootstrap, cli, refuse};

/// Time limit of waits for other processes.
const LIMIT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(code) = cli::as_agent(&words) {
        return code;
    }
    let mut words = words.into_iter();
    match words.next().unwrap_or_default().to_str() {
        Some("run") => launch(words),
        Some("rank") => {
            let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
            let number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
            rank(words.first().map_or("", String::as_str), number).unwrap_or_else(|error| {
                eprintln!("probe: {error}");
                ExitCode::from(9)
            })
        }
        _ => panic!("usage: launch-probe run ARGS... | launch-probe rank WHAT [NUMBER]"),
    }
}

fn launch(words: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let args = cli::parse("launch-probe run", words).unwrap_or_else(|error| error.exit());
    match cli::with_variables(args).and_then(|args| Ok((args, Host::from_env()?))) {
        Ok((args, hosts)) => cli::main(args, hosts),
        Err(error) => {
            eprintln!("probe: {error}");
            ExitCode::from(2)
        }
    }
}

fn rank(what: &str, number: u32) -> Result<ExitCode, LaunchError> {
    let mut job = match what {
        "lines" => return Ok(lines(number)),
        // Rank NUMBER finds its environment invalid before it joins, and stays, as the others do.
        "refuse" if std::env::var("PMI_RANK").is_ok_and(|rank| rank == number.to_string()) => {
            return Ok(refuses());
        }
        _ => bootstrap()?,
    };
    match what {
        "program" => {
            println!("rank {} of {}: {:?}", job.rank(), job.size(), job.program());
            job.finish().map(|()| ExitCode::SUCCESS)
        }
        "ring" => ring(job).map(|()| ExitCode::SUCCESS),
        // Exits with the code NUMBER without finalizing.
        "leave" => Ok(ExitCode::from(number as u8)),
        // Rank NUMBER dies by SIGSEGV while the others wait for it.
        "crash" => {
            job.fence()?;
            if job.rank() == number {
                let _ = signal_hook::low_level::emulate_default_handler(libc::SIGSEGV);
            }
            job.fence()?;
            Ok(ExitCode::SUCCESS)
        }
        // Rank 1 aborts the job with the code NUMBER, and stays.
        "abort" => {
            if job.rank() == 1 {
                job.abort(number as i32, "the disk is full");
            }
            job.fence()?;
            Ok(ExitCode::SUCCESS)
        }
        // Announces that it waits, and waits in a fence.
        "wait" | "refuse" => {
            println!("waiting");
            job.fence()?;
            Ok(ExitCode::SUCCESS)
        }
        // Spawns two processes of this or of the named program, and connects to them.
        "spawn" => spawn(job),
        // Connects to the process that spawned this one.
        "spawned" => {
            let port = job.preset(PARENT_PORT)?.unwrap_or_default();
            if job.rank() == 0 {
                let mut meeting = port::connect(&port, LIMIT)?;
                let words: Vec<String> = std::env::args().skip(3).collect();
                meeting.swap(format!("{} processes, {words:?}", job.size()).as_bytes())?;
            }
            job.finish().map(|()| ExitCode::SUCCESS)
        }
        // Rank NUMBER finalizes while the others wait in a fence.
        "early" => {
            if job.rank() != number {
                job.fence()?;
            }
            job.finish().map(|()| ExitCode::SUCCESS)
        }
        // Rank NUMBER exits with 5 after finalizing.
        "late" => {
            let mine = job.rank() == number;
            job.finish()?;
            Ok(ExitCode::from(if mine { 5 } else { 0 }))
        }
        other => panic!("there is no probe {other:?}"),
    }
}

fn spawn(mut job: Box<dyn Bootstrap>) -> Result<ExitCode, LaunchError> {
    let own = std::env::args().next().unwrap_or_default();
    let program = std::env::args().nth(3).unwrap_or(own);
    let args = ["rank", "spawned", ":", "two words"].map(String::from).to_vec();
    let port = Port::open(255, &[])?;
    let wanted = Wanted { program, args, count: 2, info: vec![("wdir".into(), "/".into())] };
    let preput = vec![(PARENT_PORT.into(), port.name().into())];
    job.spawn(&Request { programs: vec![wanted], preput })?;
    if let Some(mut meeting) = port.accept(Some(LIMIT))? {
        println!("met {}", String::from_utf8_lossy(&meeting.swap(b"")?));
    }
    job.finish().map(|()| ExitCode::SUCCESS)
}

fn refuses() -> ExitCode {
    refuse(7, "NMAD_CHUNK: \"much\" is no size");
    std::thread::sleep(LIMIT);
    ExitCode::SUCCESS
}

/// Every rank reads the values of all ranks.
fn ring(mut job: Box<dyn Bootstrap>) -> Result<(), LaunchError> {
    // One of them is very long.
    let lines = |rank: u32| if rank == 16 { 2_500 } else { rank as usize % 8 * 40 };
    let card = |rank: u32| format!("rank {rank}: {}", "100% of two\nlines; ".repeat(lines(rank)));
    job.put(&format!("card-{}", job.rank()), &card(job.rank()))?;
    job.fence()?;
    for rank in 0..job.size() {
        let value = job.get(&format!("card-{rank}"))?;
        assert_eq!(value.as_deref(), Some(card(rank).as_str()), "the card of rank {rank}");
    }
    assert_eq!(job.get("nobody")?, None);
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    println!(
        "rank {} of {} nodes {:?} local {}/{} where {:?} secret {:x?}",
        job.rank(),
        job.size(),
        job.nodes(),
        variable("NMAD_LOCAL_RANK"),
        variable("NMAD_LOCAL_SIZE"),
        variable("WHERE"),
        &job.secret()[..8],
    );
    job.fence()?;
    job.finish()
}

/// Writes lines in pieces: only a launcher that joins pieces keeps lines whole.
fn lines(count: u32) -> ExitCode {
    let mut out = std::io::stdout();
    for line in 0..count {
        for piece in ["line ", &format!("{line} "), &"x".repeat(200), " end\n"] {
            if out.write_all(piece.as_bytes()).and_then(|()| out.flush()).is_err() {
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
