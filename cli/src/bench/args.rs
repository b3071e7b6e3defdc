//! The options of `nmad bench`, and the help that explains them.

use clap::{Args, Subcommand};
use newmadeleine::Progress;
use nmad_bench::pattern::failover;
use nmad_bench::pattern::overlap::Side;
use nmad_testbed::Rate;
use std::path::PathBuf;

use super::compare::CompareArgs;
use super::imbalance::ImbalanceArgs;
use super::io::IoArgs;
use crate::driver::DriverArgs;
use crate::size;

const EXAMPLES: &str = "\
Examples:
  nmad bench latency                         two hosts of a testbed, one rail as fast as it gets
  nmad bench bandwidth --rails 4gbit,2.8gbit --one-way
                                             two unequal rails, data one way
  nmad bench latency --here                  two ranks on this host
  nmad bench latency --driver udp            datagrams, beside bare TCP and UDP sockets
  nmad bench thresholds                      what thresholds lose against the best method of each size
  nmad bench regret --rails 4gbit,1gbit --svg regret.svg
                                             auto against every strategy and every rail, size by size
  nmad bench prediction --rails 4gbit,2.8gbit
                                             how well the times of large messages are predicted
  nmad bench fairness --rails 1gbit --driver udp,tcp
                                             datagrams beside datagrams, a stream, and plain sockets
  nmad bench failover --driver udp           how long streams stand still when a rail fails
  nmad bench overlap --side receiver --progress off,auto --svg overlap.svg
                                             what is hidden of a message while its receiver computes
  nmad bench offload --rails max,max --progress dedicated:1
                                             medium messages that two cores post, beside one core
  nmad bench interference                    what progress in the background costs a program
  nmad bench decision                        how long it takes to share out a large message, here
  nmad bench rate --strategy fifo,aggregate  two strategies in one run
  nmad bench threads --rails max,max         1, 2 and 4 threads of a process over two rails
  nmad bench compare                         MAD-MPI beside Open MPI and MPICH, ten minutes
  nmad bench imbalance                       programs that communicate unevenly, beside other MPIs
  nmad bench io --path /dev/shm              files, beside other MPIs
  nmad run -n 2 nmad bench rate              in a job that was started by any launcher
  nmad testbed -- nmad run -n 2 nmad bench latency --size 8,64 --json

Started without a job it starts itself as two ranks, each on a core of its own, or on any cores where
other cores or threads take part (overlap, offload, interference, threads). Contestants take turns
(A B A B ...), so that what disturbs the machine disturbs all; figures are medians with their
quartiles, differences and ratios are taken turn by turn.";

/// Measure NewMadeleine beside plain sockets, in the same run between the same ranks
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) what: What,
}

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    #[command(flatten)]
    Measured(Pattern),
    /// How long a strategy takes to share out a large message; needs no ranks
    Decision(Decision),
    /// MAD-MPI beside Open MPI, MPICH and any other MPI: every size, pattern and collective
    Compare(CompareArgs),
    /// P5's programs beside other MPIs: time in communication, imbalance, share
    Imbalance(ImbalanceArgs),
    /// Files beside other MPIs: contiguous, strided, small records, collective, shared pointers, many files
    Io(IoArgs),
}

#[derive(Debug, Args)]
pub(crate) struct Decision {
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Strategies [default: auto,split,weighted,dichotomy]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) strategy: Vec<String>,
    /// Samples of each
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = at_least_one)]
    pub(crate) repeat: usize,
}

/// What needs ranks.
#[derive(Debug, Subcommand)]
pub(crate) enum Pattern {
    #[command(flatten)]
    Compared(Compared),
    /// Predicted times of large messages over several rails, and the times that they took
    Prediction(Sizes),
    /// Which part of a rail a flow gets beside another one, and beside plain TCP sockets
    Fairness(Fairness),
    /// How long streams stand still when one of two rails fails at a random moment
    Failover(Failover),
    /// A message while the program computes, against the longer of both
    Overlap(Overlap),
    /// Medium messages over several rails that idle cores help to post, against one core and one rail
    Offload(Offload),
    /// How much progress in the background slows a program down that computes
    Interference(Interference),
}

/// What takes turns with a yardstick.
#[derive(Debug, Subcommand)]
pub(crate) enum Compared {
    /// Half round trip of short messages in microseconds, and the difference to plain sockets
    Latency(Sizes),
    /// Bulk data in MB/s, and the ratio to the best plain sockets
    Bandwidth(Bandwidth),
    /// Messages per second in windows, beside sockets with a system call for each
    Rate(Rates),
    /// Messages per second of several threads of one process, against one thread
    Threads(Threads),
    /// Thresholds from profiles against each fixed choice, size by size
    Thresholds(Thresholds),
    /// The default strategy against every other one and against each rail alone, size by size
    Regret(Regret),
    /// Several messages on as many contexts, against one message of the same total length
    Multiseg(Multiseg),
}

#[derive(Debug, Args)]
pub(crate) struct Sizes {
    /// Message sizes: 8,64KiB,4M
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = size::parse)]
    pub(crate) size: Option<Vec<usize>>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Fairness {
    /// Seconds for each sample
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(crate) seconds: u64,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Failover {
    /// Failures of each size, one way and as many both ways; each takes 2 s
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    pub(crate) moments: usize,
    /// What fails when: the same seed is the same schedule
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the distribution of stalls as a picture
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Where rank 0 of one job of many writes what it has found
    #[arg(long, hide = true)]
    pub(crate) into: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

#[derive(Debug, Args)]
pub(crate) struct Overlap {
    /// Lengths of computing, as multiples of the time of the message alone [default: 0.5,1,2]
    #[arg(long, value_name = "X,...", value_delimiter = ',', value_parser = factor)]
    pub(crate) factor: Vec<f64>,
    /// Who computes: sender, receiver, both [default: all three]
    #[arg(long, value_name = "SIDE,...", value_delimiter = ',', value_parser = side)]
    pub(crate) side: Vec<Side>,
    /// Settings of NMAD_PROGRESS that take turns: off, auto, idle, dedicated:CORE [default: off,auto]
    #[arg(long, value_name = "SETTING,...", value_delimiter = ',')]
    pub(crate) progress: Vec<Progress>,
    /// Write a heat map: together by the longer of both, for each size and length of computing
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

#[derive(Debug, Args)]
pub(crate) struct Interference {
    /// Settings of NMAD_PROGRESS that take turns with off: auto, idle, dedicated:CORE [default: auto,idle]
    #[arg(long, value_name = "SETTING,...", value_delimiter = ',')]
    pub(crate) progress: Vec<Progress>,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

#[derive(Debug, Args)]
pub(crate) struct Offload {
    /// What the cores beside the sender's do: auto, idle, dedicated:CORE [default: idle]
    #[arg(long, value_name = "SETTING")]
    pub(crate) progress: Option<Progress>,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

#[derive(Debug, Args)]
pub(crate) struct Bandwidth {
    /// Data one way only, with an empty answer at the end of a sample; otherwise there and back
    #[arg(long)]
    pub(crate) one_way: bool,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

#[derive(Debug, Args)]
pub(crate) struct Rates {
    /// Messages in flight before the empty answer
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    pub(crate) window: usize,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

#[derive(Debug, Args)]
pub(crate) struct Threads {
    /// Numbers of threads [default: 1,2,4]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = at_least_one)]
    pub(crate) count: Option<Vec<usize>>,
    /// Messages of each thread in flight before the empty answer
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    pub(crate) window: usize,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

#[derive(Debug, Args)]
pub(crate) struct Thresholds {
    /// Two messages at a time: whether they should share a packet
    #[arg(long)]
    pub(crate) two: bool,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

#[derive(Debug, Args)]
pub(crate) struct Regret {
    /// Messages that are submitted together and then awaited; 1: calls that wait for each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) window: usize,
    /// Draw times relative to the fastest way over the size
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

#[derive(Debug, Args)]
pub(crate) struct Multiseg {
    /// Numbers of messages [default: 2,4,8,16]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = at_least_one)]
    pub(crate) count: Option<Vec<usize>>,
    /// Length of each message
    #[arg(long, value_name = "SIZE", default_value = "64", value_parser = size::parse)]
    pub(crate) size: usize,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// What all patterns have in common.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure plain sockets too (this is the default)
    #[arg(long, overrides_with = "no_plain")]
    plain: bool,
    /// Leave plain sockets out
    #[arg(long)]
    no_plain: bool,
    /// Strategies to try, each in turn; otherwise the one that is configured (see `nmad info`)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) strategy: Vec<String>,
    /// Samples of each contestant
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) repeat: Option<usize>,
    /// Rails of the testbed that is built if there is no job: 4gbit, 500mbit, max (no limit)
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', default_value = "max")]
    pub(crate) rails: Vec<Rate>,
    /// Both ranks on this host, without a testbed
    #[arg(long)]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) driver: DriverArgs,
}

impl Common {
    pub(crate) fn with_plain(&self) -> bool {
        self.plain || !self.no_plain
    }

    /// Two rails of these rates, in bits per second, if fewer are asked for.
    fn with_rails(&self, usual: [u64; 2]) -> Common {
        let usual = || usual.map(Rate::Limited).to_vec();
        let rails = if self.rails.len() < 2 { usual() } else { self.rails.clone() };
        Common { rails, ..self.clone() }
    }
}

impl Common {
    /// Two rails as fast as they get, if fewer are asked for.
    fn with_unlimited_rails(&self) -> Common {
        let rails = if self.rails.len() < 2 { vec![Rate::Unlimited; 2] } else { self.rails.clone() };
        Common { rails, ..self.clone() }
    }
}

impl Pattern {
    /// What all patterns have in common, with rails that are enough for this one.
    pub(crate) fn staged(&self) -> Common {
        match self {
            Pattern::Compared(Compared::Regret(args)) => {
                args.sizes.common.with_rails([4_000_000_000, 1_000_000_000])
            }
            Pattern::Offload(args) => args.sizes.common.with_unlimited_rails(),
            _ => self.common().clone(),
        }
    }
}

impl Failover {
    /// Sizes of messages.
    pub(crate) fn lens(&self) -> Vec<usize> {
        self.sizes.size.clone().unwrap_or_else(|| failover::Plan::LENS.to_vec())
    }

    /// One rail of several fails.
    pub(crate) fn with_two_rails(&self) -> Common {
        self.sizes.common.with_rails([1_000_000_000; 2])
    }
}

impl Pattern {
    pub(crate) fn common(&self) -> &Common {
        match self {
            Pattern::Compared(compared) => compared.common(),
            Pattern::Prediction(args) => &args.common,
            Pattern::Fairness(args) => &args.common,
            Pattern::Failover(args) => &args.sizes.common,
            Pattern::Overlap(args) => &args.sizes.common,
            Pattern::Offload(args) => &args.sizes.common,
            Pattern::Interference(args) => &args.sizes.common,
        }
    }
}

impl Compared {
    pub(crate) fn common(&self) -> &Common {
        match self {
            Compared::Latency(args) => &args.common,
            Compared::Bandwidth(args) => &args.sizes.common,
            Compared::Rate(args) => &args.sizes.common,
            Compared::Threads(args) => &args.sizes.common,
            Compared::Thresholds(args) => &args.sizes.common,
            Compared::Regret(args) => &args.sizes.common,
            Compared::Multiseg(args) => &args.common,
        }
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.01..=100.0).contains(&factor) => Ok(factor),
        _ => Err("it should be a number from 0.01 to 100".into()),
    }
}

fn side(text: &str) -> Result<Side, String> {
    let found = Side::ALL.into_iter().find(|side| side.name() == text);
    found.ok_or_else(|| "it is none of sender, receiver, both".into())
}

/// Windows and numbers of contexts have an upper bound only to catch slips of the finger.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=10_000) => Ok(number),
        _ => Err("it should be a number from 1 to 10000".into()),
    }
}
