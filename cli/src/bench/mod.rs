//! `nmad bench`: parses, finds two ranks to run in, and prints what `nmad_bench::pattern` measures.

mod args;
mod beside;
mod compare;
mod decided;
mod failover;
mod imbalance;
mod interference;
mod io;
mod offload;
mod overlap;
mod predicted;
mod regret;
mod report;
mod rounds;
mod shared;

use newmadeleine::{Options, Session};
use nmad_bench::pattern::{BenchError, Pair, Row, Yard, bandwidth, latency, multiseg, rate};
use nmad_bench::pattern::{threads, thresholds};
use nmad_bench::plain::bandwidth::Way;
use std::process::ExitCode;

pub(crate) use args::BenchArgs;
use args::{Common, Compared, Pattern, What};
use report::{Better, Report};

use crate::output::{Failure, USAGE, complain};
use crate::settings;
use crate::stage::{Stage, is_in_job};

/// Runs the benchmark, here if this is a rank of a job, else as two ranks that it starts itself.
pub(crate) fn main(args: &BenchArgs) -> ExitCode {
    match &args.what {
        What::Measured(pattern) => ranked(pattern),
        What::Decision(args) => decided::run(args),
        What::Compare(args) => compare::main(args),
        What::Imbalance(args) => imbalance::main(args),
        What::Io(args) => io::main(args),
    }
}

fn ranked(pattern: &Pattern) -> ExitCode {
    let common = pattern.common();
    if let Err(why) = settings::strategies(&common.strategy) {
        return complain("bench", &why, USAGE);
    }
    if !is_in_job() {
        let words: Vec<_> = std::env::args_os().skip(1).collect();
        let unbound = || stage(&pattern.staged()).run_ranks(2, &words, &[]);
        return match pattern {
            // What two flows share is an interface.
            Pattern::Fairness(_) => stage(common).over_interfaces().run_ranks(4, &words, &[]),
            Pattern::Failover(args) => failover::main(args, &stage(&args.with_two_rails())),
            // Other cores than the caller's take part, or other threads of a rank.
            Pattern::Overlap(_) | Pattern::Offload(_) | Pattern::Interference(_) => unbound(),
            Pattern::Compared(Compared::Threads(_)) => unbound(),
            _ => stage(&pattern.staged()).run(&words, &[]),
        };
    }
    match measure(pattern) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::from(error).complain("bench"),
    }
}

fn stage(common: &Common) -> Stage {
    let stage = match common.here {
        true => Stage::here(&common.rails),
        false => Stage::given().unwrap_or_else(|| Stage::build(&common.rails)),
    };
    stage.over(&common.driver)
}

fn measure(pattern: &Pattern) -> Result<(), BenchError> {
    let options = pattern.common().driver.of(Options::load()?)?;
    let session = Session::open_with(&options)?;
    if let Pattern::Fairness(args) = pattern {
        shared::run(&session, &options.throttle, args)?;
        return Ok(session.close()?);
    }
    let pair = Pair::of(&session)?;
    let common = pattern.common();
    let compares = match pattern {
        Pattern::Compared(compared) => {
            use Compared::{Multiseg, Regret, Threads, Thresholds};
            !matches!(compared, Multiseg(_) | Regret(_) | Threads(_) | Thresholds(_))
        }
        Pattern::Prediction(_) | Pattern::Fairness(_) | Pattern::Failover(_) => false,
        Pattern::Overlap(_) | Pattern::Offload(_) | Pattern::Interference(_) => false,
    };
    let yard = match common.with_plain() && compares {
        true => Some(Yard::survey(pair, &options.throttle)?),
        false => None,
    };
    match pattern {
        Pattern::Prediction(sizes) => predicted::run(pair, sizes)?,
        Pattern::Fairness(_) => {}
        Pattern::Failover(args) => failover::run(pair, args)?,
        Pattern::Overlap(args) => overlap::run(pair, args)?,
        Pattern::Offload(args) => offload::run(pair, args)?,
        Pattern::Interference(args) => interference::run(pair, args)?,
        Pattern::Compared(compared) => {
            let mut report = report(compared, &options, &session);
            run(compared, pair, yard.as_ref(), &mut |row| report.row(row))?;
            if pair.is_active() {
                report.end();
            }
        }
    }
    session.close()?;
    Ok(())
}

fn run(
    pattern: &Compared,
    pair: Pair<'_>,
    yard: Option<&Yard>,
    each: &mut dyn FnMut(&Row),
) -> Result<(), BenchError> {
    match pattern {
        Compared::Latency(args) => {
            let Common { strategy, repeat, .. } = args.common.clone();
            let lens = args.size.clone().unwrap_or_else(|| latency::Plan::LENS.to_vec());
            latency::run(pair, &latency::Plan::of(lens, repeat.unwrap_or(21), strategy), yard, each)
        }
        Compared::Bandwidth(args) => {
            let Common { strategy, repeat, .. } = args.sizes.common.clone();
            let lens = args.sizes.size.clone().unwrap_or_else(|| bandwidth::Plan::LENS.to_vec());
            let way = if args.one_way { Way::OneWay } else { Way::PingPong };
            let plan = bandwidth::Plan { lens, repeat: repeat.unwrap_or(11), way, strategies: strategy };
            bandwidth::run(pair, &plan, yard, each)
        }
        Compared::Rate(args) => {
            let Common { strategy, repeat, .. } = args.sizes.common.clone();
            let lens = args.sizes.size.clone().unwrap_or_else(|| vec![8]);
            let plan = rate::Plan::of(lens, repeat.unwrap_or(21), strategy);
            rate::run(pair, &rate::Plan { window: args.window, ..plan }, yard, each)
        }
        Compared::Threads(args) => {
            let lens = args.sizes.size.clone().unwrap_or_else(|| vec![8, 4096]);
            let plan = threads::Plan::of(lens, args.sizes.common.repeat.unwrap_or(11));
            let counts = args.count.clone().unwrap_or_else(|| plan.counts.clone());
            threads::run(pair, &threads::Plan { counts, window: args.window, ..plan }, each)
        }
        Compared::Thresholds(args) => {
            let Common { repeat, .. } = args.sizes.common.clone();
            let lens = args.sizes.size.clone().unwrap_or_else(|| thresholds::Plan::LENS.to_vec());
            thresholds::run(
                pair,
                &thresholds::Plan { lens, repeat: repeat.unwrap_or(21), two: args.two },
                each,
            )
        }
        Compared::Regret(args) => regret::run(pair, args, each),
        Compared::Multiseg(args) => {
            let Common { strategy, repeat, .. } = args.common.clone();
            let plan = multiseg::Plan::of(repeat.unwrap_or(21), strategy);
            let counts = args.count.clone().unwrap_or_else(|| plan.counts.clone());
            multiseg::run(pair, &multiseg::Plan { counts, len: args.size, ..plan }, each)
        }
    }
}

fn report(pattern: &Compared, options: &Options, session: &Session) -> Report {
    let strategy = options.strategy.clone().unwrap_or_else(|| Options::DEFAULT_STRATEGY.into());
    let rails = session.rails().into_iter().filter(|rail| !rail.address.is_empty() && rail.peers > 0);
    let report = Report::new(pattern.common().json, strategy, rails.map(|rail| rail.name).collect());
    match pattern {
        Compared::Latency(_) => report.of("latency", "half round trip", "us", Better::Less),
        Compared::Bandwidth(args) if args.one_way => report.of("bandwidth", "one way", "MB/s", Better::More),
        Compared::Bandwidth(_) => report.of("bandwidth", "there and back", "MB/s", Better::More),
        Compared::Rate(_) => report.of("rate", "message rate", "M/s", Better::More),
        Compared::Threads(_) => report.of("threads", "message rate of all threads", "M/s", Better::More),
        Compared::Thresholds(args) => {
            let what = if args.two { "half round trip of two messages" } else { "half round trip" };
            report.of("thresholds", what, "us", Better::Ratio)
        }
        Compared::Regret(args) => report.of("regret", regret::title(args), "us", Better::Ratio),
        Compared::Multiseg(_) => {
            report.of("multiseg", "half round trip of several messages", "us", Better::Ratio)
        }
    }
}
