//! A launcher of jobs of which one rank is a process: it answers for all others, on other nodes mostly.

use nmad_launch::pmi::line::Line;
use rustix::io::{FdFlags, fcntl_setfd};
use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// Ranks of a node.
pub const CORES: u32 = 64;
const ADDRESS: &str = "127.0.0.1/";
const MACHINE: &str = "machine%3D";

/// Runs the last rank of a job in a process of its own and returns what it prints.
///
/// # Errors
/// It cannot be started, or fails.
pub fn run(ranks: u32, rails: &str, arguments: &[&str]) -> Result<String> {
    let (ours, theirs) = UnixStream::pair()?;
    // The process inherits it.
    fcntl_setfd(&theirs, FdFlags::empty())?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .env_clear()
        .envs([("NMAD_RAILS", rails), ("NMAD_SAMPLE", "off"), ("NMAD_PROGRESS", "off")])
        .env("PMI_FD", theirs.as_raw_fd().to_string())
        .envs([("PMI_SIZE", ranks.to_string()), ("PMI_RANK", (ranks - 1).to_string())])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    drop(theirs);
    let served = Job { ranks, own: String::new() }.serve(ours);
    let mut told = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut told)?;
    }
    match child.wait()? {
        status if status.success() => served.map(|()| told),
        status => Err(Error::other(format!("the rank failed: {status}"))),
    }
}

struct Job {
    ranks: u32,
    /// The card of the rank that is a process.
    own: String,
}

impl Job {
    /// Answers until the process is gone.
    fn serve(&mut self, stream: UnixStream) -> Result<()> {
        let mut out = stream.try_clone()?;
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return Ok(()) };
            let line = Line::parse(&line).map_err(Error::other)?;
            let answer = self.answer(&line);
            if writeln!(out, "{answer}").is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn answer(&mut self, line: &Line<'_>) -> String {
        match line.command {
            "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".into(),
            "get_maxes" => "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024".into(),
            "get_my_kvsname" => "cmd=my_kvsname rc=0 kvsname=footprint".into(),
            "get_appnum" => "cmd=appnum rc=0 appnum=0".into(),
            "barrier_in" => "cmd=barrier_out rc=0".into(),
            "finalize" => "cmd=finalize_ack rc=0".into(),
            "put" => {
                self.own = line.get("value").unwrap_or_default().into();
                "cmd=put_result rc=0 msg=success".into()
            }
            "get" => match self.value(line.get("key").unwrap_or_default()) {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".into(),
            },
            other => format!("cmd={other} rc=-1"),
        }
    }

    fn value(&self, key: &str) -> Option<String> {
        if key == "PMI_process_mapping" {
            return Some(format!("(vector,(0,{},{CORES}))", self.ranks.div_ceil(CORES)));
        }
        if key == "nmad-secret" {
            return Some(format!("1:{}", "5e".repeat(32)));
        }
        let rank: u32 = key.strip_prefix("card-")?.parse().ok()?;
        Some(self.card(rank))
    }

    /// The card of a rank: that of the process, with the address and the machine of the rank's node.
    fn card(&self, rank: u32) -> String {
        let node = rank / CORES;
        if node == (self.ranks - 1) / CORES {
            return self.own.clone();
        }
        let host = Ipv4Addr::from_bits(Ipv4Addr::new(127, 0, 0, 2).to_bits() + node);
        let card = self.own.replace(ADDRESS, &format!("{host}/"));
        match card.split_once(MACHINE) {
            Some((head, tail)) => {
                let rest = tail.trim_start_matches(|c: char| c.is_ascii_hexdigit());
                format!("{head}{MACHINE}{:x}{rest}", u64::from(node) + 1)
            }
            None => card,
        }
    }
}
