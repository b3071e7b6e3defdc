//! The network: a socket for each peer, and one that receives requests for links.

use super::config::UdpConfig;
use super::net::Udp;
use super::opening;
use super::read::{Closed, read};
use super::route::{Route, Way};
use super::socket;
use crate::carrier::Carrier;
use crate::datagram::assembly::Place;
use crate::datagram::cut::LEAST;
use crate::datagram::greeters::{Greeted, Greeters};
use crate::datagram::header::Signal;
use crate::datagram::link::{Broken, Link};
use crate::datagram::rail::{Net, Rail, Terms};
use crate::error::DriverError;
use crate::hot::Hot;
use crate::known::Known;
use crate::tcp::address::Address;
use crate::timer::Timer;
use crate::watch::{TRUSTED_AFTER, Token, Watch};
use nmad_engine::memory::Segments;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Event, Interest, Order};
use rustix::io::Errno;

/// Bytes read at once: more than any datagram, also of several that the kernel has joined.
const SCRATCH: usize = 128 << 10;
/// Reads per link and poll, so that one busy link does not starve the others.
const READS: usize = 8;
/// While some link is hot, polls between two checks of the others.
const LOOK_EVERY: u32 = 32;
/// Prefix of the address of a UDP rail, which distinguishes it from that of a TCP rail.
const SCHEME: &str = "udp:";

/// A rail over UDP on one interface.
pub type UdpRail = Rail<Udp>;

impl UdpRail {
    /// Listens on the address of the interface.
    ///
    /// # Errors
    /// The address is not one of this machine.
    pub fn open(config: UdpConfig) -> Result<UdpRail, DriverError> {
        let name = config.name();
        let fail = |what: &'static str| {
            let name = name.clone();
            move |e: Errno| DriverError::new(&name, what, e)
        };
        let watch = Watch::new().map_err(fail("cannot make an epoll"))?;
        let timer = Timer::new().map_err(fail("cannot make a timer"))?;
        let (listener, port) = socket::listen(&name, &config)?;
        let address = Address { ip: config.address(), prefix: config.interface.prefix, port };
        watch.add(&listener, Token::Opening, false).map_err(fail("cannot watch a socket"))?;
        watch.add(timer.descriptor(), Token::Wakeup, false).map_err(fail("cannot watch a timer"))?;
        let carrier = Carrier::new(&config.interface, &watch);
        let UdpConfig { rank, secret, silence, encrypt, ref interface, .. } = config;
        let encrypts = encrypt.covers(interface.address);
        let terms = Terms { name, rank, bandwidth: config.interface.bandwidth, secret, encrypts, silence };
        let machine = opening::machine(&config);
        let net = Udp {
            config,
            watch,
            listener,
            port,
            known: Known::default(),
            greeters: Greeters::default(),
            scratch: vec![0; SCRATCH].into(),
            address,
            hot: Hot::default(),
            looked: Vec::new(),
        };
        Ok(Rail::new(terms, net, machine, timer, carrier))
    }

    /// Reads from a peer; returns whether anything arrived.
    #[inline]
    fn read_link(&mut self, index: usize, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let Rail { net, links, regions, strays, .. } = self;
        let Some(link) = links.at(index) else { return false };
        let mut place = Place { peer: link.peer, regions, last: None };
        for round in 0..READS {
            match read(link, &mut net.scratch, &mut place, strays, report) {
                Ok(true) => {}
                Ok(false) if round == 0 => return false,
                Ok(false) => break,
                Err(Closed) => {
                    let peer = link.peer;
                    self.lose(peer, "closed the link (has it ended?)");
                    return true;
                }
            }
            if !link.assemblies.is_expecting() {
                break;
            }
        }
        if link.assemblies.is_expecting() {
            report(Event::Moved { peer: link.peer });
        }
        let Route { reads, is_watched, socket, .. } = &link.route;
        reads.set(reads.get().wrapping_add(1));
        if reads.get() == TRUSTED_AFTER && net.watch.remove(socket).is_ok() {
            is_watched.set(false);
        }
        true
    }

    /// Watches the socket of a link.
    fn watch_link(&self, index: usize) {
        if let Some(link) = self.links.get(index)
            && !link.route.is_watched.get()
            && self.net.watch.add(&link.route.socket, Token::Link(index), false).is_ok()
        {
            link.route.is_watched.set(true);
            // A watched socket makes the kernel check for sleepers at each datagram, so it is soon
            // unwatched again.
            link.route.reads.set(0);
        }
    }

    /// Checks the links that are not hot, and the periodic work that is due.
    #[cold]
    fn look(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        self.polls = 0;
        let (mut has_request, mut has_expired) = (false, false);
        let mut looked = std::mem::take(&mut self.net.looked);
        self.net.watch.look(|token, _| looked.push(token));
        for token in looked.drain(..) {
            match token {
                Token::Opening => has_request = true,
                Token::Wakeup => has_expired = true,
                Token::Carrier => self.carrier.read_notifications(self.net.known.ids(), &mut self.news),
                Token::Link(index) => {
                    if self.read_link(index, report) {
                        let cold = self.net.hot.heat(index);
                        cold.into_iter().for_each(|index| self.watch_link(index));
                    }
                }
            }
        }
        self.net.looked = looked;
        self.go_on(has_request, has_expired, report);
    }
}

impl Net for Udp {
    type Route = Route;
    type Way = Way;

    #[inline]
    fn write(&mut self, link: &mut Link<Route>, sent: &mut Vec<Order>) -> Result<(), String> {
        let Link { route, queue, seal, .. } = link;
        if let Err(e) = route.out.write(queue, &route.socket, seal, sent) {
            link.refused(e);
        }
        Ok(())
    }

    #[inline]
    fn send_now(&self, link: &mut Link<Route>, number: u32, packet: (&[u64], &Segments)) -> bool {
        let Link { route, seal, .. } = link;
        route.out.send_now(&route.socket, seal, number, packet)
    }

    fn signal(&self, link: &mut Link<Route>, signal: Signal) {
        link.signal(signal);
    }

    fn maintain(&self, link: &mut Link<Route>, now_ms: u64) -> Result<(), String> {
        link.maintain(now_ms).map_err(|broken| match broken {
            Broken::System(e) => failed(e),
            Broken::Silent => format!(
                "has not answered for {:?} (is its host gone, is an interface down, or has a firewall begun \
                 to swallow UDP to {}?)",
                self.config.silence,
                self.config.address()
            ),
        })
    }

    fn route(&mut self, greeted: &mut Greeted<Way>, index: usize) -> Result<Route, String> {
        let fd = greeted.way.fd.take().ok_or("has no socket")?;
        self.watch.change(&fd, Token::Link(index), false).map_err(|e| format!("cannot be watched: {e}"))?;
        Ok(Route::new(fd, greeted.opened.len, greeted.opened.behind()))
    }

    fn forget(&mut self, index: usize, _: &Link<Route>) {
        self.hot.forget(index);
    }

    #[inline]
    fn read(rail: &mut Rail<Udp>, report: &mut dyn FnMut(Event<'_>)) {
        for place in (0..rail.net.hot.count()).rev() {
            let Some(index) = rail.net.hot.at(place) else { continue };
            let has_read = rail.read_link(index, report);
            let hot = &mut rail.net.hot;
            let cold = if has_read { hot.heat(index) } else { hot.cool(place) };
            cold.into_iter().for_each(|index| rail.watch_link(index));
        }
        rail.polls += 1;
        if rail.polls >= LOOK_EVERY || rail.net.hot.count() == 0 || rail.machine.is_urgent() {
            rail.look(report);
        }
    }

    fn open_links(rail: &mut Rail<Udp>) {
        opening::step(rail);
    }

    /// Interest in traffic watches all links, including those that are otherwise polled directly.
    fn wakeup(rail: &mut Rail<Udp>, interest: Interest) -> i32 {
        if interest == Interest::Traffic {
            rail.net.hot.iter().for_each(|index| rail.watch_link(index));
        }
        rail.net.watch.descriptor()
    }

    fn address(&self) -> String {
        format!("{SCHEME}{}", self.address)
    }

    fn know(&mut self, peer: PeerId, remote: u8, address: &str) -> bool {
        let address = address.strip_prefix(SCHEME).and_then(|rest| rest.parse::<Address>().ok());
        let Some(address) = address.filter(|address| self.address.same_subnet(address)) else { return false };
        self.known.learn(peer, remote, address, self.config.rail);
        true
    }
}

fn failed(e: Errno) -> String {
    match e {
        Errno::CONNREFUSED => "is gone: no process listens there any more (has it died?)".into(),
        Errno::MSGSIZE => format!(
            "is behind an interface or a path whose MTU was lowered while the link was open, to less than \
             {LEAST} B of data need (raise it, and start the job anew)"
        ),
        Errno::PERM => "cannot be sent to: the system forbids it (does a firewall?)".into(),
        e => format!("cannot be reached: {e} (is an interface down?)"),
    }
}
