//! What a rail of datagrams does with a path that is narrow, lossy, hostile, or closed.

use nmad_drivers::conformance::memory::Memory;
use nmad_drivers::interface::Interface;
use nmad_drivers::udp::{Stray, UdpConfig, UdpRail};
use nmad_engine::packet::{Packet, PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope};
use nmad_wire::{Header, Kind};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const BOUND: Duration = Duration::from_secs(20);

/// What a router makes of a datagram.
type Route<'a> = &'a mut dyn FnMut(&mut Router, &[u8]) -> Vec<Vec<u8>>;

/// A router between two rails: what one sends to it it passes on to the other as it likes.
struct Router {
    front: UdpSocket,
    back: UdpSocket,
    client: Option<SocketAddr>,
    buffer: Vec<u8>,
    dice: u64,
}

impl Router {
    fn before(rail: &UdpRail) -> Router {
        let address = rail.address();
        let port = address.rsplit(':').next().expect("an address has a port");
        let open = || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            socket.set_nonblocking(true).expect("a socket that does not block");
            socket
        };
        let (front, back) = (open(), open());
        back.connect(format!("127.0.0.1:{port}")).expect("a way to the rail");
        Router { front, back, client: None, buffer: vec![0; 1 << 16], dice: 1 }
    }

    /// The address to which the first rail sends goes silent; returns the argument of [`Router::come_back`].
    fn go_away(&mut self) -> SocketAddr {
        let at = self.front.local_addr().expect("it is bound");
        self.come_back(SocketAddr::from(([127, 0, 0, 1], 0)));
        at
    }

    fn come_back(&mut self, at: SocketAddr) {
        self.front = UdpSocket::bind(at).expect("a socket");
        self.front.set_nonblocking(true).expect("a socket that does not block");
    }

    fn address(&self) -> String {
        format!("udp:127.0.0.1/8:{}", self.front.local_addr().expect("it is bound").port())
    }

    /// A number below `below`, the same ones in each run.
    fn roll(&mut self, below: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % below
    }

    /// Passes on what has come, each datagram as `what` makes it.
    fn step(&mut self, what: Route<'_>) {
        while let Ok((len, from)) = self.front.recv_from(&mut self.buffer) {
            self.client = Some(from);
            let bytes = self.buffer[..len].to_vec();
            for out in what(self, &bytes) {
                let _ = self.back.send(&out);
            }
        }
        while let Ok(len) = self.back.recv(&mut self.buffer) {
            let bytes = self.buffer[..len].to_vec();
            for out in what(self, &bytes) {
                if let Some(client) = self.client {
                    let _ = self.front.send_to(&out, client);
                }
            }
        }
    }
}

#[derive(Default)]
struct Seen {
    up: bool,
    arrived: Vec<Vec<u8>>,
    landed: Vec<bool>,
    sent: usize,
    lost: Option<String>,
}

/// Two rails with a router between them, the first one connecting.
struct World {
    rails: [UdpRail; 2],
    router: Router,
    seen: [Seen; 2],
}

impl World {
    fn new(bound: Duration) -> World {
        World::with(|config| config.bound = bound)
    }

    fn with(set: impl Fn(&mut UdpConfig)) -> World {
        let rail = |rank| {
            let mut config = UdpConfig::new(PeerId(rank), 0, Interface::loopback(), [5; 32]);
            set(&mut config);
            UdpRail::open(config).expect("a rail opens on the loopback interface")
        };
        let mut rails = [rail(0), rail(1)];
        let router = Router::before(&rails[1]);
        assert!(rails[0].know(PeerId(1), 0, &router.address()));
        World { rails, router, seen: Default::default() }
    }

    fn until(&mut self, what: &str, route: Route<'_>, mut done: impl FnMut(&mut World) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            for (rail, seen) in self.rails.iter_mut().zip(&mut self.seen) {
                rail.poll(Scope::All, &mut |event| match event {
                    Event::Up { .. } => seen.up = true,
                    Event::Arrived { packet, .. } => seen.arrived.push(packet.to_vec()),
                    Event::Landed { kept, .. } => seen.landed.push(kept),
                    Event::Sent { .. } => seen.sent += 1,
                    Event::Lost { why, .. } => seen.lost = Some(why),
                    _ => {}
                });
            }
            self.router.step(route);
            assert!(begun.elapsed() < BOUND, "awaited in vain: {what}");
        }
    }

    fn connect(&mut self, route: Route<'_>) {
        self.rails[0].send(Departure::Order(Order::Connect { to: PeerId(1) }));
        self.until("the link is up on both sides", route, |w| w.seen[0].up && w.seen[1].up);
    }

    fn post(&mut self, number: u32, len: usize) {
        let packet = Packet { bytes: packet(number, len), in_place: Vec::new() };
        self.rails[0].send(Departure::Order(Order::Packet { to: PeerId(1), number, packet }));
        self.rails[0].flush();
    }
}

fn packet(number: u32, len: usize) -> Vec<u8> {
    let header = Header { kind: Kind::Packet, len: len as u32, number, ack: 0 };
    let mut bytes = Vec::from(header.encode());
    bytes.extend((Header::LEN..len).map(|at| (at as u32 * 31 + number) as u8));
    bytes
}

fn pass(_: &mut Router, bytes: &[u8]) -> Vec<Vec<u8>> {
    vec![bytes.to_vec()]
}

#[test]
fn datagrams_are_as_long_as_the_path_lets_pass() {
    for width in [9_000, 1_500, 1_300, 600] {
        let mut longest = 0;
        let mut narrow = |_: &mut Router, bytes: &[u8]| match bytes.len() <= width {
            true => {
                longest = longest.max(bytes.len());
                vec![bytes.to_vec()]
            }
            false => Vec::new(),
        };
        let mut world = World::new(Duration::from_secs(10));
        world.connect(&mut narrow);
        world.post(0, 70_000);
        world.until("a long packet", &mut narrow, |w| !w.seen[1].arrived.is_empty());
        assert!(world.seen[1].arrived[0] == packet(0, 70_000), "intact over a path of {width} B");
        assert!(longest > width * 3 / 4, "{longest} B were used of {width}");
    }
}

#[test]
fn what_an_enemy_adds_is_counted_and_dropped() {
    let mut world = World::new(Duration::from_secs(10));
    world.connect(&mut pass);
    // Each datagram comes with a repetition, a forged one, one cut short, and one longer than it says.
    let mut enemy = |router: &mut Router, bytes: &[u8]| {
        let mut forged = bytes.to_vec();
        forged[router.roll(20) as usize] ^= 1 << router.roll(8);
        let longer = [bytes, &[0; 7]].concat();
        let short = bytes[..bytes.len() - 1].to_vec();
        vec![forged, short, bytes.to_vec(), bytes.to_vec(), longer]
    };
    for number in 0..200 {
        let len = Header::LEN + number as usize % 300;
        world.post(number, len);
        world.until("a packet", &mut enemy, |w| w.seen[1].arrived.len() > number as usize);
        assert!(world.seen[1].arrived[number as usize] == packet(number, len), "packet {number} is intact");
    }
    world.until("what comes last", &mut enemy, |w| w.rails[1].dropped_as(Stray::Repeated) >= 200);
    assert_eq!(world.seen[1].arrived.len(), 200, "each arrives once");
    assert!(world.rails[1].dropped_as(Stray::Forged) >= 100, "{}", world.rails[1].dropped_as(Stray::Forged));
    let truncated = world.rails[1].dropped_as(Stray::Truncated);
    assert!(truncated >= 200, "{truncated}");
    let reasons = [
        Stray::Stranger,
        Stray::Forged,
        Stray::Repeated,
        Stray::Untimely,
        Stray::Truncated,
        Stray::Malformed,
    ];
    let sum: u64 = reasons.map(|stray| world.rails[1].dropped_as(stray)).iter().sum();
    assert_eq!(world.rails[1].statistics().dropped, sum);
    assert!(world.seen.iter().all(|seen| seen.lost.is_none()), "the link stays");
}

#[test]
fn strangers_get_no_answer() {
    let mut world = World::new(Duration::from_secs(10));
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    stranger.connect(world.router.back.peer_addr().expect("it is connected")).expect("a way to the rail");
    for len in 0..100 {
        stranger.send(&vec![len as u8; len * 7]).expect("it is sent");
    }
    // Of another job, and otherwise right.
    let config = UdpConfig::new(PeerId(7), 0, Interface::loopback(), [6; 32]);
    let config = UdpConfig { bound: Duration::from_millis(200), ..config };
    let mut other = UdpRail::open(config).expect("a rail opens");
    let address = world.rails[1].address();
    assert!(other.know(PeerId(1), 0, &address));
    other.send(Departure::Order(Order::Connect { to: PeerId(1) }));
    let mut refused = None;
    world.until("the other job gives up", &mut pass, |_| {
        other.poll(Scope::All, &mut |event| {
            if let Event::Lost { why, .. } = event {
                refused = Some(why);
            }
        });
        refused.is_some()
    });
    let why = refused.unwrap_or_default();
    assert!(why.contains("secret of another job"), "{why}");
    assert!(world.rails[1].dropped_as(Stray::Stranger) > 100);
    stranger.set_nonblocking(true).expect("a socket that does not block");
    assert!(stranger.recv(&mut [0; 100]).is_err(), "no answer");
    world.connect(&mut pass);
}

#[test]
fn that_nobody_listens_is_not_believed_of_a_peer_who_answers() {
    let mut world = World::new(Duration::from_secs(10));
    world.connect(&mut pass);
    for round in 0..20 {
        let at = world.router.go_away();
        // The kernel refuses the first, and says so at the second.
        (0..3).for_each(|number| world.post(4 * round + number, 100));
        world.router.come_back(at);
        world.post(4 * round + 3, 100);
        let last = packet(4 * round + 3, 100);
        world.until("the last packet", &mut pass, |w| w.seen[1].arrived.contains(&last));
    }
    assert!(world.seen.iter().all(|seen| seen.lost.is_none()), "the link stays");
}

#[test]
fn that_nobody_listens_is_believed_of_a_peer_who_does_not_answer() {
    let mut world = World::new(Duration::from_secs(10));
    world.connect(&mut pass);
    world.router.go_away();
    world.until("the link is lost", &mut pass, |w| w.seen[0].lost.is_some());
    let why = world.seen[0].lost.take().unwrap_or_default();
    assert!(why.contains("peer 1 is gone: no process listens there any more"), "{why}");
}

#[test]
fn a_path_that_swallows_everything_is_found_out() {
    let mut world = World::new(Duration::from_millis(300));
    world.rails[0].send(Departure::Order(Order::Connect { to: PeerId(1) }));
    world.until("the attempt ends", &mut |_, _| Vec::new(), |w| w.seen[0].lost.is_some());
    let why = world.seen[0].lost.take().unwrap_or_default();
    assert!(why.contains("peer 1") && why.contains("does a firewall swallow UDP"), "{why}");
}

#[test]
fn a_path_that_begins_to_swallow_is_found_out_while_nothing_is_sent() {
    let bound = Duration::from_millis(1_500);
    let mut world = World::with(|config| config.silence = bound);
    world.connect(&mut pass);
    let begun = Instant::now();
    world.until("questions pass", &mut pass, |_| begun.elapsed() > 2 * bound);
    assert!(world.seen.iter().all(|seen| seen.lost.is_none()), "who is asked answers");
    world.until("both sides give up", &mut |_, _| Vec::new(), |w| {
        w.seen.iter().all(|seen| seen.lost.is_some())
    });
    let why = world.seen[0].lost.take().unwrap_or_default();
    assert!(why.contains("peer 1 has not answered for 1.5s"), "{why}");
}

#[test]
fn a_chunk_that_is_sent_again_fills_in_what_was_lost() {
    let mut world = World::new(Duration::from_secs(10));
    // At a width at which a chunk takes many datagrams.
    let narrow = |bytes: &[u8]| bytes.len() <= 1_500;
    world.connect(&mut |_, bytes| if narrow(bytes) { vec![bytes.to_vec()] } else { Vec::new() });
    let mut lossy = |router: &mut Router, bytes: &[u8]| match router.roll(5) {
        0 => Vec::new(),
        _ => vec![bytes.to_vec()],
    };
    let (source, target) = (Memory::pattern(60 << 10, 3), Memory::zeroed(60 << 10));
    let region = RegionId(9);
    let key = world.rails[1].open(region, PeerId(0), target.segments());
    let mut rounds = 0;
    while world.seen[1].landed.is_empty() {
        let from = source.segments();
        world.rails[0].send(Departure::Order(Order::Chunk {
            to: PeerId(1),
            number: 4,
            ack: 0,
            region,
            key,
            offset: 0,
            from,
        }));
        world.rails[0].flush();
        rounds += 1;
        let posted = rounds;
        world.until("it is sent", &mut lossy, |w| w.seen[0].sent == posted);
        let mut looks = 0;
        world.until("what came is read", &mut lossy, |_| {
            looks += 1;
            looks > 100
        });
        assert!(rounds < 40, "nothing is lost forty times");
    }
    assert_eq!(world.seen[1].landed, [true]);
    assert!(source.bytes() == target.bytes(), "the bytes are the same after {rounds} rounds");
    // With forty datagrams of which each fifth is lost, no round would ever bring them all.
    assert!((2..20).contains(&rounds), "{rounds} rounds");
}
