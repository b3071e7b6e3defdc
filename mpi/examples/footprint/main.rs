//! Memory of a rank against the number of ranks of its job, counted by the allocator: of the session after
//! its start, of the groups and teams of communicators, and of the launcher on the rank's node.
//!
//!     cargo run --release -p nmad-mpi --example footprint
//!     cargo run --release -p nmad-mpi --example footprint -- 100000
//!
//! The last rank of each job is a process; all others are answers of a launcher that this program is.
//! Exit code 1 if a peer with which nothing was exchanged, or all of them together, take more memory than
//! promised.

mod heap;
mod launcher;

use newmadeleine::Session;
use nmad_launch::pmi::server::Server;
use nmad_mpi::group::Group;
use nmad_mpi_base::algorithm::team::{Reach, Team};
use std::process::ExitCode;

/// Numbers of ranks.
const RANKS: [u32; 7] = [2, 16, 256, 1024, 4096, 16_384, 100_000];
/// Networks of the session.
const RAILS: [&str; 2] = ["tcp/lo,shm", "udp/lo,shm"];
/// Bytes of an idle peer, and of everything that the library has during the start, where there are [`MANY`]
/// ranks.
const PEER_MOST: usize = 200;
const ALL_MOST: usize = 64 << 20;
const MANY: u32 = 100_000;
/// Ranks for which figures are extrapolated.
const FAR: u32 = 1_000_000;
/// Bytes of the card of a rank.
const CARD: usize = 128;
/// By which this program is the rank.
const RANK: &str = "rank";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == RANK) {
        return rank();
    }
    let given: Option<Vec<u32>> =
        arguments.iter().map(|word| word.parse().ok().filter(|&ranks| ranks > 1)).collect();
    let ranks = match given {
        Some(given) if given.is_empty() => RANKS.to_vec(),
        Some(given) => given,
        None => {
            eprintln!("usage: footprint [RANKS...], each at least 2");
            return ExitCode::from(2);
        }
    };
    groups(&ranks);
    let mut exceeded = false;
    for rails in RAILS {
        match sessions(rails, &ranks) {
            Ok(is_over) => exceeded |= is_over,
            Err(why) => {
                eprintln!("{rails}: {why}");
                return ExitCode::from(3);
            }
        }
    }
    ExitCode::from(u8::from(exceeded))
}

/// Opens the session of a rank, and prints what is on the heap then, and what was at most.
fn rank() -> ExitCode {
    let before = heap::live();
    heap::forget_peak();
    let session = match Session::open() {
        Ok(session) => session,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    println!("{} {}", heap::live() - before, heap::peak() - before);
    // The other ranks do not exist, so closing would wait for them in vain.
    std::mem::forget(session);
    ExitCode::SUCCESS
}

/// Measures the session in jobs of these sizes; true: it takes more than promised.
fn sessions(rails: &str, ranks: &[u32]) -> std::io::Result<bool> {
    let mut measured: Vec<(u32, [usize; 2])> = Vec::new();
    for &ranks in ranks {
        let told = launcher::run(ranks, rails, &[RANK])?;
        let numbers: Vec<usize> = told.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [kept, most] = numbers[..] else { return Err(std::io::Error::other(format!("told {told:?}"))) };
        measured.push((ranks, [kept, most]));
    }
    println!("session over {rails}, nodes of {} ranks: B kept, B at most during the start", launcher::CORES);
    let mut exceeded = false;
    for &(ranks, [kept, most]) in &measured {
        let each = slope(&measured, ranks, 0);
        println!("{ranks:>8} {kept:>10} {most:>10}  {} B more for each further peer", shown(each));
        exceeded |= ranks >= MANY && (most > ALL_MOST || each.is_some_and(|each| each > PEER_MOST as f64));
    }
    if let Some(&(last, both)) = measured.last().filter(|(last, _)| *last < FAR) {
        let at = |which: usize| {
            let each = slope(&measured, last, which)?;
            Some(both[which] as f64 + each * f64::from(FAR - last))
        };
        println!("{FAR:>8} {:>10} {:>10}  extrapolated", shown(at(0)), shown(at(1)));
    }
    Ok(exceeded)
}

/// Bytes for each rank between this number of ranks and the one measured before.
fn slope(measured: &[(u32, [usize; 2])], ranks: u32, which: usize) -> Option<f64> {
    let place = measured.iter().position(|(known, _)| *known == ranks)?;
    let (before, less) = measured.get(place.checked_sub(1)?)?;
    let more = measured[place].1[which] as f64 - less[which] as f64;
    (ranks > *before).then(|| more / f64::from(ranks - before))
}

fn shown(bytes: Option<f64>) -> String {
    bytes.map_or("-".into(), |bytes| format!("{bytes:.0}"))
}

/// Prints the bytes of the groups of common communicators, of the team of all ranks with what collectives ask
/// of it, and of what the launcher of a node keeps.
fn groups(ranks: &[u32]) {
    let heads = ["all", "even", "a node", "a half", "all but one", "leaders", "team", "launcher"];
    println!("groups, team, and launcher of a node, B: {}", heads.join(", "));
    for &ranks in ranks {
        let cores = launcher::CORES.min(ranks);
        let kept = [
            heap::kept_by(|| Group::new(0..ranks)),
            heap::kept_by(|| Group::new((0..ranks).step_by(2))),
            heap::kept_by(|| Group::new(0..cores)),
            heap::kept_by(|| Group::new(ranks / 2..ranks)),
            heap::kept_by(|| Group::new((0..ranks).filter(|rank| *rank != ranks / 3))),
            heap::kept_by(|| Group::new((0..ranks).step_by(cores as usize))),
            heap::kept_by(|| team(ranks)),
            heap::kept_by(|| served(ranks)),
        ];
        println!("{ranks:>8} {}", kept.map(|bytes| format!("{bytes:>8}")).join(" "));
    }
}

/// The launcher's server of the ranks of a node, with the cards of all ranks.
fn served(ranks: u32) -> Server {
    let map = format!("(vector,(0,{},{}))", ranks.div_ceil(launcher::CORES), launcher::CORES);
    let here = (0..launcher::CORES.min(ranks)).map(|rank| (rank, 0));
    let mut server = Server::part("job", here, ranks, &map);
    // As long as the card of a rank over TCP and shared memory.
    let card = |rank| (format!("card-{rank}"), "1:".repeat(CARD / 2));
    server.release((0..ranks).map(card).collect());
    server
}

fn team(ranks: u32) -> Team {
    let nodes: Vec<u32> = (0..ranks).map(|rank| rank / launcher::CORES).collect();
    let team = Team::new(&nodes, 0);
    assert!(team.group_count() == ranks.div_ceil(launcher::CORES) as usize && !team.shapes().is_empty());
    team.leaving(Reach::Shift(1));
    team.column();
    team
}
