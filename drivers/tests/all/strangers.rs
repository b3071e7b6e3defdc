//! Processes that do not know the secret of the job hold connections to its rails, as many as they like.

use nmad_drivers::handshake::sealed;
use nmad_drivers::interface::Interface;
use nmad_drivers::shm::{ShmConfig, ShmRail};
use nmad_drivers::tcp::{TcpConfig, TcpRail};
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope};
use nmad_wire::{Control, Hello};
use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SECRET: [u8; 32] = [5; 32];
const RANKS: u32 = 3;
/// Connections of strangers at each port.
const HELD: usize = 300;
/// Connections that each port gets in one turn at most.
const AT_ONCE: usize = 25;
/// Under attack for so long before the job opens its links.
const BEFORE: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// The socket that another user holds connections to, for the process that does it.
const TARGET: &str = "NMAD_TEST_TARGET";
/// Nobody.
const USER: u32 = 65_534;

/// What the connections of an attacker say.
#[derive(Debug, Clone, Copy)]
enum Says {
    Nothing,
    /// The first bytes of a hello.
    Half,
    /// A well-formed hello, made without the secret.
    Forged,
    /// A hello that the attacker has recorded.
    Recorded,
}

/// Connections to one port. Those that the rail closes are made anew.
struct Attacker {
    port: u16,
    rank: u32,
    says: Says,
    held: Vec<TcpStream>,
    made: usize,
}

impl Attacker {
    fn turn(&mut self) {
        self.held.retain_mut(|stream| match stream.read(&mut [0; 256]) {
            Ok(len) => len > 0,
            Err(e) => e.kind() == std::io::ErrorKind::WouldBlock,
        });
        for _ in 0..AT_ONCE.min(HELD - self.held.len()) {
            let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return };
            stream.set_nonblocking(true).expect("a socket option");
            // What a full buffer does not take is not said.
            let _ = stream.write(&self.words());
            self.held.push(stream);
            self.made += 1;
        }
    }

    /// What is recorded has been said once: by a peer whose link did not open.
    fn record(&self, rail: &mut TcpRail) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the rail listens");
        stream.write_all(&self.words()).expect("the rail takes bytes");
        stream.set_nonblocking(true).expect("a socket option");
        while stream.read(&mut [0; 256]).is_err() {
            poll(rail);
        }
    }

    fn words(&self) -> Vec<u8> {
        let hello = Hello {
            from: (self.rank + 1) % RANKS,
            to: self.rank,
            rail: 0,
            nonce: [7; 32],
            offer: None,
            mac: [8; 32],
        };
        match self.says {
            Says::Nothing => Vec::new(),
            Says::Half => Control::Hello(hello).encode()[..30].to_vec(),
            Says::Forged => Control::Hello(hello).encode(),
            Says::Recorded => Control::Hello(sealed(hello, &SECRET)).encode(),
        }
    }
}

/// Both ends of every connection are in this process.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .expect("up to the maximum it may");
}

fn port(rail: &TcpRail) -> u16 {
    rail.address().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
}

/// Polls a rail; the peers to which a link has opened.
fn poll(rail: &mut dyn Driver) -> Vec<u32> {
    let mut up = Vec::new();
    rail.poll(Scope::All, &mut |event| match event {
        Event::Up { peer, .. } => up.push(peer.0),
        Event::Lost { why, .. } => panic!("no link may fail: {why}"),
        _ => {}
    });
    up
}

fn open_links_under_attack(says: Says) {
    allow_many_files();
    let open = |rank| TcpRail::open(TcpConfig::new(PeerId(rank), 0, Interface::loopback(), SECRET));
    let mut rails: Vec<TcpRail> = (0..RANKS).map(|rank| open(rank).expect("a rail opens")).collect();
    let attacker = |(rank, rail): (usize, &TcpRail)| Attacker {
        port: port(rail),
        rank: rank as u32,
        says,
        held: Vec::new(),
        made: 0,
    };
    let mut attackers: Vec<Attacker> = rails.iter().enumerate().map(attacker).collect();
    if matches!(says, Says::Recorded) {
        attackers.iter().zip(&mut rails).for_each(|(attacker, rail)| attacker.record(rail));
    }
    let turn = |attackers: &mut Vec<Attacker>, rails: &mut Vec<TcpRail>| {
        attackers.iter_mut().for_each(Attacker::turn);
        rails.iter_mut().map(|rail| poll(rail)).collect::<Vec<_>>()
    };
    let begun = Instant::now();
    // A busy machine takes longer to hold each port.
    while begun.elapsed() < BEFORE || attackers.iter().any(|attacker| attacker.made < HELD) {
        assert!(begun.elapsed() < LONGEST, "the attackers do not get to hold each port");
        turn(&mut attackers, &mut rails);
    }
    let addresses: Vec<String> = rails.iter().map(|rail| rail.address()).collect();
    for (rank, rail) in rails.iter_mut().enumerate() {
        for (peer, address) in addresses.iter().enumerate().filter(|(peer, _)| *peer != rank) {
            assert!(rail.know(PeerId(peer as u32), 0, address));
            rail.send(Departure::Order(Order::Connect { to: PeerId(peer as u32) }));
        }
    }
    let mut links = std::collections::HashSet::new();
    let begun = Instant::now();
    while links.len() < (RANKS * (RANKS - 1)) as usize {
        assert!(begun.elapsed() < LONGEST, "only the links {links:?} have opened");
        for (rank, up) in turn(&mut attackers, &mut rails).into_iter().enumerate() {
            links.extend(up.into_iter().map(|peer| (rank as u32, peer)));
        }
    }
}

#[test]
fn links_open_while_strangers_say_nothing() {
    open_links_under_attack(Says::Nothing);
    open_links_under_attack(Says::Half);
}

#[test]
fn links_open_while_strangers_say_well_formed_hellos() {
    open_links_under_attack(Says::Forged);
}

#[test]
fn links_open_while_a_recorded_hello_is_repeated() {
    open_links_under_attack(Says::Recorded);
}

fn dial(name: &str) -> Option<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket");
    let at = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name");
    net::connect(&fd, &at).is_ok().then_some(fd)
}

/// The other user's process: holds connections with well-formed hellos until it is killed.
#[test]
fn other_user() {
    let Ok(name) = std::env::var(TARGET) else { return };
    let hello = Hello { from: 1, to: 0, rail: 0, nonce: [7; 32], offer: None, mac: [8; 32] };
    let bytes = Control::Hello(hello).encode();
    let mut held: Vec<OwnedFd> = Vec::new();
    let begun = Instant::now();
    println!("\nholds");
    while begun.elapsed() < 2 * LONGEST {
        held.retain(|fd| {
            let is_open = |got: Result<(_, usize), _>| {
                got.map_or_else(|e| e == rustix::io::Errno::AGAIN, |(_, len)| len > 0)
            };
            is_open(net::recv(fd, &mut [0_u8; 64], net::RecvFlags::empty()))
        });
        if held.len() < HELD
            && let Some(fd) = dial(&name)
        {
            let _ = net::send(&fd, &bytes, net::SendFlags::NOSIGNAL);
            held.push(fd);
        }
    }
}

struct Attack(Child);

impl Drop for Attack {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn another_user_does_not_keep_ranks_from_meeting_in_shared_memory() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can start a process of another user");
    }
    let open = |rank| ShmRail::open(ShmConfig::new(PeerId(rank), 0, SECRET)).expect("a rail opens");
    let mut rails = [open(0), open(1)];
    let addresses = rails.each_ref().map(|rail| rail.address());
    let (_, name) = addresses[0].split_once('/').expect("a place and a name");
    let (mut ours, theirs) = std::io::pipe().expect("a pipe");
    // The other user may not read where this program lies, so that it runs what is open here.
    let own = std::fs::File::open("/proc/self/exe").expect("this program");
    let program = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&own));
    rustix::io::fcntl_setfd(&own, rustix::io::FdFlags::empty()).expect("it is passed on");
    let mut command = Command::new(program);
    command.args(["--exact", "strangers::other_user", "--nocapture", "--test-threads=1"]);
    command.env(TARGET, name).uid(USER).gid(USER).current_dir("/").stdout(Stdio::from(theirs));
    let _attack = Attack(command.spawn().expect("the other user's process starts"));
    drop(command);
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("holds") {
        let mut some = [0; 256];
        let len = ours.read(&mut some).expect("a pipe");
        assert!(len > 0, "the other user's process ended: {}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&some[..len]);
    }
    let begun = Instant::now();
    while begun.elapsed() < BEFORE {
        rails.iter_mut().for_each(|rail| assert!(poll(rail).is_empty()));
    }
    assert!(rails[0].know(PeerId(1), 0, &addresses[1]) && rails[1].know(PeerId(0), 0, &addresses[0]));
    rails[1].send(Departure::Order(Order::Connect { to: PeerId(0) }));
    let mut up = 0;
    while up < 2 {
        assert!(begun.elapsed() < LONGEST, "{up} sides have a link");
        up += rails.iter_mut().map(|rail| poll(rail).len()).sum::<usize>();
    }
}
