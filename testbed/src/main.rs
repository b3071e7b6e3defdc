//! The testbed as a program of its own: what `nmad testbed` is, without the rest.

use clap::{CommandFactory, FromArgMatches, Parser};
use nmad_testbed::cli::{self, EnterArgs, TestbedArgs};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "nmad-testbed")]
struct Whole {
    #[command(flatten)]
    testbed: TestbedArgs,
}

#[derive(Parser)]
#[command(name = "testbed-enter")]
struct Enter {
    #[command(flatten)]
    enter: EnterArgs,
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if words.first().is_some_and(|word| word == "testbed-enter") {
        return cli::enter_main(&Enter::parse_from(words).enter);
    }
    let command = Whole::command().bin_name("nmad-testbed");
    let matches = command.get_matches();
    match Whole::from_arg_matches(&matches) {
        Ok(whole) => nmad_words::ended(cli::main(&whole.testbed)),
        Err(error) => error.exit(),
    }
}
