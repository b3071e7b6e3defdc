//! The start of a job in virtual time: from the first process of each host to the end of a first allreduce.
//!
//! A host runs the launcher's server that ships ([`Server`]), which answers one line of its ranks at a time.
//! The ranks send what the client that ships sends; a test compares the lines. The head of the job takes the
//! values of each host, and sends those of all ranks down the tree of the launcher ([`tree`]): each host
//! decrypts them, and encrypts and sends them to the hosts below it, one after the other. Agents connect to
//! each other while ranks start, which takes less time. All hosts do the same, so that one of them is run
//! line by line. How long each step takes was measured ([`Steps`]); every rank has a core of its own.

use super::case::Case;
use super::fabric::FABRICS;
use super::regret::MESSAGES_MAX;
use super::stage::Stage;
use nmad_launch::mapping;
use nmad_launch::pmi::client::VALUES_END;
use nmad_launch::pmi::delta;
use nmad_launch::pmi::line::Line;
use nmad_launch::pmi::server::{Event, Server};
use nmad_launch::pmi::value;
use nmad_launch::remote::tree;
use nmad_mpi_base::algorithm::choice::Family;
use nmad_mpi_base::algorithm::cost::log2_ceil;
use nmad_sim::golden::table::{Table, rounded};
use nmad_words::{JSON_SCHEMA, say_line};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::process::ExitCode;

/// The job of the simulated launcher.
pub const JOB: &str = "nmad-1-0123456789abcdef";

/// Durations of the steps of a start, in nanoseconds.
#[derive(Debug)]
pub struct Steps {
    /// The launcher's part of a further process.
    pub spawn: u64,
    /// A process from its start to its first line.
    pub exec: u64,
    /// A line at the launcher, and its answer, without their bytes.
    pub line: u64,
    /// From the launcher to a rank that waits, or from there to the launcher.
    pub wake: u64,
    /// A byte through a local connection, both ends, in thousandths.
    pub local_byte: u64,
    /// A byte of another host: decrypted and stored, or encrypted and sent, in thousandths.
    pub far_byte: u64,
    /// The launcher of a host that reads and stores a value of another host.
    pub value: u64,
    /// The launcher that puts a value into an answer, which it does once for all ranks of its host.
    pub find: u64,
    /// A rank that takes the card of another one and makes its entry in the tables of the session.
    pub card: u64,
    /// The first message to another rank, beyond what a later one takes: of a node, and of another host.
    pub connect: [u64; 2],
}

/// Durations measured on two virtual cores of an EPYC (Zen 3, Linux 6.18), whose system calls take longer
/// than those of a bare machine: the processor time of `mpiexec` for 64 to 1,024 processes (`spawn`) and
/// ranks (`line`), `strace` of a rank (`exec`), the processor time of 64 and 256 ranks, and of reading a
/// difference (`card`), a loop over the cards of 65,536 ranks (`value`, `find`), first messages to sleeping
/// ranks (`connect`), one core that encrypts and sends (`far_byte`, docs/encrypt.md, and encoding).
pub const STEPS: Steps = Steps {
    spawn: 240_000,
    exec: 5_000_000,
    line: 19_000,
    wake: 10_000,
    local_byte: 200,
    far_byte: 500,
    value: 1_800,
    find: 2_100,
    card: 3_900,
    connect: [60_000, 1_000_000],
};

/// Numbers of ranks in the table.
pub const RANKS: [usize; 6] = [64, 256, 1024, 4096, 16_384, 65_536];

/// When each part of a start has ended, in nanoseconds from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The last rank of a host has told its card.
    pub told: u64,
    /// All hosts have the values of all ranks.
    pub released: u64,
    /// The last rank has read them.
    pub joined: u64,
    /// All ranks have the sum of the first allreduce; `None`: it was not run.
    pub summed: Option<u64>,
    /// Lines that the launcher of a host has answered.
    pub lines: u64,
    /// Bytes that the head has sent.
    pub head_bytes: u64,
}

/// A port of a rail of a rank, as arbitrary as those that Linux gives (32,768 to 60,999).
fn port(rank: usize, rail: usize) -> u64 {
    let mixed = ((2 * rank + rail + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    32_768 + (mixed >> 32) % 28_232
}

/// The card of a rank: two rails, its core and its machine.
pub fn card(stage: &Stage, rank: usize) -> String {
    let (host, [first, second]) = (rank / stage.cores, [0, 1].map(|rail| port(rank, rail)));
    let (a, b, core) = (host / 250, host % 250 + 1, rank % stage.cores);
    let machine = 0x1d0c_39a5_0000_0000_u64 + host as u64;
    format!("0=10.0.{a}.{b}/16:{first};1=10.1.{a}.{b}/16:{second};cores={core};machine={machine:x}")
}

/// The card as a value of the launcher.
fn value(stage: &Stage, rank: usize) -> String {
    format!("1:{}", value::escape(&card(stage, rank)))
}

/// Lines that a rank sends until it waits in the fence.
pub fn lines_before(stage: &Stage, rank: usize) -> Vec<String> {
    let (version, value) = (env!("CARGO_PKG_VERSION"), value(stage, rank));
    vec![
        format!("cmd=init pmi_version=1 pmi_subversion=1 library={version}"),
        "cmd=get_maxes".into(),
        "cmd=get_my_kvsname".into(),
        format!("cmd=get kvsname={JOB} key={}", mapping::KEY),
        "cmd=get_appnum".into(),
        format!("cmd=put kvsname={JOB} key=card-{rank} value={value}"),
        "cmd=barrier_in".into(),
    ]
}

/// The line by which a rank asks for the cards from this one on.
pub fn line_for(from: usize, ranks: usize) -> String {
    format!("cmd=nmad_values kvsname={JOB} name=card- from={from} count={ranks}")
}

/// The launcher of a host, which does one thing at a time.
struct Host {
    server: Server,
    idle_at: u64,
    lines: u64,
}

/// A line from a member to the launcher of its host, or the answer on its way back.
type Pending = Reverse<(u64, usize)>;

/// What a member does with an answer: how long that takes, and its next line; `None` ends its part.
struct Next {
    line: Option<String>,
    busy: u64,
}

/// Values in an answer with many.
fn count(answer: &str) -> usize {
    let list = Line::parse(answer).ok().and_then(|line| line.get("values"));
    list.map_or(0, |list| list.split(VALUES_END).count())
}

impl Host {
    /// Handles the lines that members send: the first ones at these times, each further one when the answer
    /// to the one before has come and was used. Returns when the last answer was.
    fn talk(&mut self, first: &[u64], mut next: impl FnMut(usize, Option<&str>) -> Next) -> u64 {
        let mut pending: BinaryHeap<Pending> = BinaryHeap::new();
        let mut lines: Vec<String> = Vec::new();
        for (member, at) in first.iter().enumerate() {
            pending.push(Reverse((*at, member)));
            lines.push(next(member, None).line.unwrap_or_default());
        }
        let (mut last, mut found) = (0, HashSet::new());
        while let Some(Reverse((at, member))) = pending.pop() {
            let line = std::mem::take(&mut lines[member]);
            self.lines += 1;
            let events = self.server.handle(member as u32, &line);
            let answers = events.iter().filter_map(|event| match event {
                Event::Reply(to, text) => Some((*to as usize, text)),
                _ => None,
            });
            let begun = self.idle_at.max(at);
            let bytes = answers.clone().map(|(_, text)| text.len()).sum::<usize>() + line.len();
            self.idle_at = begun + STEPS.line + bytes as u64 * STEPS.local_byte / 1000;
            let of_many = answers.clone().map(|(_, text)| count(text)).sum::<usize>();
            if of_many > 0 && found.insert(line) {
                self.idle_at += of_many as u64 * STEPS.find;
            }
            for (to, answer) in answers {
                let Next { line, busy } = next(to, Some(answer));
                last = last.max(self.idle_at + STEPS.wake + busy);
                if let Some(line) = line {
                    lines[to] = line;
                    pending.push(Reverse((self.idle_at + 2 * STEPS.wake + busy, to)));
                }
            }
        }
        last
    }
}

impl Start {
    /// Runs the start of a job on such a machine.
    pub fn of(stage: Stage) -> Start {
        let (ranks, hosts, members) = (stage.ranks, stage.hosts(), stage.ranks.min(stage.cores));
        let own = (0..members as u32).map(|rank| (rank, 0));
        let mut host = Host {
            server: Server::part(JOB, own, ranks as u32, &mapping::write(&stage.nodes())),
            idle_at: members as u64 * STEPS.spawn,
            lines: 0,
        };
        let first: Vec<u64> = (1..=members as u64).map(|count| count * STEPS.spawn + STEPS.exec).collect();
        let mut before: Vec<_> = (0..members).map(|rank| lines_before(&stage, rank).into_iter()).collect();
        let told = host.talk(&first, |member, _| Next { line: before[member].next(), busy: 0 });

        let values: Vec<(String, String)> =
            (0..ranks).map(|rank| (format!("card-{rank}"), value(&stage, rank))).collect();
        let len: usize = values.chunks(stage.cores).map(|own| delta::write_pairs(own).len()).sum();
        let passed_ps = len as u64 * STEPS.far_byte;
        let (released, head_bytes) = match hosts {
            1 => (told, 0),
            _ => {
                // The head reads a message of each host.
                let read = told + hosts as u64 * STEPS.line + passed_ps / 1000;
                let values = ranks as u64 * STEPS.value;
                (passed(hosts, read, passed_ps / 1000) + values, (hosts.min(tree::WIDTH) * len) as u64)
            }
        };
        host.idle_at = released;
        host.server.release(values);

        let ready = vec![released + STEPS.wake; members];
        let mut known = vec![0; members];
        let joined = host.talk(&ready, |member, answer| {
            let new = answer.map_or(0, count);
            known[member] += new;
            let line = (known[member] < ranks).then(|| line_for(known[member], ranks));
            Next { line, busy: new as u64 * STEPS.card }
        });
        let case = Case { stage, family: Family::Allreduce, len: 8 };
        let doublings = |count: usize| u64::from(log2_ceil(count));
        let opened = doublings(members) * STEPS.connect[0] + doublings(hosts) * STEPS.connect[1];
        let sum = case.run_within(case.chosen(), MESSAGES_MAX);
        let summed = sum.map(|outcome| joined + opened + outcome.ps / 1000);
        Start { told, released, joined, summed, lines: host.lines, head_bytes }
    }
}

/// When the last host has what the head begins to send along the tree: each host sends it to those below it,
/// one after the other, in `each` nanoseconds.
fn passed(hosts: usize, begin: u64, each: u64) -> u64 {
    let mut have = vec![0; hosts];
    for node in 0..hosts as u32 {
        let from = tree::parent(node).map_or(begin, |parent| have[parent as usize]);
        let before = u64::from(node) % tree::WIDTH as u64;
        have[node as usize] = from + (before + 2) * each + STEPS.wake;
    }
    have.into_iter().max().unwrap_or(begin)
}

/// The table of starts.
pub fn table() -> String {
    let fabric = &FABRICS[0];
    let mut table =
        Table::new("Start of a job, from its first processes to its first allreduce", fabric.title);
    table.note(
        "Hosts of 64 cores, milliseconds from the moment at which the launcher of each host starts its first \
         rank. told: all ranks of a host have sent their cards; released: all hosts have all cards; joined: \
         the last rank has read them; summed: all have the sum of the first allreduce of 8 B.",
    );
    let heads = ["ranks", "told", "released", "joined", "summed", "lines a host", "MB from the head"];
    table.rows(&heads, &RANKS.map(row));
    table.finish()
}

/// The row of a number of ranks.
pub fn row(ranks: usize) -> Vec<String> {
    let start = Start::of(Stage::block(&FABRICS[0], ranks));
    let ms = |ns: u64| rounded(ns as f64 / 1e6);
    let times = [start.told, start.released, start.joined].map(ms);
    let sent = rounded(start.head_bytes as f64 / 1e6);
    let rest = [start.summed.map_or("-".into(), ms), start.lines.to_string(), sent];
    [ranks.to_string()].into_iter().chain(times).chain(rest).collect()
}

/// Prints it: an object for each number of ranks, or the table.
pub fn run(json: bool) -> ExitCode {
    if !json {
        say_line(table().trim_end());
        return ExitCode::SUCCESS;
    }
    for ranks in RANKS {
        let Start { told, released, joined, summed, lines, head_bytes } =
            Start::of(Stage::block(&FABRICS[0], ranks));
        let summed = summed.map_or("null".into(), |ns| ns.to_string());
        let ns = format!("\"told\":{told},\"released\":{released},\"joined\":{joined},\"summed\":{summed}");
        say_line(format_args!(
            "{{\"schema\":{JSON_SCHEMA},\"kind\":\"start\",\"ranks\":{ranks},\"ns\":{{{ns}}},\
             \"lines\":{lines},\"head_bytes\":{head_bytes}}}"
        ));
    }
    ExitCode::SUCCESS
}
