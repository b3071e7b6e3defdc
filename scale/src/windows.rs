//! Windows, partitioned messages and splits of many ranks in virtual time.
//!
//! What an origin sends is recorded from the protocol that ships ([`Origin`]), once, and done by all ranks.
//! What a window or a new communicator needs is exchanged along the tree of agreements that ships ([`tree`]),
//! with the bytes that are sent there, and by collectives. Steps of a creation follow each other, each when
//! all ranks have ended the one before. Ranks of one host see each other's memory: what they do is a copy,
//! and locks among them have no model.

use super::case::Case;
use super::fabric::FABRICS;
use super::job::Job;
use super::regret::MESSAGES_MAX;
use super::stage::Stage;
use super::world::World;
use nmad_engine::packet::{PeerId, RequestId};
use nmad_engine::{Context, Outcome, Port, Segments, Source, Tag, TagMatch};
use nmad_mpi_base::algorithm::choice::Family;
use nmad_mpi_base::algorithm::place::{Buffer, Place, Spot};
use nmad_mpi_base::algorithm::schedule::{Builder, Schedule, Step};
use nmad_mpi_base::colors::Colors;
use nmad_mpi_base::tree;
use nmad_rma::frame::Kind;
use nmad_rma::{Asking, Origin, To, locks};
use nmad_sim::buffer;
use nmad_sim::golden::table::{Table, rounded};
use nmad_words::{JSON_SCHEMA, say_line};
use std::process::ExitCode;

/// Numbers of 8 bytes that an agreement on the number of a communicator takes.
const NUMBER: u64 = 2;
/// Those of which a window needs the greatest.
const GREATEST: u64 = 10;
/// Bytes that each rank tells those of its node: about memory in common, and about its process.
const NODE: [u64; 2] = [40, 32];
/// Bytes that each rank tells all others if sizes or units of displacements differ.
const SIZES: u64 = 16;
/// A longer message says how long the next one is.
const LENGTH: u64 = 8;

/// A message to the target of an access, and the length of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Bytes with all frames.
    pub len: u64,
    /// Ranks of one host send it to each other, too.
    pub is_announcement: bool,
    /// None: it has no answer.
    pub answer: Option<u64>,
}

/// Records what an origin sends.
#[derive(Default)]
struct Recorder {
    messages: Vec<Message>,
    expected: Option<u64>,
}

impl Port for Recorder {
    fn send(&mut self, _: &(PeerId, Context, Tag), data: &Segments) -> Option<RequestId> {
        let answer = self.expected.take();
        self.messages.push(Message { len: data.len(), is_announcement: false, answer });
        None
    }

    fn receive(&mut self, _: (Source, Context, TagMatch), _: Segments) -> RequestId {
        // Without an error the answer to a flush is empty.
        self.expected = Some(0);
        RequestId(1)
    }

    fn take(&mut self, _: RequestId) -> Option<Outcome> {
        None
    }
}

/// What the origin that ships asks of a target at a time.
#[derive(Debug, Clone, Copy)]
pub enum Ask {
    /// A put, and its flush.
    Put(u64),
    /// A lock for this origin alone, which is waited for.
    Lock,
    /// A put, and the end of the lock.
    PutUnlock(u64),
    /// A put as the only access while all ranks are locked.
    PutOfAll(u64),
    /// That memory is exposed, or that accesses have ended.
    Announce(Kind),
}

impl Ask {
    /// The messages of it.
    pub fn messages(self) -> Vec<Message> {
        let (mut origin, mut port) = (Origin::new(1), Recorder::default());
        let context = Context(0);
        let to = To { rank: 0, peer: PeerId(0), context, frames: (context, Tag(0)) };
        let mut ask = |what: &dyn Fn(Asking<'_, Recorder>)| what(origin.asking(&mut port, to, None));
        let put = |len: u64| {
            let data = buffer::Buffer::new(&[len as usize]);
            move |to: Asking<'_, Recorder>| to.put(nmad_rma::Place::One(0, len), &data.segments())
        };
        match self {
            Ask::Put(len) => {
                ask(&put(len));
                ask(&|to| to.flush());
            }
            Ask::Lock => {
                ask(&|to| to.lock(locks::Kind::Alone));
                ask(&|to| to.flush());
            }
            Ask::PutUnlock(len) => {
                ask(&put(len));
                ask(&|to| to.unlock(true));
            }
            Ask::PutOfAll(len) => {
                ask(&|to| to.lock(locks::Kind::Early));
                ask(&put(len));
                ask(&|to| to.unlock(false));
            }
            Ask::Announce(kind) => ask(&|to| to.announce(kind)),
        }
        let is_announcement = matches!(self, Ask::Announce(_));
        port.messages.iter_mut().for_each(|message| message.is_announcement = is_announcement);
        port.messages
    }
}

/// Bytes at a place that no other step uses.
fn bytes(len: u64) -> Place {
    Place::bytes(Spot::start(Buffer::Recv), len)
}

/// What all ranks do at the same time.
struct Act {
    stage: Stage,
    schedules: Vec<Vec<Schedule>>,
}

impl Act {
    fn new(stage: Stage) -> Act {
        Act { stage, schedules: (0..stage.ranks).map(|_| Vec::new()).collect() }
    }

    /// Each rank asks the ranks at these distances; those of its host at once, by a copy of `near` bytes.
    fn ask(mut self, distances: &[i64], asks: &[Ask], near: u64) -> Act {
        let ranks = self.stage.ranks as i64;
        let messages: Vec<Vec<Message>> = asks.iter().map(|ask| ask.messages()).collect();
        let host = |rank: i64| rank as usize / self.stage.cores;
        for rank in 0..ranks {
            let mut builder = Builder::default();
            let other = |distance: i64| (rank + distance).rem_euclid(ranks);
            let far = |direction: i64, message: &Message| {
                let (all, is_told) = (distances.iter().enumerate(), message.is_announcement);
                let all = all.map(move |(place, distance)| (place as u32, other(direction * distance)));
                all.filter(move |(_, other)| host(*other) != host(rank) || (is_told && *other != rank))
            };
            let count = distances.len() as u32;
            let mut done: Vec<Step> = Vec::new();
            for (slot, message) in (0..).zip(messages.iter().flatten()) {
                let slot = |place: u32, is_answer| 2 * (slot * count + place) + u32::from(is_answer);
                let sends: Vec<Step> = far(1, message)
                    .map(|(place, to)| builder.send(to as u32, slot(place, false), bytes(message.len), &done))
                    .collect();
                for (place, from) in far(-1, message) {
                    let came = builder.recv(from as u32, slot(place, false), bytes(message.len), &[]);
                    let served = builder.copy(bytes(message.len), bytes(message.len), &[came]);
                    if let Some(len) = message.answer {
                        builder.send(from as u32, slot(place, true), bytes(len), &[served]);
                    }
                }
                let answers = |(place, to)| {
                    let len = message.answer?;
                    Some(builder.recv(to as u32, slot(place, true), bytes(len), &sends))
                };
                let answered: Vec<Step> = far(1, message).filter_map(answers).collect();
                done = if answered.is_empty() { sends } else { answered };
            }
            let is_near = |distance: &&i64| host(other(**distance)) == host(rank);
            for _ in distances.iter().filter(is_near).filter(|_| near > 0) {
                builder.copy(bytes(near), bytes(near), &[]);
            }
            self.schedules[rank as usize].push(builder.finish());
        }
        self
    }

    /// Each rank sends a message of this many bytes in parts to the next one.
    fn ring(mut self, len: u64, parts: u64) -> Act {
        let ranks = self.stage.ranks as u32;
        for rank in 0..ranks {
            let mut builder = Builder::default();
            for part in 0..parts as u32 {
                builder.send((rank + 1) % ranks, part, bytes(len / parts), &[]);
                builder.recv((rank + ranks - 1) % ranks, part, bytes(len / parts), &[]);
            }
            self.schedules[rank as usize].push(builder.finish());
        }
        self
    }

    /// Along the tree of agreements, up and down; a rank sends messages of these bytes to its parent, and of
    /// those to its children.
    fn agree(mut self, up: &dyn Fn(i32) -> Vec<u64>, down: &[u64]) -> Act {
        let ranks = self.stage.ranks as i32;
        for rank in 0..ranks {
            let (mut builder, children) = (Builder::default(), tree::children(rank, ranks));
            let mut last: Vec<Step> = Vec::new();
            let one =
                |builder: &mut Builder, to: Option<i32>, from: i32, (slot, len), last: &mut Vec<Step>| {
                    *last = vec![match to {
                        Some(to) => builder.send(to as u32, slot, bytes(len), last),
                        None => builder.recv(from as u32, slot, bytes(len), last),
                    }];
                };
            for &child in &children {
                for (slot, len) in (0..).zip(up(child)) {
                    one(&mut builder, None, child, (slot, len), &mut last);
                }
            }
            if rank > 0 {
                let parent = tree::parent(rank);
                for (slot, len) in (0..).zip(up(rank)) {
                    one(&mut builder, Some(parent), 0, (slot, len), &mut last);
                }
                for (slot, &len) in (2..).zip(down) {
                    one(&mut builder, None, parent, (slot, len), &mut last);
                }
            }
            for &child in children.iter().rev() {
                for (slot, &len) in (2..).zip(down) {
                    one(&mut builder, Some(child), 0, (slot, len), &mut last);
                }
            }
            self.schedules[rank as usize].push(builder.finish());
        }
        self
    }

    /// All wait for all.
    fn barrier(mut self) -> Act {
        let case = Case { stage: self.stage, family: Family::Barrier, len: 8 };
        let mut schedules = self.schedules.iter_mut();
        case.schedules(case.chosen(), |schedule| schedules.next().map(|all| all.push(schedule)).is_some());
        self
    }

    /// Picoseconds until the last rank has ended. `data`: bytes that each rank works on.
    fn ps(self, data: u64) -> u64 {
        let mut job = Job::default();
        for schedules in &self.schedules {
            job.add(&schedules.iter().collect::<Vec<_>>());
        }
        let ended = job.connect().and_then(|()| World::new(&self.stage, (&job, data), &mut ()).run());
        ended.unwrap_or_else(|why| panic!("{:?}: {why}", self.stage)).ps
    }
}

/// Time of an exchange of the greatest of some numbers.
fn greatest_ps(stage: Stage, numbers: u64) -> u64 {
    Act::new(stage).agree(&|_| vec![8 * numbers], &[8 * numbers]).ps(0)
}

/// Time of an allgather by the chosen algorithm; none: it sends too many messages.
fn allgather_ps(stage: Stage, len: u64) -> Option<u64> {
    let case = Case { stage, family: Family::Allgather, len };
    Some(case.run_within(case.chosen(), MESSAGES_MAX)?.ps)
}

/// Time of the creation of a window; `differ`: ranks have memory of different sizes.
pub fn creation_ps(stage: Stage, differ: bool) -> Option<u64> {
    let host = Stage { ranks: stage.ranks.min(stage.cores), ..stage };
    let numbers = 2 * greatest_ps(stage, NUMBER) + greatest_ps(stage, GREATEST);
    let node = NODE.iter().map(|&len| allgather_ps(host, len)).sum::<Option<u64>>()?;
    let sizes = if differ { allgather_ps(stage, SIZES)? } else { 0 };
    Some(numbers + node + sizes)
}

/// Time of a split, and the bytes that describe it in the end.
pub fn split(stage: Stage, color: &dyn Fn(u32) -> i32) -> (u64, u64) {
    let ranks = stage.ranks as i32;
    let mut written: Vec<Vec<u8>> = vec![Vec::new(); stage.ranks];
    let mut lens = vec![0; stage.ranks];
    for rank in (0..ranks).rev() {
        let mut all = Colors::of(rank as u32, color(rank as u32), rank);
        for child in tree::children(rank, ranks) {
            assert!(
                all.add(&std::mem::take(&mut written[child as usize]), ranks as u32),
                "a subtree writes what can be read"
            );
        }
        written[rank as usize] = all.write();
        lens[rank as usize] = written[rank as usize].len() as u64;
    }
    let colors = Act::new(stage).agree(&|rank| vec![LENGTH, lens[rank as usize]], &[LENGTH, lens[0]]);
    (colors.ps(lens[0]) + greatest_ps(stage, NUMBER), lens[0])
}

/// A color for each rank without any pattern, of as many colors as there are hosts.
pub fn arbitrary(stage: Stage) -> impl Fn(u32) -> i32 {
    let hosts = stage.hosts() as u64;
    move |rank| (((u64::from(rank) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % hosts.max(2)) as i32
}

/// Numbers of ranks in the table.
pub const RANKS: [usize; 6] = [2, 64, 256, 1024, 4096, 16_384];
/// Bytes of a put to a neighbour.
const HALO: u64 = 1 << 10;
/// Targets of puts while all ranks are locked, and how far they are apart.
const TARGETS: [i64; 2] = [1, 16];
const APART: i64 = 8;
/// Bytes and parts of a partitioned message.
const PARTS: (u64, u64) = (1 << 20, 16);

/// The times of one number of ranks, in picoseconds; none: not run.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Ranks.
    pub ranks: usize,
    /// A window whose ranks have memory of one size, and of different sizes.
    pub creation: [Option<u64>; 2],
    /// A fence without accesses.
    pub fence: u64,
    /// A lock, a put of 8 B, and an unlock at the same core of the next host.
    pub lock: Option<u64>,
    /// The locks of all ranks, puts of 8 B to one rank of another host or to several, and their end.
    pub all: [Option<u64>; 2],
    /// Puts to four neighbours, and a fence.
    pub halo: u64,
    /// The same between post, start, complete and wait.
    pub post: u64,
    /// A message in parts to the next rank, and in one.
    pub ring: [u64; 2],
    /// A split by hosts, and an arbitrary one.
    pub split: [(u64, u64); 2],
}

impl Row {
    /// Runs all of it.
    pub fn of(stage: Stage) -> Row {
        let row = stage.cores as i64;
        let (neighbours, put) = ([1, -1, row, -row], Ask::Put(HALO));
        let act = || Act::new(stage);
        let announced = [Ask::Announce(Kind::Post), put, Ask::Announce(Kind::Complete)];
        let locked = [Ask::Lock, Ask::PutUnlock(8)];
        let (len, parts) = PARTS;
        Row {
            ranks: stage.ranks,
            creation: [false, true].map(|differ| creation_ps(stage, differ)),
            fence: act().barrier().ps(0),
            lock: (stage.hosts() > 1).then(|| act().ask(&[row], &locked, 0).ps(0)),
            all: TARGETS.map(|count| {
                let targets: Vec<i64> = (0..count).map(|at| row + APART * at).collect();
                (stage.hosts() > 1).then(|| act().ask(&targets, &[Ask::PutOfAll(8)], 0).ps(0))
            }),
            halo: act().ask(&neighbours, &[put], HALO).barrier().ps(HALO),
            post: act().ask(&neighbours, &announced, HALO).ps(HALO),
            ring: [parts, 1].map(|parts| act().ring(len, parts).ps(len)),
            split: [
                split(stage, &|rank| (rank as usize / stage.cores) as i32),
                split(stage, &arbitrary(stage)),
            ],
        }
    }

    /// Its cells.
    pub fn cells(&self) -> Vec<String> {
        let us = |ps: Option<u64>| ps.map_or("-".into(), |ps| rounded(ps as f64 / 1e6));
        let [equal, different] = self.creation;
        let [hosts, any] = self.split;
        let [one, several] = self.all;
        let times = [equal, different, Some(self.fence), self.lock, one, several];
        let times = times.into_iter().chain([self.halo, self.post].map(Some));
        let rest = [self.ring[0], self.ring[1], hosts.0, any.0].map(Some);
        let times = times.chain(rest).map(us);
        let bytes = [hosts.1, any.1].map(|len| len.to_string());
        [self.ranks.to_string()].into_iter().chain(times).chain(bytes).collect()
    }
}

/// Heads of the cells.
const HEADS: [&str; 15] = [
    "ranks", "create", "differ", "fence", "lock", "all 1", "all 16", "halo", "post", "parts", "whole",
    "split", "any", "B", "B any",
];
/// Of them those of times.
const TIMES: std::ops::Range<usize> = 1..13;

/// The table of rows.
pub fn table(ranks: &[usize]) -> String {
    let fabric = &FABRICS[0];
    let mut table = Table::new("Windows, partitioned messages and splits of many ranks", fabric.title);
    table.note(
        "Hosts of 64 cores, ranks in blocks; microseconds until the last rank has ended. create: a window; \
         differ: one whose ranks have memory of different sizes. fence: without accesses. lock: lock, put of \
         8 B and unlock at the same core of the next host. all 1, all 16: lock_all, puts of 8 B to so many \
         ranks, from that one on by eights, and unlock_all. halo: puts of 1 KiB to the ranks 1 and 64 before \
         and behind, and a fence; post: the same with post, start, complete and wait. parts: 1 MiB in 16 \
         parts from each rank to the next; whole: in one message. split: MPI_Comm_split by hosts, any: by \
         arbitrary colors, as many as hosts; B: bytes that describe it. -: nothing but loads and stores.",
    );
    let rows: Vec<_> = ranks.iter().map(|&ranks| Row::of(Stage::block(fabric, ranks)).cells()).collect();
    table.rows(&HEADS, &rows);
    table.finish()
}

/// Prints it: an object for each number of ranks, or the table.
pub fn run(json: bool, ranks: &[usize]) -> ExitCode {
    if !json {
        say_line(table(ranks).trim_end());
        return ExitCode::SUCCESS;
    }
    for &ranks in ranks {
        let cells = Row::of(Stage::block(&FABRICS[0], ranks)).cells();
        let number = |cell: &String| if cell == "-" { "null".into() } else { cell.clone() };
        let of = |(head, cell): (&&str, &String)| format!("\"{}\":{}", head.replace(' ', "_"), number(cell));
        let us: Vec<String> = HEADS[TIMES].iter().zip(&cells[TIMES]).map(of).collect();
        let bytes: Vec<String> = ["split", "any"].iter().zip(&cells[TIMES.end..]).map(of).collect();
        say_line(format_args!(
            "{{\"schema\":{JSON_SCHEMA},\"kind\":\"windows\",\"ranks\":{ranks},\"us\":{{{}}},\
             \"bytes\":{{{}}}}}",
            us.join(","),
            bytes.join(",")
        ));
    }
    ExitCode::SUCCESS
}
