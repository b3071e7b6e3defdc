//! `nmad sim`: seeds and figures of the simulator, and collectives at scale.

use clap::Args;
use nmad_scale::cli::Scale;
use nmad_sim::cli::Sim;
use std::process::ExitCode;

/// Run the engine in a simulated world, with faults, under oracles
///
/// From a seed, the simulator draws hosts, networks, faults and what the applications do, and runs the
/// real engine over simulated rails in virtual time. Oracles check that every message arrives once,
/// intact and in order, that nothing is left over, and that nothing stands still. The same seed is
/// always the same run, so a seed is a bug report.
///
/// With --scale it runs the collectives of MAD-MPI instead: the schedules that ship, for up to 100,000
/// ranks on hosts of 64 cores, on a model of cores, memory and shared links (docs/scale.md).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nmad sim --seed 1..200               two hundred runs; exits 1 at the first violation
  nmad sim --seed 137 --explain        the stage and every event of one run
  nmad sim --seed 137 --no-faults      the same, with nothing going wrong
  nmad sim --seed 1..1000 --lossy      nothing but datagrams that are lost, repeated, overtaken and damaged
  nmad sim --seed 1..1000 --threads 4  four threads of each application submit and wait at the same time
  nmad sim --seed 1..1000 --outages    rails fail for a while: nothing stands still, no slow rail is left
  nmad sim --seed 1..1000 --deaths     hosts die: requests that need them end, all else is right
  nmad sim --seed 1..30 --each-death   short runs, repeated with a host dying at each packet or chunk
  nmad sim --seed 1..50 --canary loses a strategy broken on purpose: the oracles must object
  nmad sim --golden list               the papers' figures; --golden p3-8 shows one, --golden p3 all of P3
  nmad sim --scale --family bcast --size 1MiB
                                       time of a broadcast against ranks, beside other libraries' rules
  nmad sim --scale --size 1KiB --svg scaling.svg
                                       all collectives, and a picture
  nmad sim --scale --family allreduce --ranks 100000
                                       one number of ranks
  nmad sim --scale regret --family allreduce --fabric dragonfly
                                       what each choice takes longer than the best algorithm in hindsight
  nmad sim --scale model               the model beside the packet-level simulator, for few ranks
  nmad sim --scale start               the start of jobs, from their first processes to a first allreduce
  nmad sim --scale windows             windows, partitioned messages and splits of communicators")]
pub(crate) struct SimArgs {
    #[command(flatten)]
    seeds: Sim,
    #[command(flatten)]
    scale: Scale,
}

/// Runs it.
pub(crate) fn main(args: &SimArgs) -> ExitCode {
    let output = (args.seeds.json, args.seeds.bless);
    args.scale.run(output).unwrap_or_else(|| args.seeds.run())
}
