//! `nmad bench imbalance`: parses, runs P5's programs beside other MPIs, and shows what they took.

mod figures;
mod pictures;

use clap::Args;
use nmad_compare::{CompareError, FLOOD, ImbalancePlan, ImbalanceRequest, Measured, PROGRAMS, run_imbalance};
use std::path::PathBuf;
use std::process::ExitCode;

use super::beside::{Beside, Shown, cache, ended, say_tables};
use crate::output::say_json;
use crate::size;

const EXAMPLES: &str = "\
Examples:
  nmad bench imbalance                      two hosts, rails of 4 and 2.8 Gbit/s, beside Open MPI and MPICH
  nmad bench imbalance --quick --peer none  a minute, MAD-MPI alone
  nmad bench imbalance --program overlap --size 32KiB,512KiB,8MiB --degree 1
                                            some sizes of one program
  nmad bench imbalance --place node2,hosts4-4+2.8 --variant plain,parallel,fragments --svg pictures
                                            several places; P5's figures from what was measured
  nmad bench imbalance --program minife,minife-overlap --elements 40 --place hosts8
  nmad bench imbalance --program minife --elements 64 --imbalance 30 --variant plain,both
                                            uneven rows: 30 % more on the last rank, 30 % less on the first
  nmad bench imbalance --program flood --degree 1 --size 1KiB,16KiB --messages 4096
                                            memory and time of messages that nobody has asked for

Programs (P5, \"Analyzing the impact of communication imbalance\"):
  nooverlap       Irecv, Send, Waitall, calculation, Allreduce (figure 4)
  overlap         Irecv, Send, calculation, Waitall, calculation, Allreduce (figure 5)
  minife          a conjugate gradient on a brick of hexahedra, partitioned irregularly
  minife-overlap  the same, rows that need no other rank's values computed before Waitall
  flood           Isend of --messages [default: 1024], calculation, Recv of the last message first, Waitall,
                  Allreduce: all but one message of each sender are unexpected; runs if it is named
Variants of all but the flood: plain; parallel, where several threads send (figure 12); fragments, where
messages are cut by the program (section 5.2); both.

Each rank of a toy sends to the next ranks, as many as the degree says; lengths are drawn from --seed up to
--size and stay the same. Programs check their results. The figure is the time in communication of the rank
that took longest, as a median over the iterations; contestants take turns. Imbalance is the longest time
of a rank over the mean of all: 1 is balance. Share is the part of all ranks' time in communication.
Memory is by how much resident memory of a rank grew at most.";

/// P5's programs beside other MPIs: time in communication, imbalance, share
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImbalanceArgs {
    /// A few sizes and iterations, in about a minute
    #[arg(long)]
    quick: bool,
    /// Programs [default: all but flood]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    program: Vec<String>,
    /// Variants [default: plain]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "plain")]
    variant: Vec<String>,
    /// Places: node2, node4, hosts2, hosts2-4+2.8, hosts4-4+2.8, hosts8-4+2.8, ...
    #[arg(long, value_name = "PLACE,...", value_delimiter = ',', default_value = "hosts2-4+2.8")]
    place: Vec<String>,
    /// Numbers of ranks to which each rank sends [default: 1 and all others]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    degree: Vec<u32>,
    /// Messages to each of them [default: 1, of a flood 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    messages: Option<u32>,
    /// Longest messages [default: 32KiB,128KiB,512KiB,2MiB,8MiB]
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = size::parse)]
    size: Vec<usize>,
    /// Elements along each edge of the brick of minife [default: 32]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u64).range(2..=400))]
    elements: Vec<u64>,
    /// Microseconds of calculation in an iteration of a toy
    #[arg(long, value_name = "US", default_value_t = 4000)]
    calculation: u64,
    /// Iterations of a toy [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    iterations: Option<u32>,
    /// Longest fragment of the variants fragments and both
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = size::parse)]
    fragment: usize,
    /// Threads that send in the variants parallel and both
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    threads: u32,
    /// From which lengths and partitions are drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Percent by which the rank with the most rows of minife's matrix has more than the mean; the rank
    /// with the fewest has as much less
    #[arg(long, value_name = "PERCENT", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=90))]
    imbalance: u32,
    /// Times that everybody has a turn [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: Option<u32>,
    #[command(flatten)]
    beside: Beside,
    /// Print one JSON object a line: a figure of one contestant in one round
    #[arg(long)]
    json: bool,
    /// Draw figures of P5 from what was measured, into this folder
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

impl ImbalanceArgs {
    fn plan(&self) -> ImbalancePlan {
        let or = |given: &[String], usual: &[&str]| match given {
            [] => usual.iter().map(|word| word.to_string()).collect(),
            given => given.to_vec(),
        };
        let sizes: &[u64] = match self.quick {
            true => &[32 << 10, 512 << 10, 2 << 20],
            false => &[32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20],
        };
        let usual: Vec<&str> = PROGRAMS.into_iter().filter(|name| *name != FLOOD).collect();
        ImbalancePlan {
            programs: or(&self.program, &usual),
            variants: self.variant.clone(),
            places: self.place.clone(),
            degrees: self.degree.clone(),
            messages: self.messages,
            sizes: match &*self.size {
                [] => sizes.to_vec(),
                given => given.iter().map(|&len| len as u64).collect(),
            },
            elements: if self.elements.is_empty() { vec![32] } else { self.elements.clone() },
        }
    }

    fn request(&self) -> Result<ImbalanceRequest, CompareError> {
        let cache = cache()?;
        let (iterations, rounds) = if self.quick { (30, 1) } else { (100, 3) };
        Ok(ImbalanceRequest {
            ours: self.beside.prefix()?,
            peers: self.beside.peers()?,
            work: cache.join("imbalance"),
            cache,
            plan: self.plan(),
            calculation_us: self.calculation,
            iterations: self.iterations.unwrap_or(iterations),
            fragment: self.fragment.max(1) as u64,
            threads: self.threads,
            seed: self.seed,
            imbalance: self.imbalance,
            rounds: self.rounds.unwrap_or(rounds),
            silence: self.beside.silence(),
        })
    }
}

/// Does what the command line asks for.
pub(crate) fn main(args: &ImbalanceArgs) -> ExitCode {
    ended("bench imbalance", measure(args))
}

fn measure(args: &ImbalanceArgs) -> Result<(), CompareError> {
    let mut request = args.request()?;
    request.plan.check()?;
    if let Some(folder) = &args.svg {
        pictures::prepare(folder)?;
    }
    let mut shown = Shown::new("bench imbalance");
    request.ours = args.beside.install(&mut shown)?;
    let mut all: Vec<Measured> = Vec::new();
    let missing = run_imbalance(&request, &mut shown, &mut |measured| {
        if args.json {
            say_json("bench", &figures::line(&measured));
        }
        all.push(measured);
    })?;
    shown.end();
    if !args.json {
        say_tables(figures::tables(&all), &missing);
    }
    match &args.svg {
        Some(folder) => pictures::draw(&all, folder),
        None => Ok(()),
    }
}
