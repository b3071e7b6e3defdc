//! `nmad info`: what this process would work with, and where each setting comes from.

mod io;
mod mpi;
mod progress;
mod rails;
mod settings;
mod strategies;

use clap::{Args, ValueEnum};
use newmadeleine::Sampling;
use newmadeleine::sampling::{Distance, ProfileInfo};
use newmadeleine::setting;
use newmadeleine::{Options, Session, SessionError};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::driver::DriverArgs;
use crate::output::{FAILED, Failure, SETTING, complain, say, say_json, say_line, tell_user};
use crate::profiles;
use crate::stage::is_in_job;
use rails::{Peer, Rail};
use settings::Setting;
use strategies::Strategy;

const EXAMPLES: &str = "\
Examples:
  nmad info                       rails, strategies and settings of this machine
  NMAD_STRATEGY=fifo nmad info    the same with a setting changed
  nmad run -n 2 nmad info         inside a job: also which ranks each rail reaches (rank 0 tells)
  nmad info --mpi                 binary interfaces and functions of MPI
  nmad info --io /scratch         how files are accessed there; --ranks 4 for a job of four
  nmad info --settings            what each setting does, its values and its default
  nmad info --plot pictures       also draws what the rails were measured to do
  nmad info --json                for programs: one object

Exit code 2: a job on this machine would refuse a setting, or a variable has no effect.";

/// Tell which rails, strategies and settings there are, and where they come from
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InfoArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Tell which functions of MPI are supported, and which are not
    #[arg(long)]
    mpi: bool,
    /// Print how MPI's files are accessed in this folder: file system, ways, owners, hints, measured times
    #[arg(long, value_name = "PATH", conflicts_with_all = ["mpi", "plot", "settings"])]
    io: Option<PathBuf>,
    /// Number of ranks on this machine for which --io prints ways and owners
    #[arg(long, value_name = "N", default_value_t = 2, requires = "io")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    ranks: u32,
    /// Explain all settings: variables of sessions, of MPI, of launchers and of compilers
    #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "text")]
    #[arg(conflicts_with_all = ["json", "mpi", "plot"])]
    settings: Option<Form>,
    #[command(flatten)]
    driver: DriverArgs,
    /// Draw the profiles into this folder: time and bandwidth of each method, thresholds marked
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
}

/// How the settings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For a terminal.
    Text,
    /// Tables for a page, such as docs/settings.md.
    Markdown,
}

/// Everything there is to tell.
#[derive(Serialize)]
struct Info {
    version: &'static str,
    /// Settings that a job on this machine would refuse, and variables that have no effect.
    problems: Vec<String>,
    testbed: Ability,
    strategies: Vec<Strategy>,
    settings: Vec<Setting>,
    progress: progress::Progressing,
    rails: Vec<Rail>,
    /// What the rails were measured to do.
    profiles: Vec<profiles::Entry>,
    /// In a job: the thresholds in force over each rail, to the first rank that it leads to.
    in_force: Vec<profiles::InForce>,
    #[serde(skip)]
    known: Vec<ProfileInfo>,
    /// The ranks of the job; empty outside of a job.
    peers: Vec<Peer>,
}

/// Whether a testbed can be built.
#[derive(Serialize)]
struct Ability {
    is_possible: bool,
    /// By which right, or why not.
    why: String,
}

impl Ability {
    fn by(right: &str) -> Ability {
        Ability { is_possible: true, why: right.into() }
    }
}

/// Finds everything out and prints it.
pub(crate) fn main(args: &InfoArgs) -> ExitCode {
    if let Some(form) = args.settings {
        say(if form == Form::Text { setting::text() } else { setting::markdown() });
        return ExitCode::SUCCESS;
    }
    if args.mpi {
        mpi::print(args.json);
        return ExitCode::SUCCESS;
    }
    if let Some(path) = &args.io {
        let printed = io::print(path, args.ranks, args.json);
        return printed.map_or_else(|why| complain("info", &why, FAILED), |()| ExitCode::SUCCESS);
    }
    let info = match gather(args) {
        Ok(Some(info)) => info,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => return Failure::from(error).complain("info"),
    };
    if args.json {
        say_json("info", &info)
    } else {
        print(&info)
    }
    let drawn = args.plot.as_deref().map_or(Ok(()), |folder| draw(&info, folder, args.json));
    if let Err(error) = drawn {
        return complain("info", &error, FAILED);
    }
    info.problems.iter().for_each(|problem| tell_user(format_args!("nmad info: {problem}")));
    if info.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(SETTING) }
}

fn draw(info: &Info, folder: &Path, is_quiet: bool) -> Result<(), String> {
    for one in &info.known {
        if let Some((profile, _)) = &one.known {
            let files = profiles::draw(folder, one, profile)?;
            if !is_quiet {
                files.iter().for_each(|file| say_line(file.display()));
            }
        }
    }
    Ok(())
}

/// None in ranks of a job that leave the talking to rank 0.
fn gather(args: &InfoArgs) -> Result<Option<Info>, SessionError> {
    let options = args.driver.of(Options::load()?)?;
    let mut info = Info {
        version: env!("CARGO_PKG_VERSION"),
        problems: Vec::new(),
        testbed: Ability { is_possible: false, why: "not looked for inside a job".into() },
        strategies: strategies::of(&options),
        settings: settings::of(&Options::given()?, args.driver.are_named().then(|| options.drivers())),
        progress: progress::of_machine(&options.progress.clone().unwrap_or_default()),
        rails: Vec::new(),
        profiles: Vec::new(),
        in_force: Vec::new(),
        known: Vec::new(),
        peers: Vec::new(),
    };
    if is_in_job() {
        // It tells what there is and changes nothing.
        let session = Session::open_with(&Options { sample: Sampling::Off, ..options })?;
        info.progress = progress::of_session(&session);
        // Asking for the names of the peers opens links; only then do the rails know their ciphers.
        info.peers = rails::peers(&session)?;
        info.rails = rails::of_session(&session);
        info.known = session.profiles().to_vec();
        info.profiles = info.known.iter().map(profiles::Entry::of).collect();
        info.in_force = profiles::InForce::of_rails(&session);
        rails::let_go(&session)?;
        let is_ours = session.rank() == 0;
        session.close()?;
        return Ok(is_ours.then_some(info));
    }
    info.problems = options.problems().iter().map(SessionError::to_string).collect();
    info.problems.extend(nmad_words::setting::misspelt());
    info.rails = rails::of_machine(&options)?;
    let (known, complaints) = newmadeleine::sampling::known(&options, &rails_of_machine(&options)?);
    // That the file of NMAD_PROFILE cannot be read was said.
    let is_new = |text: &&String| !info.problems.iter().any(|problem| problem.contains(text.as_str()));
    complaints.iter().filter(is_new).for_each(|text| tell_user(format_args!("nmad info: {text}")));
    info.profiles = known.iter().map(profiles::Entry::of).collect();
    info.known = known;
    info.testbed = match nmad_testbed::available() {
        Ok(nmad_testbed::Method::Privileged) => Ability::by("as a privileged user"),
        Ok(nmad_testbed::Method::UserNamespace) => Ability::by("as anybody, in a user namespace"),
        Err(refused) => Ability { is_possible: false, why: refused.to_string() },
    };
    Ok(Some(info))
}

/// Names of what could become rails of this machine, and where their peers would be.
pub(crate) fn rails_of_machine(options: &Options) -> Result<Vec<(String, Distance)>, SessionError> {
    if let Some(choices) = &options.rails {
        let named = |choice: &newmadeleine::RailChoice| {
            let name = choice.interface.clone();
            let distance = if name == "lo" { Distance::SameHost } else { Distance::OtherHost };
            let drivers = options.drivers_of(choice).iter();
            drivers.map(|driver| (format!("{}/{name}", driver.name()), distance)).collect::<Vec<_>>()
        };
        let rails = |choice: &newmadeleine::RailChoice| match choice.interface.as_str() {
            "shm" => vec![("shm".into(), Distance::SameHost)],
            _ => named(choice),
        };
        return Ok(choices.iter().flat_map(rails).collect());
    }
    let mut names: Vec<String> = rails::of_machine(options)?.into_iter().map(|rail| rail.name).collect();
    names.dedup();
    let near = std::iter::once(("shm".to_string(), Distance::SameHost));
    Ok(names.into_iter().map(|name| (name, Distance::OtherHost)).chain(near).collect())
}

fn print(info: &Info) {
    say_line(format_args!("NewMadeleine {}", info.version));
    let can = if info.testbed.is_possible { "can be built here, " } else { "" };
    say_line(format_args!("testbed: {can}{}\n", info.testbed.why));
    say_line(rails::table(&info.rails));
    if !info.known.is_empty() {
        say_line(profiles::origins(&info.known));
        say_line(profiles::thresholds(&info.known));
        profiles::hand_offs(&info.known).into_iter().for_each(say_line);
        profiles::learnt(&info.known).into_iter().for_each(say_line);
    }
    if !info.in_force.is_empty() {
        say_line(profiles::in_force(&info.in_force));
    }
    if !info.peers.is_empty() {
        say_line(rails::peer_table(&info.peers));
    }
    say_line(strategies::table(&info.strategies));
    say_line(progress::table(&info.progress));
    say(settings::table(&info.settings));
}
