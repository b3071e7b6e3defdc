//! The network: one packet socket for all peers.

use super::config::PacketConfig;
use super::digest::Digest;
use super::frame::{self, PORTS, Place, Way};
use super::net::Ethernet;
use super::opening;
use super::read::read;
use super::route::Route;
use super::sys::Socket;
use super::wakes::{Wakes, death_probe};
use crate::carrier::Carrier;
use crate::datagram::cut::LEAST;
use crate::datagram::greeters::{Greeted, Greeters};
use crate::datagram::header::Signal;
use crate::datagram::link::{Broken, Link};
use crate::datagram::rail::{Net, Rail, Terms};
use crate::datagram::strays::Stray;
use crate::error::DriverError;
use crate::known::Known;
use crate::tcp::address::Address;
use crate::timer::Timer;
use crate::watch::{Token, Watch};
use hashbrown::HashMap;
use nmad_engine::memory::Segments;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Event, Interest, Order};
use rustix::io::Errno;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Frames read per poll, so that a flood of them does not keep the caller from returning.
const FRAMES: usize = 64;
/// Polls between two checks of the timer: a check is a system call, a poll is not.
const LOOK_EVERY: u32 = 1024;

/// A rail of raw Ethernet on one interface.
pub type PacketRail = Rail<Ethernet>;

/// Why a process may not open such a rail, with the remedy.
const FORBIDDEN: &str = "raw Ethernet needs the capability CAP_NET_RAW (setcap cap_net_raw+ep PROGRAM, or a \
                         user namespace of one's own); udp does without";

impl PacketRail {
    /// Returns why this process cannot open such a rail on any interface; none if it can.
    pub fn hindrance() -> Option<String> {
        let error = super::sys::socket().err()?;
        Some(match error.kind() {
            io::ErrorKind::PermissionDenied => FORBIDDEN.into(),
            _ => format!("cannot open a packet socket: {error}"),
        })
    }

    /// Opens a rail on the interface.
    ///
    /// # Errors
    /// This process has no permission, or the interface is gone or is not Ethernet.
    pub fn open(config: PacketConfig) -> Result<PacketRail, DriverError> {
        let name = config.name();
        let fail = |what: &'static str| {
            let name = name.clone();
            move |e: io::Error| DriverError::new(&name, what, e)
        };
        let port = UdpSocket::bind(SocketAddr::new(config.interface.address, 0))
            .and_then(|port| port.set_nonblocking(true).map(|()| port))
            .map_err(fail("cannot use the address of the interface (is it still one of this machine?)"))?;
        let number = port.local_addr().map_err(fail("cannot query its port"))?.port();
        let socket = Socket::open(&config.interface.name, number).map_err(|e| {
            let what = match e.kind() {
                io::ErrorKind::PermissionDenied => FORBIDDEN,
                _ => "cannot open a packet socket",
            };
            DriverError::new(&name, what, e)
        })?;
        let watch = Watch::new().map_err(io::Error::from).map_err(fail("cannot make an epoll"))?;
        let timer = Timer::new().map_err(io::Error::from).map_err(fail("cannot make a timer"))?;
        let watched = watch.add(&socket, Token::Opening, false);
        let watched = watched.and_then(|()| watch.add(timer.descriptor(), Token::Wakeup, false));
        watched.map_err(io::Error::from).map_err(fail("cannot watch a socket"))?;
        let address = Address::at(&config.interface, number);
        let carrier = Carrier::new(&config.interface, &watch);
        let PacketConfig { rank, secret, silence, encrypt, ref interface, .. } = config;
        let encrypts = encrypt.covers(interface.address);
        let terms = Terms { name, rank, bandwidth: config.interface.bandwidth, secret, encrypts, silence };
        let machine = opening::machine(&config);
        let net = Ethernet {
            place: Place { mac: socket.mac(), address },
            digest: Digest::new(&config.secret, socket.data_max()),
            known: Known::default(),
            greeters: Greeters::default(),
            config,
            socket,
            port,
            wakes: Wakes::new(watch),
            by_way: HashMap::new(),
            latest: None,
        };
        Ok(Rail::new(terms, net, machine, timer, carrier))
    }

    /// Reads the frames that have arrived.
    #[inline]
    fn take_frames(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        for _ in 0..FRAMES {
            let Rail { net, links, regions, strays, .. } = self;
            let Ethernet { socket, digest, wakes, by_way, latest, .. } = net;
            let Some(frame) = socket.frame() else { return };
            wakes.found(socket);
            if let Some((way, bytes)) = frame::open(frame) {
                if latest.is_none_or(|(known, _)| known != way) {
                    *latest = by_way.get(&way).map(|index| (way, *index));
                }
                let Some(link) = latest.and_then(|(_, index)| links.at(index)) else {
                    self.handle_unlinked(way, report);
                    self.net.socket.release();
                    continue;
                };
                if !read(link, bytes, (socket, digest, strays), regions, report) {
                    let peer = link.peer;
                    self.lose(peer, "closed the link (has it ended?)");
                }
            } else {
                strays.count(Stray::Truncated);
            }
            self.net.socket.release();
        }
    }

    /// Handles a frame of a sender without a link.
    #[cold]
    fn handle_unlinked(&mut self, from: Way, report: &mut dyn FnMut(Event<'_>)) {
        let bytes = self.net.socket.frame().and_then(frame::open).map(|(_, bytes)| bytes.to_vec());
        let bytes = bytes.unwrap_or_default();
        if !opening::handle(self, from, &bytes) {
            let is_known = self.net.known.has(|place| place.way() == from);
            self.strays.count(if is_known { Stray::Untimely } else { Stray::Stranger });
        }
        self.report_outcomes(report);
    }

    /// If the timer has expired, does the periodic work; continues attempts to open links.
    #[cold]
    fn look(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        self.polls = 0;
        let mut has_expired = false;
        let Rail { net, carrier, news, .. } = self;
        net.wakes.watch.look(|token, _| match token {
            Token::Carrier => carrier.read_notifications(net.known.ids(), news),
            token => has_expired |= token == Token::Wakeup,
        });
        self.go_on(false, has_expired, report);
    }
}

impl Net for Ethernet {
    type Route = Route;
    type Way = Way;

    fn write(&mut self, link: &mut Link<Route>, sent: &mut Vec<Order>) -> Result<(), String> {
        let Link { route, queue, seal, .. } = link;
        let Err(e) = route.out.write(queue, &self.socket, (seal, &self.digest), sent) else { return Ok(()) };
        let mtu = || self.socket.data_now(&self.config.interface.name).saturating_sub(PORTS);
        if e != Errno::MSGSIZE || !link.shorten(mtu()) {
            return Err(failed(e));
        }
        Ok(())
    }

    #[inline]
    fn send_now(&self, link: &mut Link<Route>, number: u32, packet: (&[u64], &Segments)) -> bool {
        link.route.out.send_now(&self.socket, (&mut link.seal, &self.digest), number, packet)
    }

    fn signal(&self, link: &mut Link<Route>, signal: Signal) {
        link.signal(&self.socket, signal);
    }

    fn maintain(&self, link: &mut Link<Route>, now_ms: u64) -> Result<(), String> {
        link.maintain(&self.socket, now_ms).map_err(|broken| match broken {
            Broken::System(e) => format!("is gone: {e} (has it died?)"),
            Broken::Silent => format!(
                "has not answered for {:?} (is its host gone, an interface down, or does a switch drop \
                 EtherType 0x88B5?)",
                self.config.silence
            ),
        })
    }

    fn route(&mut self, greeted: &mut Greeted<Way>, index: usize) -> Result<Route, String> {
        let way = greeted.way;
        let host = self.known.of(greeted.opened.peer).iter().find(|known| known.address.way() == way);
        let probe = host.and_then(|host| death_probe(&self.config, host.address.address.socket()).ok());
        self.by_way.insert(way, index);
        Ok(Route::new(self.place.way(), greeted, probe))
    }

    fn forget(&mut self, _: usize, link: &Link<Route>) {
        self.by_way.remove(&link.route.way);
        self.latest = None;
    }

    #[inline]
    fn latest(&self) -> Option<usize> {
        self.latest.map(|(_, index)| index)
    }

    #[inline]
    fn read(rail: &mut Rail<Ethernet>, report: &mut dyn FnMut(Event<'_>)) {
        rail.take_frames(report);
        rail.polls += 1;
        if rail.polls >= LOOK_EVERY || rail.machine.is_urgent() {
            rail.look(report);
        }
    }

    fn open_links(rail: &mut Rail<Ethernet>) {
        opening::step(rail);
    }

    /// Datagrams by which peers test this port have no content, but fill the buffer.
    fn tend(&mut self) {
        while self.port.recv(&mut [0; 8]).is_ok() {}
    }

    /// Interest watches the socket, which also receives requests for links.
    fn wakeup(rail: &mut Rail<Ethernet>, _: Interest) -> i32 {
        rail.net.wakes.watch_socket(&rail.net.socket);
        rail.net.wakes.watch.descriptor()
    }

    fn address(&self) -> String {
        self.place.to_string()
    }

    fn know(&mut self, peer: PeerId, remote: u8, address: &str) -> bool {
        let place = address.parse::<Place>().ok();
        let place = place.filter(|place| self.place.address.same_subnet(&place.address));
        let Some(place) = place else { return false };
        self.known.learn(peer, remote, place, self.config.rail);
        true
    }
}

fn failed(e: Errno) -> String {
    match e {
        Errno::MSGSIZE => format!(
            "cannot be reached: the MTU of the interface was lowered while the link was open, to less than \
             {LEAST} B of data need (raise it, and start the job anew)"
        ),
        e => format!("cannot be reached: {e} (is the interface down?)"),
    }
}
