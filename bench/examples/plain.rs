//! Plain sockets between two processes, by hand: `plain server 10.88.0.2 10.88.1.2` on one host, then
//! `plain client 10.88.0.2 10.88.1.2` on the other. Both go through the same list of measurements; the client
//! prints. `--what` selects: latency, policies, bandwidth, rails.
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use nmad_bench::plain::bandwidth::{self, Way};
use nmad_bench::plain::{Listener, Policy, Socket, latency, rails};
use nmad_bench::stats::{Summary, bytes, number};
use nmad_bench::table::Table;

const LIMIT: Duration = Duration::from_secs(20);

#[derive(Parser)]
struct Args {
    role: Role,
    /// The server's addresses, one per rail.
    #[arg(required = true)]
    addresses: Vec<IpAddr>,
    /// What to measure; both sides must say the same.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["latency", "bandwidth", "rails"])]
    what: Vec<What>,
    /// The server's first port; rail i uses the i-th after it.
    #[arg(long, default_value_t = 7700)]
    port: u16,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Role {
    Server,
    Client,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    Latency,
    Policies,
    Bandwidth,
    Rails,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    for what in &args.what {
        match what {
            What::Latency => show_latency(&args)?,
            What::Policies => show_policies(&args)?,
            What::Bandwidth => show_bandwidth(&args)?,
            What::Rails => show_rails(&args)?,
        }
    }
    Ok(())
}

impl Args {
    /// Sockets over the given rails, all under one policy.
    fn sockets(&self, chosen: &[usize], policy: &Policy) -> io::Result<Vec<Socket>> {
        let addr = |rail: &usize| SocketAddr::new(self.addresses[*rail], self.port + *rail as u16);
        match self.role {
            Role::Server => {
                let doors: Vec<Listener> = chosen
                    .iter()
                    .map(|rail| Listener::open(addr(rail), policy))
                    .collect::<io::Result<_>>()?;
                doors.iter().map(|door| door.accept(LIMIT)).collect()
            }
            Role::Client => chosen.iter().map(|rail| connect_patiently(addr(rail), policy)).collect(),
        }
    }

    fn socket(&self, rail: usize, policy: &Policy) -> io::Result<Socket> {
        Ok(self.sockets(&[rail], policy)?.remove(0))
    }

    fn is_client(&self) -> bool {
        self.role == Role::Client
    }
}

/// The server opens a new listener for each measurement: try until it is there.
fn connect_patiently(to: SocketAddr, policy: &Policy) -> io::Result<Socket> {
    let deadline = Instant::now() + LIMIT;
    loop {
        match Socket::connect(None, to, policy, LIMIT) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            other => return other,
        }
    }
}

fn show_latency(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut table = Table::new("half round trip, 8 B, us", &["rail", "median", "quartiles", "min", "max"]);
    for rail in 0..args.addresses.len() {
        let mut socket = args.socket(rail, &Policy::default())?;
        let plan = latency::Plan::default();
        if !args.is_client() {
            latency::answer(&mut socket, &plan)?;
            continue;
        }
        let s = Summary::of(&latency::measure(&mut socket, &plan)?).ok_or("no sample")?;
        let spread = format!("{:.2} .. {:.2}", s.lower, s.upper);
        table.row([args.addresses[rail].to_string(), number(s.median), spread, number(s.min), number(s.max)]);
    }
    print(args, &table);
    Ok(())
}

/// Bulk bandwidth over the first rail under each policy in question.
fn show_policies(args: &Args) -> Result<(), Box<dyn Error>> {
    let lens = bandwidth::Plan::LENS;
    let mut table = Table::new("ping-pong MB/s by policy", &policy_header(&lens));
    for policy in policies() {
        let mut cells = Vec::new();
        for len in lens {
            let mut socket = args.socket(0, &policy)?;
            if cells.is_empty() {
                cells.push(describe(&policy, &socket.congestion()?));
            }
            cells.push(
                one_size(args, &mut socket, len, Way::PingPong)?.map_or(String::new(), |s| number(s.median)),
            );
        }
        table.row(cells);
    }
    print(args, &table);
    Ok(())
}

fn policy_header(lens: &[usize]) -> Vec<&'static str> {
    let names = lens.iter().map(|len| &*bytes(*len as u64).leak());
    std::iter::once("policy").chain(names).collect()
}

fn policies() -> Vec<Policy> {
    let base = Policy::default();
    let mut all = Vec::new();
    for name in ["reno", "cubic", "bbr"] {
        for send_buffer in [Some(256 << 10), Some(512 << 10), Some(1 << 20), Some(4 << 20), None] {
            all.push(Policy { congestion: vec![name.into()], send_buffer, ..base.clone() });
        }
    }
    for recv_buffer in [256 << 10, 512 << 10, 1 << 20, 4 << 20] {
        all.push(Policy { recv_buffer: Some(recv_buffer), ..base.clone() });
    }
    for spin_us in [0, 100, 10_000] {
        all.push(Policy { spin: Duration::from_micros(spin_us), ..base.clone() });
    }
    all
}

fn describe(policy: &Policy, congestion: &str) -> String {
    let buffer = |len: Option<usize>| len.map_or("auto".into(), |len| bytes(len as u64));
    let (send, recv) = (buffer(policy.send_buffer), buffer(policy.recv_buffer));
    format!("{congestion}, snd {send}, rcv {recv}, spin {} us", policy.spin.as_micros())
}

fn show_bandwidth(args: &Args) -> Result<(), Box<dyn Error>> {
    for rail in 0..args.addresses.len() {
        let title = format!("bandwidth over {}, MB/s", args.addresses[rail]);
        let mut table = Table::new(title, &["size", "one way", "ping-pong"]);
        for len in bandwidth::Plan::LENS {
            let mut cells = vec![bytes(len as u64)];
            for way in [Way::OneWay, Way::PingPong] {
                let mut socket = args.socket(rail, &Policy::default())?;
                let summary = one_size(args, &mut socket, len, way)?;
                cells.push(summary.map_or(String::new(), |s| s.text("").to_string()));
            }
            table.row(cells);
        }
        print(args, &table);
    }
    Ok(())
}

fn one_size(args: &Args, socket: &mut Socket, len: usize, way: Way) -> io::Result<Option<Summary>> {
    let plan = bandwidth::Plan::of(len, way);
    if args.is_client() {
        return Ok(Summary::of(&bandwidth::measure(socket, &plan, &mut Vec::new())?));
    }
    bandwidth::answer(socket, &plan, &mut Vec::new())?;
    Ok(None)
}

/// Each rail alone, then all at once.
fn show_rails(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut table = Table::new("64 MiB one way over rails at once, MB/s", &["rails", "total", "each"]);
    let all: Vec<usize> = (0..args.addresses.len()).collect();
    let mut sets: Vec<Vec<usize>> = all.iter().map(|rail| vec![*rail]).collect();
    if all.len() > 1 {
        sets.push(all);
    }
    for chosen in sets {
        for piece in [64 << 10, 256 << 10, 1 << 20] {
            let mut sockets = args.sockets(&chosen, &Policy::default())?;
            let plan = rails::Plan { piece, ..rails::Plan::of(64 << 20) };
            if !args.is_client() {
                rails::answer(&mut sockets, &plan, &mut Vec::new())?;
                continue;
            }
            let samples = rails::measure(&mut sockets, &plan, &mut Vec::new())?;
            let totals: Vec<f64> = samples.iter().map(|s| s.total).collect();
            let each = (0..chosen.len()).map(|rail| {
                let shares: Vec<f64> = samples.iter().map(|s| s.rails[rail]).collect();
                Summary::of(&shares).map_or(String::new(), |s| number(s.median))
            });
            let each = each.collect::<Vec<_>>().join(" + ");
            let total = Summary::of(&totals).map_or(String::new(), |s| s.text("").to_string());
            table.row([format!("{chosen:?} in pieces of {}", bytes(piece as u64)), total, each]);
        }
    }
    print(args, &table);
    Ok(())
}

fn print(args: &Args, table: &Table) {
    if args.is_client() {
        println!("{table}");
    }
}
