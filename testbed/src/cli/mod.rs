//! The command: build a testbed, run one program in its host 0, show it, change it.
//!
//! `nmad` mounts [`TestbedArgs`] as `testbed` and [`EnterArgs`] as the hidden `testbed-enter`. Knows the
//! library's public face only.

mod chaos;
mod run;
mod show;

use crate::{Change, Inside, Rate, Spec, Testbed, TestbedError, enter};
use nmad_words::tell_user;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

/// The testbed could not be built or changed.
const FAILED: u8 = 125;

const EXAMPLES: &str = "\
Examples:
  nmad testbed --rails 4gbit,2.8gbit -- nmad run -n 2 ./program
                                    two hosts, two unequal rails
  nmad testbed --hosts 4 -- sh      a shell in host0 of four hosts joined by one unlimited rail
  nmad testbed --rails 4,2 --show   build, show hosts, rails and addresses, end
  nmad testbed --rails 1gbit,1gbit chaos --seed 7 -- nmad run -n 2 ./program
                                    the same while rails fail and come back

Inside:
  nmad testbed --show               the same for the testbed one is in, with what rails are up
  nmad testbed --set r1=down        take rail r1 away in the middle of a transfer; r1=up brings it back
  nmad testbed --set r0=500mbit     change a rate; --set host1:r0=1gbit for what one host sends
  nmad testbed --set r0=noaddress   take the addresses of all hosts there away; r0=address gives them back
  nmad testbed --set r0=noipv4      remove the IPv4 addresses there and keep IPv6; r0=ipv4 adds them again
  nmad testbed --set r0=loss:1%     lose one in a hundred frames, in both directions; loss:0 ends it
  nmad testbed --set r0=mtu:9000    longer frames (1500 B at first), at every host
  echo $NMAD_TESTBED                how to run a program in another host:
                                    host0=PREFIX...;host1=PREFIX...

A host has its own network, host name, /dev/shm and System V shared memory; files, /tmp and PIDs are
shared. Host H has the address 10.88.R.(H+1), and fd88:R::(H+1) in hexadecimal, on rail R, whose
interface is rR; its names are hostH (rail 0) and hostH-rR.
Neither root nor iproute2 is needed where the kernel allows user namespaces. When it ends, however it
ends, all that runs in its hosts is killed and nothing is left behind.

The exit code is the program's (128 + N if signal N killed it), 127 if there is no such program, 126 if it
may not be run, 125 if there can be no testbed.";

/// Runs a program in host 0 of several hosts joined by rails, all on this machine.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES, subcommand_negates_reqs = true)]
pub struct TestbedArgs {
    /// Number of hosts, 2 to 250
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub hosts: u32,
    /// One rate for each rail: 4gbit, 500mbit, 10G, max (no limit)
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', default_value = "max")]
    pub rails: Vec<Rate>,
    /// Inside a testbed: change a rail at every host, r0=up|down|RATE|loss:1%|mtu:9000|noaddress|address|
    /// noipv4|ipv4, or one, host0:r0=...
    #[arg(long, value_name = "CHANGE", conflicts_with_all = ["hosts", "rails", "command"])]
    pub set: Vec<Change>,
    /// Print hosts, rails and addresses; then run the program, if one is given
    #[arg(long)]
    pub show: bool,
    /// Print as JSON
    #[arg(long, requires = "show")]
    pub json: bool,
    /// What else to do
    #[command(subcommand)]
    pub action: Option<Action>,
    /// The program to run in host0 with its arguments, behind `--`; your shell if none is given
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// What a testbed does besides running a program.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Action {
    /// Run a program while rails fail and come back, one at a time
    Chaos(chaos::ChaosArgs),
}

/// Runs a program in the host that a process keeps alive.
#[derive(Debug, Clone, clap::Args)]
pub struct EnterArgs {
    /// The process that keeps the host alive
    pub pid: u32,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Does what `args` ask for; complaints go to standard error.
pub fn main(args: &TestbedArgs) -> ExitCode {
    dispatch(args).unwrap_or_else(|error| complain(&error))
}

/// Runs the program of `args` in a host instead of this one; returns only if it cannot.
pub fn enter_main(args: &EnterArgs) -> ExitCode {
    let mut words = args.command.iter();
    let mut command = Command::new(words.next().map_or_else(|| "sh".into(), OsString::clone));
    command.args(words);
    complain(&enter(args.pid, command))
}

fn dispatch(args: &TestbedArgs) -> Result<ExitCode, TestbedError> {
    if let Some(Action::Chaos(chaos)) = &args.action {
        return chaos::run(chaos, args.hosts, &args.rails);
    }
    if !args.set.is_empty() {
        let inside = Inside::from_env()?.ok_or(TestbedError::NotInside)?;
        args.set.iter().try_for_each(|change| inside.set(change))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.show && args.command.is_empty() {
        let layout = match Inside::from_env()? {
            Some(inside) => show::Layout::of_inside(&inside)?,
            None => show::Layout::of(&build(args)?)?,
        };
        layout.print(args.json);
        return Ok(ExitCode::SUCCESS);
    }
    let testbed = build(args)?;
    if args.show {
        show::Layout::of(&testbed)?.print(args.json);
    }
    run::run(&testbed, &args.command)
}

fn build(args: &TestbedArgs) -> Result<Testbed, TestbedError> {
    Testbed::build(&Spec::new(args.hosts, args.rails.clone()))
}

fn complain(error: &TestbedError) -> ExitCode {
    tell_user(format_args!("nmad testbed: {error}"));
    let kind = match error {
        TestbedError::Start { source, .. } => source.kind(),
        _ => return ExitCode::from(FAILED),
    };
    // As shells have it.
    ExitCode::from(if kind == std::io::ErrorKind::NotFound { 127 } else { 126 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        testbed: TestbedArgs,
    }

    fn parse(words: &[&str]) -> Result<TestbedArgs, String> {
        let words = std::iter::once("testbed").chain(words.iter().copied());
        Whole::try_parse_from(words).map(|whole| whole.testbed).map_err(|error| error.to_string())
    }

    #[test]
    fn what_follows_the_dashes_belongs_to_the_program() {
        let args = parse(&["--hosts", "3", "--rails", "4G,2.8gbit", "--", "ls", "--hosts", "-l"]).unwrap();
        assert_eq!((args.hosts, args.rails.len()), (3, 2));
        assert_eq!(args.command, ["ls", "--hosts", "-l"]);
    }

    #[test]
    fn wrong_words_explain_themselves() {
        assert!(parse(&["--rails", "4G,foo"]).unwrap_err().contains("'foo' is not a rate: write"));
        assert!(parse(&["--set", "eth0=down"]).unwrap_err().contains("write r1=down"));
        assert!(parse(&["--json"]).unwrap_err().contains("--show"));
    }
}
