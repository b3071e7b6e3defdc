//! The command `nmad sim` by itself: `cargo run --release -p nmad-sim --example sim -- --seed 1..200`.

use clap::Parser;
use nmad_sim::cli::Sim;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "nmad sim")]
struct Command {
    #[command(flatten)]
    sim: Sim,
}

fn main() -> ExitCode {
    Command::parse().sim.run()
}
