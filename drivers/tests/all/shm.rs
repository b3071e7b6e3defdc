//! Shared memory between processes: this binary starts itself as the other one.

use nmad_drivers::conformance::memory::Memory;
use nmad_drivers::shm::{ShmConfig, ShmRail};
use nmad_engine::packet::{Key, Packet, PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Interest, Order, Scope};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SECRET: [u8; 32] = [5; 32];
/// The address of the parent, for the child; with `off` behind it cross-memory access is forbidden.
const PARENT: &str = "NMAD_TEST_PARENT";
const REGION: RegionId = RegionId(9);
const LEN: usize = 8 << 20;

fn open(rank: u32, cross_memory: bool) -> ShmRail {
    let config = ShmConfig { cross_memory, ..ShmConfig::new(PeerId(rank), 0, SECRET) };
    ShmRail::open(config).expect("a rail opens")
}

/// The other process: tells its address and the key of a receive region, and answers a chunk by what it got.
#[test]
fn child() {
    let Ok(parent) = std::env::var(PARENT) else { return };
    let (parent, cross) = parent.split_once(' ').expect("an address and a switch");
    let mut rail = open(1, cross == "on");
    assert!(rail.know(PeerId(0), 0, parent));
    let memory = Memory::zeroed(LEN);
    println!("\naddress {}", rail.address());
    let mut answers = Vec::new();
    let mut key = None;
    loop {
        rail.poll(Scope::All, &mut |event| match event {
            Event::Up { .. } => key = Some(()),
            Event::Arrived { packet, .. } => answers.push(packet.to_vec()),
            Event::Landed { kept, .. } => {
                let right = memory.bytes() == Memory::pattern(LEN, 3).bytes();
                answers.push(vec![u8::from(kept && right); 16]);
            }
            Event::Lost { .. } => std::process::exit(0),
            _ => {}
        });
        if key.take().is_some() {
            let key = rail.open(REGION, PeerId(0), memory.segments());
            answers.push(key.0.to_le_bytes().to_vec());
        }
        for (number, bytes) in answers.drain(..).enumerate() {
            let packet = Packet { bytes, in_place: Vec::new() };
            rail.send(Departure::Order(Order::Packet { to: PeerId(0), number: number as u32, packet }));
        }
        rail.flush();
    }
}

struct Pair {
    rail: ShmRail,
    child: Child,
    key: Key,
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(ours: bool, theirs: bool) -> Pair {
    let mut rail = open(0, ours);
    let told = format!("{} {}", rail.address(), if theirs { "on" } else { "off" });
    let own = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(own)
        .args(["--exact", "shm::child", "--nocapture", "--test-threads=1"])
        .env(PARENT, told)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the other process starts");
    let lines = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
    let address =
        lines.map_while(Result::ok).find_map(|line| Some(line.strip_prefix("address ")?.to_string()));
    assert!(rail.know(PeerId(1), 0, &address.expect("the child tells its address")));
    rail.send(Departure::Order(Order::Connect { to: PeerId(1) }));
    let mut pair = Pair { rail, child, key: Key(0) };
    let key = pair.answer();
    pair.key = Key(u64::from_le_bytes(key.try_into().expect("a key")));
    pair
}

impl Pair {
    /// The next packet of the child.
    fn answer(&mut self) -> Vec<u8> {
        self.until(|event| match event {
            Event::Arrived { packet, .. } => Some(packet.to_vec()),
            Event::Lost { why, .. } => panic!("{why}"),
            _ => None,
        })
    }

    fn until<T>(&mut self, mut wanted: impl FnMut(&Event<'_>) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            let mut found = None;
            self.rail.poll(Scope::All, &mut |event| found = found.take().or_else(|| wanted(&event)));
            if let Some(found) = found {
                return found;
            }
            assert!(begun.elapsed() < Duration::from_secs(8), "awaited in vain");
        }
    }

    fn send(&mut self, number: u32, offset: u64, from: &Memory) {
        let (key, from) = (self.key, from.segments());
        let order = Order::Chunk { to: PeerId(1), number, ack: 7, region: REGION, key, offset, from };
        self.rail.send(Departure::Order(order));
        self.rail.flush();
    }
}

#[test]
fn packets_and_chunks_travel_between_processes() {
    for (ours, theirs) in [(true, true), (false, false), (true, false), (false, true)] {
        let mut pair = start(ours, theirs);
        for len in [16, 56, 57, 5000, 30_000] {
            let bytes = Memory::pattern(len, 4).bytes().to_vec();
            let packet = Packet { bytes: bytes.clone(), in_place: Vec::new() };
            pair.rail.send(Departure::Order(Order::Packet { to: PeerId(1), number: 0, packet }));
            pair.rail.flush();
            assert!(pair.answer() == bytes, "{len} B come back as they were");
        }
        let source = Memory::pattern(LEN, 3);
        pair.send(1, 0, &source);
        assert_eq!(pair.answer(), [1; 16], "the chunk is whole, with {ours} {theirs}");
    }
}

#[test]
fn a_peer_that_is_killed_in_the_middle_of_a_chunk_is_lost_within_five_seconds() {
    for cross in [true, false] {
        let mut pair = start(cross, cross);
        let source = Memory::pattern(LEN, 3);
        (0..6).for_each(|number| pair.send(number, 0, &source));
        (0..50).for_each(|_| _ = pair.rail.poll(Scope::All, &mut |_| ()));
        pair.child.kill().expect("it is killed");
        let begun = Instant::now();
        let why = pair.until(|event| match event {
            Event::Lost { why, .. } => Some(why.clone()),
            _ => None,
        });
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(why.contains("peer 1"), "{why}");
    }
}

/// The files in the folder for shared memory.
fn files_in_memory() -> BTreeSet<OsString> {
    let entries = std::fs::read_dir("/dev/shm").into_iter().flatten();
    entries.filter_map(Result::ok).map(|entry| entry.file_name()).collect()
}

#[test]
fn nothing_is_left_of_a_process_that_was_killed() {
    // Other programs have files there, too.
    let files = files_in_memory();
    let mut pair = start(true, true);
    let names = || {
        let sockets = std::fs::read_to_string("/proc/net/unix").expect("the list of sockets");
        let own = pair.rail.address();
        let own = own.rsplit('/').next().unwrap_or_default().to_string();
        sockets.lines().filter(|line| line.contains("@nmad-") && !line.contains(&own)).count()
    };
    let before = names();
    let is_ours = |name: &OsString| name.to_string_lossy().contains("nmad") && !files.contains(name);
    assert!(!files_in_memory().iter().any(is_ours), "no file ever");
    assert!(before > 0, "the other process has a door");
    pair.child.kill().expect("it is killed");
    pair.child.wait().expect("it ends");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("our memory");
    assert!(maps.contains("memfd:nmad-link"), "shared until we are told");
    pair.until(|event| matches!(event, Event::Lost { .. }).then_some(()));
    let address = pair.rail.address();
    drop(pair);
    let own = address.rsplit('/').next().expect("a name");
    let is_there = || std::fs::read_to_string("/proc/net/unix").expect("the list of sockets").contains(own);
    // A process that another test starts has all descriptors until it runs its program.
    let begun = Instant::now();
    while is_there() {
        assert!(begun.elapsed() < Duration::from_secs(5), "the door is gone with its rail");
        std::thread::yield_now();
    }
}

#[test]
fn a_sleeping_process_is_woken() {
    let mut pair = start(true, true);
    for _ in 0..200 {
        let fd = pair.rail.wakeup(Interest::Traffic).expect("a descriptor");
        let packet = Packet { bytes: vec![1; 16], in_place: Vec::new() };
        pair.rail.send(Departure::Order(Order::Packet { to: PeerId(1), number: 0, packet }));
        pair.rail.flush();
        let mut polled = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
        wait(&mut polled);
        assert_eq!(pair.answer(), [1; 16]);
    }
}

/// Sleeps until the descriptor is readable; half a second is far more than an answer takes.
#[allow(unsafe_code)]
fn wait(polled: &mut [libc::pollfd; 1]) {
    // SAFETY: one entry, borrowed mutably.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), 1, 500) };
    assert_eq!(ready, 1, "woken");
}
