//! The command `nmad`.
use clap::{Parser, Subcommand};
#[derive(Parser)]
struct Cli { #[command(subcommand)] c: C }
#[derive(Subcommand)]
enum C { Run(nmad_launch::cli::RunArgs) }
fn main() -> std::process::ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let c = Cli::parse_from(words);
    match c.c { C::Run(a) => nmad_launch::cli::main(a, nmad_launch::Host::from_env().unwrap()) }
}
