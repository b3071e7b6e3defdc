//! Traffic on open links: schedules writes, reads and health checks, and closes links that fail.
//!
//! A link with recent activity is hot: it is read in each poll and soon not watched any more, since a
//! watched socket costs a wakeup callback for each arrival, on the critical path. All others are watched
//! and checked once in a while.

use super::health::Verdict;
use super::link::{Link, Watched};
use super::lists::Lists;
use super::peers::Peers;
use super::read::{PacketPoll, ReadResult, failed, read, read_packet};
use super::scratch::Scratch;
use super::staging::Staging;
use super::stream::{Place, Stream};
use super::write::Outbox;
use super::{PACKET, now_ms};
use crate::carrier::Carrier;
use crate::hot::Hot;
use crate::interface::Interface;
use crate::news::News;
use crate::regions::Regions;
use crate::watch::{Token, Watch};
use nmad_engine::InPlace;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::driver::{Event, Order, Sent};
use rustix::fd::{AsFd, BorrowedFd};

/// Reads per link and poll, so that one busy link does not starve the others.
const READS: usize = 32;
/// While some link is hot, polls between two checks of the others.
const LOOK_EVERY: u32 = 32;
/// Polls between two reads of a link whose output waits for room: a read takes the socket's lock, which
/// delays the acknowledgements that make room. Also polls between two reads while each poll reports
/// completed sends, so that a thread that waits for these does not wait for an empty read as well.
const READ_EVERY: u32 = 4;
/// Of this many polls for a packet of one peer, one serves all links instead: each such poll costs a system
/// call, and data of other peers waits meanwhile.
const FETCHES: u32 = 8;
/// Polls without arrivals after which everything is watched, even if no thread has asked for the
/// descriptor.
const WATCH_AFTER: u32 = 1024;

/// The open links of a rail.
#[derive(Debug)]
pub struct Traffic {
    name: String,
    pub watch: Watch,
    /// The peers and their links.
    pub peers: Peers<Link>,
    /// The open receive regions.
    pub regions: Regions,
    /// Buffer for bytes without a known destination.
    pub scratch: Scratch,
    carrier: Carrier,
    hot: Hot,
    lists: Lists,
    news: News,
    staging: Staging,
    pool: Vec<Vec<u8>>,
    looked: Vec<(Token, bool)>,
    polls: u32,
    /// Counter of polls for a packet of one peer, modulo [`FETCHES`].
    fetches: u32,
    /// Consecutive polls in which nothing arrived.
    idle_polls: u32,
    /// Polls between two checks; few while links that are not hot have data.
    look_every: u32,
}

impl Traffic {
    /// Creates the traffic of the rail called `name`, without links.
    pub fn new(name: String, interface: &Interface, watch: Watch) -> Self {
        Traffic {
            name,
            carrier: Carrier::new(interface, &watch),
            watch,
            peers: Peers::default(),
            regions: Regions::default(),
            scratch: Scratch::default(),
            hot: Hot::default(),
            lists: Lists::default(),
            news: News::default(),
            staging: Staging::default(),
            pool: Vec::new(),
            looked: Vec::new(),
            polls: 0,
            fetches: 0,
            idle_polls: 0,
            look_every: 1,
        }
    }

    /// Sets the lengths from which data is left in place; `None`: the nominal ones.
    pub fn leave_in_place(&mut self, from: Option<InPlace>) {
        self.staging.leave_in_place(from);
        self.scratch.block_min = self.staging.block_min;
    }

    /// Name of the rail.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Queues a packet or chunk for the next flush.
    #[inline]
    pub fn post(&mut self, to: PeerId, order: Order) {
        let found = self.peers.find(to);
        let link = found.and_then(|index| Some((index, self.peers[index].link.as_deref_mut()?)));
        let Some((index, link)) = link else {
            return self.lost(to, "has no open link", vec![order]);
        };
        link.out.push(order);
        if !link.lists.touched {
            link.lists.touched = true;
            self.lists.touched.push(index);
        }
    }

    /// Sends a packet at once, if the queue is empty.
    #[inline]
    pub fn send_now(&mut self, to: PeerId, number: u32, packet: (&[u64], &Segments)) -> Sent {
        self.at_once(to, |out, fd, staging, _| out.send_now(fd, staging, (to, number), packet))
    }

    /// Sends a packet and the pushed chunk behind it at once, if the queue is empty.
    #[inline]
    pub fn push_now(&mut self, to: PeerId, packet: &[u8], chunk: Order) -> Sent {
        self.at_once(to, |out, fd, staging, sent| out.push_now(fd, staging, packet, chunk, sent))
    }

    #[inline]
    fn at_once(
        &mut self,
        to: PeerId,
        send: impl FnOnce(&mut Outbox, BorrowedFd<'_>, &mut Staging, &mut Vec<Order>) -> Sent,
    ) -> Sent {
        let Some(index) = self.peers.find(to) else { return Sent::Retry };
        let Some(link) = self.peers[index].link.as_deref_mut() else { return Sent::Retry };
        let how = send(&mut link.out, link.socket.as_fd(), &mut self.staging, &mut self.news.sent);
        if how != Sent::Retry {
            self.written(index);
        }
        how
    }

    /// Assigns a receive region to the pushed chunk that a link holds.
    pub fn accept(&mut self, from: PeerId, region: RegionId) {
        let Some(index) = self.peers.find(from) else { return };
        let Some(link) = self.peers[index].link.as_deref_mut() else { return };
        // No receive region has key 0: the bytes are discarded.
        let key = self.regions.key(from, region).unwrap_or(Key(0));
        link.stream.accept(region, key);
        self.lists.continuing.push(index);
    }

    /// Closes a receive region.
    pub fn close(&mut self, region: RegionId) {
        if let Some(from) = self.regions.peer(region)
            && let Some(index) = self.peers.find(from)
            && let Some(link) = self.peers[index].link.as_deref_mut()
            && let Some(unsealing) = &mut link.unsealing
        {
            let (regions, pool) = (&self.regions, &mut self.pool);
            unsealing.leave(region, &link.stream, &mut Place { peer: from, regions, pool, longest: PACKET });
        }
        self.regions.close(region);
    }

    /// Writes posted orders to the sockets.
    #[inline]
    pub fn flush(&mut self) {
        while let Some(index) = self.lists.touched.pop() {
            if let Some(link) = self.peers[index].link.as_deref_mut() {
                link.lists.touched = false;
                self.write(index);
            }
        }
    }

    /// Reports completed orders, retries blocked writes, and reads the hot links. Returns whether
    /// [`Traffic::look`] is due.
    #[inline]
    pub fn poll(&mut self, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if !self.news.sent.is_empty() {
            self.report(report);
            if !self.polls.is_multiple_of(READ_EVERY) && self.lists.continuing.is_empty() {
                self.polls += 1;
                return false;
            }
        }
        if !self.lists.blocked.is_empty() {
            self.write_blocked();
        }
        // Links that continue at the poll after this one are added to the list meanwhile.
        let continued = std::mem::take(&mut self.lists.continuing);
        for &index in &continued {
            let cold = if self.read(index, report) { self.hot.heat(index) } else { None };
            self.watch_cold(cold);
        }
        self.idle_polls = self.idle_polls.saturating_add(1);
        for place in (0..self.hot.count()).rev() {
            let Some(index) = self.hot.at(place) else { continue };
            if continued.contains(&index) || !self.polls.is_multiple_of(READ_EVERY) && self.is_blocked(index)
            {
                continue;
            }
            let cold = if self.read(index, report) { self.hot.heat(index) } else { self.hot.cool(place) };
            self.watch_cold(cold);
        }
        self.lists.reuse(continued);
        self.polls += 1;
        self.polls >= self.look_every || self.hot.count() == 0
    }

    /// Polls for a packet of a peer whose link is hot; false: other work is pending or due.
    #[inline]
    pub fn poll_packet(&mut self, from: PeerId, report: &mut dyn FnMut(Event<'_>)) -> bool {
        self.fetches = (self.fetches + 1) % FETCHES;
        let calm = self.news.is_empty() && self.lists.blocked.is_empty() && self.lists.continuing.is_empty();
        let hot = self.peers.find(from).filter(|&index| self.hot.has(index));
        let Some(index) = hot.filter(|_| calm && self.fetches > 0) else { return false };
        let Some(link) = self.peers[index].link.as_deref_mut() else { return false };
        let (fd, scratch) = (link.socket.as_fd(), &mut self.scratch);
        let polled = match &mut link.unsealing {
            None => read_packet(fd, &mut link.stream, scratch),
            Some(unsealing) => unsealing.read_packet(fd, &mut link.stream, scratch),
        };
        match polled {
            Ok(PacketPoll::Packet(range)) => {
                link.count_read(&self.watch, index);
                self.idle_polls = 0;
                self.hot.heat(index);
                report(Event::Arrived { from, packet: &self.scratch[range] });
                true
            }
            Ok(PacketPoll::Nothing) => true,
            Ok(PacketPoll::Other) => {
                if link.has_kept() {
                    self.lists.continuing.push(index);
                }
                false
            }
            Err(ended) => {
                self.lose(from, &ended.to_string());
                false
            }
        }
    }

    /// Returns whether output to a peer waits for room in the kernel.
    #[inline]
    fn is_blocked(&self, index: usize) -> bool {
        !self.lists.blocked.is_empty() && self.peers[index].link.as_ref().is_some_and(|l| l.lists.blocked)
    }

    /// Checks the links that are not hot. Returns whether a socket without an open link had an event.
    #[cold]
    #[inline(never)]
    pub fn look(&mut self, report: &mut dyn FnMut(Event<'_>)) -> bool {
        self.polls = 0;
        let (mut has_request, mut brought) = (false, false);
        let mut looked = std::mem::take(&mut self.looked);
        self.watch.look(|token, output| looked.push((token, output)));
        for (token, output) in looked.drain(..) {
            let Token::Link(index) = token else {
                match token {
                    Token::Carrier => {
                        self.carrier.read_notifications(self.peers.ids(), &mut self.news);
                    }
                    _ => has_request = true,
                }
                continue;
            };
            self.disarm(index, output);
            if self.read(index, report) {
                brought = true;
                let cold = self.hot.heat(index);
                self.watch_cold(cold);
            }
        }
        self.looked = looked;
        self.look_every = if brought { 1 } else { (self.look_every * 2).min(LOOK_EVERY) };
        if !self.lists.unproven.is_empty() {
            self.check_health();
        }
        if self.idle_polls >= WATCH_AFTER {
            self.watch_all();
        }
        has_request
    }

    /// Returns whether the next poll has work even if nothing arrives.
    pub fn has_pending(&self) -> bool {
        !self.lists.continuing.is_empty()
    }

    /// Watches all links that are polled directly now, so that their events wake a sleeper.
    pub fn watch_all(&self) {
        let both = self.lists.blocked.iter().map(|index| (*index, Watched::Both));
        let input = self.hot.iter().map(|index| (index, Watched::Input));
        for (index, wanted) in both.chain(input) {
            if let Some(link) = self.peers[index].link.as_deref() {
                let wanted = if link.lists.blocked { Watched::Both } else { wanted };
                link.watch(&self.watch, index, wanted);
            }
        }
    }

    /// Reports all pending events, completed orders first.
    #[inline]
    pub fn report(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        if !self.news.is_empty() {
            self.news.report(report);
        }
    }

    /// Queues an event for the next report.
    pub fn queue_event(&mut self, event: Event<'static>) {
        self.news.found.push(event);
    }

    /// Reports the end of a link, or of the attempt to open one.
    #[cold]
    pub fn lost(&mut self, peer: PeerId, why: &str, unsent: Vec<Order>) {
        self.news.lost(&self.name, peer, why, unsent);
    }

    /// Closes a link, if there is one, and reports that.
    #[cold]
    #[inline(never)]
    pub fn lose(&mut self, peer: PeerId, why: &str) {
        if let Some(mut link) = self.remove(peer) {
            self.lost(peer, why, link.out.take_unsent());
        }
    }

    /// Removes a link that the engine has closed; returns its unsent orders to the engine.
    pub fn leave(&mut self, peer: PeerId) -> Option<Box<Link>> {
        let mut link = self.remove(peer);
        let unsent = link.as_mut().map(|link| link.out.take_unsent()).unwrap_or_default();
        self.lost(peer, "has no link any more: this side closed it", unsent);
        link
    }

    fn remove(&mut self, peer: PeerId) -> Option<Box<Link>> {
        let gone = self.peers.find(peer)?;
        let link = self.peers[gone].link.take()?;
        self.hot.forget(gone);
        self.lists.forget(gone);
        Some(link)
    }

    /// Watches a link that is not hot any more.
    #[inline]
    fn watch_cold(&mut self, cold: Option<usize>) {
        if let Some((index, link)) = cold.and_then(|index| Some((index, self.peers[index].link.as_deref()?)))
        {
            let wanted = if link.lists.blocked { Watched::Both } else { Watched::Input };
            link.watch(&self.watch, index, wanted);
        }
    }

    /// Writes queued orders of a peer to its socket.
    #[inline]
    fn write(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let Some(link) = peer.link.as_deref_mut() else { return };
        if link.failed.is_some() {
            return;
        }
        let before = link.out.written();
        let written = link.out.write(link.socket.as_fd(), &mut self.staging, &mut self.news.sent);
        let moved = link.out.written() != before;
        link.room.note(moved, link.socket.as_fd());
        let peer = peer.id;
        if let Err(e) = written {
            // The peer may have ended in an orderly way: first read the bytes that it sent before.
            link.failed = Some(e);
            return self.lists.continuing.push(index);
        }
        if self.written(index) && moved {
            self.news.found.push(Event::Moved { peer });
        }
    }

    /// Updates the lists after a write; returns whether output waits for room in the kernel.
    #[inline]
    fn written(&mut self, index: usize) -> bool {
        let Some(link) = self.peers[index].link.as_deref_mut() else { return false };
        if !link.lists.unproven {
            link.lists.unproven = true;
            self.lists.unproven.push(index);
        }
        let blocked = !link.out.is_empty();
        if blocked && !link.lists.blocked {
            self.lists.blocked.push(index);
        }
        link.lists.blocked = blocked;
        blocked
    }

    #[inline(never)]
    fn write_blocked(&mut self) {
        for place in (0..self.lists.blocked.len()).rev() {
            // A link that fails leaves the list.
            let Some(&index) = self.lists.blocked.get(place) else { continue };
            self.write(index);
        }
        let peers = &self.peers;
        self.lists.blocked.retain(|index| peers[*index].link.as_ref().is_some_and(|l| l.lists.blocked));
    }

    /// Reads from a peer; returns whether anything arrived.
    #[inline]
    fn read(&mut self, index: usize, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let peer = &mut self.peers[index];
        let Some(link) = peer.link.as_deref_mut() else { return false };
        let (id, regions, pool) = (peer.id, &self.regions, &mut self.pool);
        let mut place = Place { peer: id, regions, pool, longest: PACKET };
        let fd = link.socket.as_fd();
        for round in 0..READS {
            let (stream, scratch) = (&mut link.stream, &mut self.scratch);
            let result = match &mut link.unsealing {
                None => read(fd, stream, link.backlog, scratch, &mut place, report),
                Some(unsealing) => unsealing.read(fd, stream, scratch, &mut place, report),
            };
            match result {
                Ok(ReadResult::Nothing) if round == 0 => {
                    link.backlog = false;
                    return link.failed.is_some_and(|e| {
                        self.lose(id, &failed(e));
                        true
                    });
                }
                Ok(ReadResult::Nothing | ReadResult::All) => {
                    link.backlog = false;
                    break;
                }
                Ok(ReadResult::Full) => link.backlog = true,
                Ok(ReadResult::Kept) if matches!(link.stream, Stream::Between) => break,
                Ok(ReadResult::Kept) => {}
                Err(ended) => {
                    self.lose(id, &ended.to_string());
                    return true;
                }
            }
            if link.has_kept() {
                break;
            }
        }
        // No event of the socket tells of bytes that were read already.
        if link.has_kept() || link.failed.is_some() {
            self.lists.continuing.push(index);
        }
        if !matches!(link.stream, Stream::Between) {
            report(Event::Moved { peer: id });
        }
        self.idle_polls = 0;
        link.count_read(&self.watch, index);
        true
    }

    /// Stops watching for room to write if there is nothing to write, so that it does not wake a sleeper.
    fn disarm(&mut self, index: usize, output: bool) {
        let Some(link) = self.peers[index].link.as_deref_mut() else { return };
        if output && link.watched() == Watched::Both && link.out.is_empty() {
            link.watch(&self.watch, index, Watched::Input);
        }
    }

    fn check_health(&mut self) {
        let now_ms = now_ms();
        for place in (0..self.lists.unproven.len()).rev() {
            let Some(&index) = self.lists.unproven.get(place) else { continue };
            let peer = &mut self.peers[index];
            let Some(link) = peer.link.as_deref_mut() else { continue };
            match link.health.check(link.socket.as_fd(), now_ms) {
                Some(Verdict::Quiet) if link.out.is_empty() => {
                    link.lists.unproven = false;
                    self.lists.unproven.swap_remove(place);
                }
                Some(Verdict::Dead(silent_ms)) => {
                    let (peer, seconds) = (peer.id, silent_ms as f32 / 1000.0);
                    self.lose(peer, &format!("has not answered for {seconds:.1} s (is its interface down?)"));
                }
                _ => {}
            }
        }
    }
}
