//! The options of `nmad demo`.

use clap::{Args, ValueEnum};
use nmad_testbed::Rate;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  nmad demo                        rails of 4 and 2.8 Gbit/s, about a minute
  nmad demo --quick                fewer sizes, some seconds
  nmad demo --rails 4gbit,1gbit    other rails, also more than two
  nmad demo --json > demo.jsonl    an object a line: rails, strategy, bytes, mb_per_s, share_of_sum

share_of_sum is the part of what plain sockets reach with messages of the same size over all rails at
once, in the same run. Data goes one way, a message at a time; strategies that balance whole messages
(greedy, aggregate_fastest) are measured with two messages in flight as well.

Neither root nor any setup is needed where the kernel allows user namespaces; elsewhere both ranks run
on this host over loopback rails that are slowed down in software.";

/// Two hosts, two unequal rails, every strategy: tables and pictures in about a minute
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Where the pictures go
    #[arg(long, value_name = "DIR", default_value = "nmad-demo")]
    pub(crate) out: PathBuf,
    /// Fewer sizes and samples
    #[arg(long)]
    pub(crate) quick: bool,
    /// The rails, each with its rate
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', default_values = ["4gbit", "2.8gbit"])]
    #[arg(value_parser = limited)]
    pub(crate) rails: Vec<Rate>,
    /// Both ranks on this host, over loopback rails slowed down in software
    #[arg(long)]
    pub(crate) here: bool,
    #[command(flatten)]
    pub(crate) driver: crate::driver::DriverArgs,
    /// What the ranks that the demonstration starts are to do
    #[arg(long, hide = true)]
    pub(crate) part: Option<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Rates,
    Timeline,
}

impl DemoArgs {
    /// The rails as they are named on the command line.
    pub(crate) fn rail_names(&self) -> Vec<String> {
        self.rails.iter().map(Rate::to_string).collect()
    }
}

/// Shares cannot be told without a rate.
fn limited(text: &str) -> Result<Rate, String> {
    match text.parse::<Rate>() {
        Ok(Rate::Unlimited) => Err("every rail of the demonstration needs a rate, such as 4gbit".into()),
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}
