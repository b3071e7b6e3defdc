//! `nmad demo`: two hosts, two unequal rails, and what each strategy makes of them.
//!
//! The process that the user starts builds the hosts and runs this very program there as two ranks, twice: to
//! measure ([`rates`]), and to trace one message under some strategies ([`timeline`]).

mod args;
mod rates;
mod report;
mod timeline;

use nmad_bench::pattern::BenchError;
use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) use args::DemoArgs;
use args::Part;

use crate::output::{Failure, USAGE, complain, say_line};
use crate::stage::{Stage, is_in_job};

/// Runs the demonstration, or a rank's part of it.
pub(crate) fn main(args: &DemoArgs) -> ExitCode {
    match args.part {
        Some(part) if is_in_job() => match rank(args, part) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => Failure::from(error).complain("demo"),
        },
        Some(_) => complain("demo", &"--part is for the ranks that the demonstration starts", USAGE),
        None if is_in_job() => {
            let why = "it starts its ranks itself: run it without a launcher";
            complain("demo", &why, USAGE)
        }
        None => direct(args).unwrap_or_else(|why| complain("demo", &why, 1)),
    }
}

fn rank(args: &DemoArgs, part: Part) -> Result<(), BenchError> {
    match part {
        Part::Rates => rates::run(args),
        Part::Timeline => timeline::run(args),
    }
}

/// Builds the stage, has the ranks play, and shows what they leave behind.
fn direct(args: &DemoArgs) -> Result<ExitCode, String> {
    std::fs::create_dir_all(&args.out)
        .map_err(|error| format!("cannot make the folder {}: {error}", args.out.display()))?;
    let stage = if args.here { Stage::here(&args.rails) } else { Stage::build(&args.rails) };
    if !args.json {
        say_line(format_args!("{}, {}\n", stage.name(), args.rail_names().join(" + ")));
    }
    let words = |part: &str| -> Vec<OsString> {
        std::env::args_os().skip(1).chain(["--part".into(), part.into()]).collect()
    };
    let code = stage.run(&words("rates"), &[]);
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let trace = args.out.join("trace");
    // Those of an earlier demonstration.
    for rank in 0..2 {
        let _ = std::fs::remove_file(timeline::rank_file(&trace, rank));
    }
    let traced = [("NMAD_TRACE".to_string(), trace.display().to_string())];
    let code = stage.run(&words("timeline"), &traced);
    if code == ExitCode::SUCCESS {
        timeline::draw(args, &trace)?;
    }
    Ok(code)
}
