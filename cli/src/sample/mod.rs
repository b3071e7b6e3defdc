//! `nmad sample`: measures the rails anew, whatever is known of them, and shows what was found.

use clap::Args;
use newmadeleine::Sampling;
use newmadeleine::engine::{Effort, Profile};
use newmadeleine::sampling::{Origin, ProfileInfo};
use newmadeleine::{Options, Session, SessionError};
use nmad_testbed::Rate;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::driver::DriverArgs;
use crate::output::{Failure, USAGE, complain, say, say_json, say_line};
use crate::profiles::{self, Entry};
use crate::stage::{Stage, is_in_job};

const EXAMPLES: &str = "\
Examples:
  nmad sample                              two hosts of a testbed, one rail as fast as it gets
  nmad sample --rails 4gbit,2.8gbit        two unequal rails
  nmad run -n 2 nmad sample                two ranks of this host; or in a job of any launcher
  srun -N 2 --mpi=pmi2 nmad sample --full --out cluster.profile
                                           two nodes of a cluster, for all that are like them
  nmad sample --plot pictures              also draws what was measured

Results are kept in the cache folder, for all later jobs on such hardware; a file made with --out is
used on other hosts by NMAD_PROFILE=FILE. A job measures by itself what is not yet known: this is for
more care (--full), or when something has changed.";

/// Measure what the rails can do, and show samples and thresholds
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SampleArgs {
    /// With more sizes and repetitions: about ten seconds for each kind of rail
    #[arg(long)]
    full: bool,
    /// The two ranks that measure; otherwise the first ones that share a rail
    #[arg(long, value_name = "A,B", value_parser = pair)]
    pair: Option<(u32, u32)>,
    /// Print one JSON object a line, one for each profile
    #[arg(long)]
    json: bool,
    /// Write all profiles to a file that can be shipped
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw the profiles into this folder
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Rails of the testbed that is built if there is no job: 4gbit, 500mbit, max (no limit)
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', default_value = "max")]
    rails: Vec<Rate>,
    /// Both ranks on this host, without a testbed
    #[arg(long)]
    here: bool,
    #[command(flatten)]
    driver: DriverArgs,
}

/// Measures, here if this is a rank of a job, else as two ranks that it starts itself.
pub(crate) fn main(args: &SampleArgs) -> ExitCode {
    if !is_in_job() {
        if args.pair.is_some_and(|(a, b)| a.max(b) > 1) {
            return complain("sample", &"--pair: the two ranks that are started here are 0 and 1", USAGE);
        }
        let words: Vec<_> = std::env::args_os().skip(1).collect();
        let given = || Stage::given().unwrap_or_else(|| Stage::build(&args.rails));
        let stage = if args.here { Stage::here(&args.rails) } else { given() };
        return stage.run(&words, &[]);
    }
    match measure(args).map_err(Failure::from).and_then(|list| Ok(show(args, &list)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.complain("sample"),
    }
}

/// What there is to show; nothing in ranks that leave the talking to another.
fn measure(args: &SampleArgs) -> Result<Vec<ProfileInfo>, SessionError> {
    let options = Options {
        sample: Sampling::Force,
        profile: None,
        effort: Some(if args.full { Effort::FULL } else { Effort::QUICK }),
        pair: args.pair,
        ..args.driver.of(Options::load()?)?
    };
    let session = Session::open_with(&options)?;
    let (rank, size) = (session.rank(), session.size());
    let speaker = args.pair.map_or(0, |(a, b)| a.min(b));
    let list = if rank == speaker { session.profiles().to_vec() } else { Vec::new() };
    session.close()?;
    if let Some((a, b)) = args.pair.filter(|&(a, b)| rank == 0 && a.max(b) >= size) {
        let why = format!("there are no ranks {a} and {b}: the job has {size}");
        return Err(SessionError::Setting { setting: "--pair".into(), why });
    }
    if size == 1 {
        let why = "a rail is measured between two ranks, and the job has one: nmad run -n 2 nmad sample";
        return Err(SessionError::Rail(why.into()));
    }
    Ok(list)
}

fn show(args: &SampleArgs, list: &[ProfileInfo]) -> Result<(), String> {
    if list.is_empty() {
        return Ok(());
    }
    let mut measured: Vec<(&ProfileInfo, &Profile)> = Vec::new();
    for info in list {
        if let Some((profile, Origin::Measured)) = &info.known {
            // Rails of one kind share a profile.
            if !measured.iter().any(|(other, _)| other.key == info.key) {
                measured.push((info, profile));
            }
        }
    }
    for (info, profile) in &measured {
        match args.json {
            true => say_json("profile", &Entry::of(info)),
            false => say_line(profiles::samples(info, profile)),
        }
        if let Some(folder) = &args.plot {
            let files = profiles::draw(folder, info, profile)?;
            if !args.json {
                files.iter().for_each(|file| say_line(file.display()));
                say_line("");
            }
        }
    }
    if let Some(file) = &args.out {
        let text: String = measured.iter().map(|(_, profile)| profile.print()).collect();
        nmad_words::file::write(file, text)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    if !args.json {
        say_line(profiles::thresholds(list));
        say(profiles::origins(list));
    }
    match measured.is_empty() {
        true => Err("no rail leads from one of these ranks to the other: nothing was measured".into()),
        false => Ok(()),
    }
}

fn pair(text: &str) -> Result<(u32, u32), String> {
    let ranks =
        text.split_once(',').and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    ranks.filter(|(a, b)| a != b).ok_or_else(|| "write two ranks, as 0,1".into())
}
