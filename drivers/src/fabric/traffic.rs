//! Traffic on open links: handles the adapter's events.

use super::adapter::{Adapter, Completion};
use super::cache::Cache;
use super::dispatch::{RailParts, dispatch};
use super::link::Link;
use super::message::Prefix;
use super::operations::Operations;
use super::read::{Inbox, ReadContext};
use super::slots::{SLOT, Slots};
use super::write::{WINDOW, Way};
use crate::carrier::Carrier;
use crate::interface::Interface;
use crate::news::News;
use crate::regions::Regions;
use crate::tcp::now_ms;
use crate::tcp::peers::Peers;
use crate::watch::{Token, Watch};
use hashbrown::HashMap;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{PeerId, RegionId, RequestId};
use nmad_engine::transfer::access::{Access, Came};
use nmad_engine::transfer::driver::{Event, Order};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};

/// Slots for sending, shared by all links.
const SENDS: u32 = 256;
/// Slots for receiving: the windows of some peers. More peers than that rarely send at the same time, and
/// then the fabric delays their messages.
const RECEIVES: u32 = 8 * WINDOW;
/// Polls between two checks of the connections.
const LOOK_EVERY: u32 = 64;
/// Time in milliseconds for which messages may still arrive after their sender's connection has ended.
const LINGER_MS: u64 = 50;
/// Messages kept for links that this side is still opening, at most.
const EARLY: usize = 1024;

/// The open links of a rail. The fields are dropped in order: endpoints before the memory that they use,
/// and everything before the adapter.
pub(crate) struct Traffic<A: Adapter> {
    pub(super) name: String,
    pub(crate) peers: Peers<Link<A>>,
    pub(crate) sends: Slots<A::Region>,
    pub(crate) receives: Slots<A::Region>,
    pub(super) cache: Cache<A::Region>,
    /// Memory exposed to peers, by its key.
    pub(crate) exposed: HashMap<u64, A::Region>,
    pub(crate) adapter: A,
    pub(crate) watch: Watch,
    pub(crate) regions: Regions,
    /// Number of endpoint names used so far.
    pub(crate) names: u32,
    /// Tokens of links that are being opened.
    pub(crate) awaited: Vec<u64>,
    /// Messages that arrived for these links.
    early: Vec<Vec<u8>>,
    /// Index of the peer of each endpoint, by the endpoint's name.
    pub(super) peer_of: Vec<usize>,
    pub(super) operations: Operations,
    pub(super) news: News,
    carrier: Carrier,
    pub(super) found: Vec<Completion>,
    /// Links that have something to post.
    pub(super) listed: Vec<usize>,
    /// Links whose connection has ended.
    pub(super) ending: Vec<usize>,
    polls: u32,
}

impl<A: Adapter> Traffic<A> {
    /// Creates the traffic of the rail called `name`, without links.
    ///
    /// # Errors
    /// The system does not let this process register the memory that a rail needs.
    pub(crate) fn new(
        name: String,
        interface: &Interface,
        watch: Watch,
        mut adapter: A,
    ) -> Result<Self, String> {
        let sends = Slots::new(&mut adapter, SENDS)?;
        let receives = Slots::new(&mut adapter, RECEIVES)?;
        if let Some(fd) = adapter.descriptor() {
            watch.add(fd, Token::Wakeup, false).map_err(|e| format!("cannot watch the fabric: {e}"))?;
        }
        let carrier = Carrier::new(interface, &watch);
        let mut traffic = Traffic {
            name,
            peers: Peers::default(),
            sends,
            receives,
            cache: Cache::new(adapter.abilities().pins_pages),
            exposed: HashMap::new(),
            adapter,
            watch,
            regions: Regions::default(),
            names: 0,
            awaited: Vec::new(),
            early: Vec::new(),
            peer_of: Vec::new(),
            operations: Operations::default(),
            news: News::default(),
            carrier,
            found: Vec::new(),
            listed: Vec::new(),
            ending: Vec::new(),
            polls: 0,
        };
        traffic.fill()?;
        Ok(traffic)
    }

    /// Posts all free receive slots.
    pub(super) fn fill(&mut self) -> Result<(), String> {
        while let Some(slot) = self.receives.take() {
            self.receive(slot)?;
        }
        Ok(())
    }

    fn receive(&mut self, slot: u32) -> Result<(), String> {
        let buffer = self.receives.segment(slot, SLOT);
        self.adapter.receive(buffer, self.receives.region(), slot)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds an open link, and handles messages that arrived for it before.
    pub(crate) fn add(&mut self, index: usize, link: Link<A>, report: &mut dyn FnMut(Event<'_>)) {
        let (name, token) = (link.name as usize, link.token);
        if self.peer_of.len() <= name {
            self.peer_of.resize(name + 1, usize::MAX);
        }
        self.peer_of[name] = index;
        self.peers[index].link = Some(Box::new(link));
        self.awaited.retain(|awaited| *awaited != token);
        for bytes in std::mem::take(&mut self.early) {
            self.handle_early(bytes, report);
        }
    }

    /// Drops early messages, because no link is being opened any more.
    pub(crate) fn forget_early(&mut self) {
        self.awaited.clear();
        self.early.clear();
    }

    /// Queues a packet or chunk for the next flush.
    #[inline]
    pub(crate) fn post(&mut self, to: PeerId, order: Order) {
        let found = self.peers.find(to);
        let link = found.and_then(|index| Some((index, self.peers[index].link.as_deref_mut()?)));
        let Some((index, link)) = link else {
            return self.lost(to, "has no open link", vec![order]);
        };
        link.out.push(order);
        link.list(index, &mut self.listed);
    }

    /// Queues an access for the next flush.
    pub(crate) fn access(&mut self, access: Access) -> Option<Came> {
        let found = self.peers.find(access.to);
        let link = found.and_then(|index| Some((index, self.peers[index].link.as_deref_mut()?)));
        let Some((index, link)) = link else { return Some(Came::Undone) };
        link.accesses.push(access);
        link.list(index, &mut self.listed);
        None
    }

    /// Handles the completion of an operation of an access, given its request, bytes, and success.
    pub(super) fn handle_access(&mut self, peer: PeerId, operation: (RequestId, u64, bool)) {
        let Some(index) = self.peers.find(peer) else { return };
        let Traffic { peers, sends, cache, adapter, news, listed, .. } = self;
        let Some(link) = peers[index].link.as_deref_mut() else { return };
        let Link { accesses, endpoint, name, .. } = link;
        let way = &mut Way { adapter, slots: sends, cache, endpoint, name: *name };
        accesses.landed(operation, way, &mut news.found);
        if accesses.waits() {
            link.list(index, listed);
        }
    }

    /// Sends a packet at once, if the queue is empty.
    #[inline]
    pub(crate) fn send_now(&mut self, to: PeerId, head: &[u64], data: &Segments) -> bool {
        let Some(index) = self.peers.find(to) else { return false };
        let Traffic { peers, sends, cache, adapter, listed, .. } = self;
        let Some(link) = peers[index].link.as_deref_mut() else { return false };
        let Link { out, endpoint, name, .. } = link;
        let way = &mut Way { adapter, slots: sends, cache, endpoint, name: *name };
        match out.send_now(way, head, data) {
            Ok(sent) => {
                if out.is_held_up() {
                    link.list(index, listed);
                }
                sent
            }
            Err(why) => {
                self.lose(to, &why);
                false
            }
        }
    }

    /// Assigns a receive region to the pushed chunk that a link holds.
    pub(crate) fn accept(&mut self, from: PeerId, region: RegionId) {
        let accepted = self.with_inbox(from, |link, context| link.accept(region, context));
        if let Some(Err(why)) = accepted {
            self.lose(from, &why);
        }
    }

    /// Sends everything that was posted.
    #[inline]
    pub(crate) fn flush(&mut self) {
        if !self.listed.is_empty() {
            self.write_listed();
        }
    }

    /// Polls the fabric once. Returns whether a check of the connections is due.
    #[inline]
    pub(crate) fn poll(&mut self, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if !self.news.is_empty() {
            self.news.report(report);
        }
        let mut found = std::mem::take(&mut self.found);
        self.adapter.poll(&mut found);
        for completion in found.drain(..) {
            self.completed(completion, report);
        }
        // Events that follow from these are handled in the next poll.
        found.append(&mut self.found);
        self.found = found;
        if !self.listed.is_empty() {
            self.report_listed(report);
            self.write_listed();
        }
        if !self.ending.is_empty() {
            self.end_links();
        }
        self.polls = self.polls.wrapping_add(1);
        self.polls >= LOOK_EVERY
    }

    /// Checks the connections. Returns whether one that is no open link's had an event.
    #[cold]
    #[inline(never)]
    pub(crate) fn look(&mut self) -> bool {
        self.polls = 0;
        self.cache.catch_up();
        let mut has_request = false;
        let mut ended = Vec::new();
        self.watch.look(|token, _| match token {
            Token::Link(index) => ended.push(index),
            Token::Carrier => self.carrier.read_notifications(self.peers.ids(), &mut self.news),
            Token::Opening => has_request = true,
            Token::Wakeup => {}
        });
        for index in ended {
            self.connection_ended(index);
        }
        has_request
    }

    /// Handles an event on the connection of a link: it has ended.
    pub(super) fn connection_ended(&mut self, index: usize) {
        let Some(link) = self.peers[index].link.as_deref_mut() else { return };
        match net::recv(&link.socket, &mut [0; 16], RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            _ => {
                let _ = self.watch.remove(&link.socket);
                if link.ends_ms.is_none() {
                    link.ends_ms = Some(now_ms() + LINGER_MS);
                    self.ending.push(index);
                }
            }
        }
    }

    fn end_links(&mut self) {
        let now_ms = now_ms();
        for index in std::mem::take(&mut self.ending) {
            let Some(ends_ms) = self.peers[index].link.as_ref().and_then(|link| link.ends_ms) else {
                continue;
            };
            match now_ms >= ends_ms {
                true => self.lose(self.peers[index].id, "closed the link (has it ended?)"),
                false => self.ending.push(index),
            }
        }
    }

    /// Prepares the descriptor to become readable with the next event. None: there is no such descriptor,
    /// or an event may have happened already.
    pub(crate) fn prepare_sleep(&mut self) -> Option<i32> {
        self.polls = LOOK_EVERY;
        let is_calm = self.news.is_empty() && self.listed.is_empty() && self.ending.is_empty();
        if !is_calm || self.adapter.descriptor().is_none() || !self.adapter.arm() {
            return None;
        }
        self.adapter.poll(&mut self.found);
        self.found.is_empty().then(|| self.watch.descriptor())
    }

    /// Makes the next poll check the connections.
    pub(crate) fn look_soon(&mut self) {
        self.polls = LOOK_EVERY;
    }

    fn completed(&mut self, completion: Completion, report: &mut dyn FnMut(Event<'_>)) {
        match completion {
            Completion::Received { slot, len } => {
                self.received(slot, len, report);
            }
            Completion::Wasted { slot } => self.repost(slot),
            Completion::Sent { slot } => self.sends.completed(slot),
            Completion::Operated { token, is_good } => self.handle_operation(token, is_good),
            Completion::Broken { endpoint: Some(name), why } => {
                let peer = self.peer_of.get(name as usize).and_then(|&index| self.link_named(index, name));
                if let Some(peer) = peer {
                    self.lose(peer, &why);
                }
            }
            Completion::Broken { endpoint: None, why } => self.lose_all(&why),
        }
    }

    pub(super) fn link_named(&self, index: usize, name: u32) -> Option<PeerId> {
        let is_known = index != usize::MAX && self.peers[index].link.as_ref().is_some_and(|l| l.name == name);
        is_known.then(|| self.peers[index].id)
    }

    #[inline]
    fn received(&mut self, slot: u32, len: usize, report: &mut dyn FnMut(Event<'_>)) {
        let Traffic { receives, peers, cache, adapter, regions, operations, news, peer_of, listed, .. } =
            self;
        let bytes = receives.received_mut(slot, len);
        let parts = RailParts { peers, adapter, cache, regions, operations, news, peer_of, listed };
        match dispatch(bytes, parts, report) {
            Ok(true) => {}
            Ok(false) => self.keep_early(slot, len),
            Err((peer, why)) => self.lose(peer, &why),
        }
        self.repost(slot);
    }

    /// Handles a message that arrived before its link was open.
    fn handle_early(&mut self, mut bytes: Vec<u8>, report: &mut dyn FnMut(Event<'_>)) {
        let Traffic { peers, cache, adapter, regions, operations, news, peer_of, listed, .. } = self;
        let parts = RailParts { peers, adapter, cache, regions, operations, news, peer_of, listed };
        match dispatch(&mut bytes, parts, report) {
            Ok(true) => {}
            Ok(false) => self.early.push(bytes),
            Err((peer, why)) => self.lose(peer, &why),
        }
    }

    /// Keeps a message without an open link if its link is being opened, and drops it otherwise.
    #[cold]
    fn keep_early(&mut self, slot: u32, len: usize) {
        let bytes = self.receives.bytes(slot, len);
        let token = Prefix::decode(bytes).map(|prefix| prefix.token);
        if token.is_some_and(|token| self.awaited.contains(&token)) && self.early.len() < EARLY {
            self.early.push(bytes.to_vec());
        }
    }

    /// Posts a receive slot again.
    #[inline]
    fn repost(&mut self, slot: u32) {
        if let Err(why) = self.receive(slot) {
            self.lose_all(&why);
        }
    }

    /// Calls `act` with the arrivals of a peer, and lists its link.
    pub(super) fn with_inbox<T>(
        &mut self,
        peer: PeerId,
        act: impl FnOnce(&mut Inbox<A::Region>, &mut ReadContext<'_, A>) -> T,
    ) -> Option<T> {
        let index = self.peers.find(peer)?;
        let Traffic { peers, cache, adapter, regions, operations, listed, .. } = self;
        let link = peers[index].link.as_deref_mut()?;
        link.list(index, listed);
        let Link { inbox, out, endpoint, name, .. } = link;
        let context =
            &mut ReadContext { adapter, cache, endpoint, name: *name, peer, regions, operations, out };
        Some(act(inbox, context))
    }

    /// Reports complete arrivals of the listed links.
    fn report_listed(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        for &index in &self.listed {
            let peer = self.peers[index].id;
            if let Some(Link { inbox, out, .. }) = self.peers[index].link.as_deref_mut() {
                inbox.report(peer, out, report);
            }
        }
    }

    /// Posts orders of the listed links. Links without enough room stay in the list.
    fn write_listed(&mut self) {
        let mut listed = std::mem::take(&mut self.listed);
        listed.retain(|&index| {
            if self.peers[index].link.as_ref().is_some_and(|link| link.is_stuck) {
                // The peer may have ended and so take nothing any more.
                self.connection_ended(index);
            }
            let Some(link) = self.peers[index].link.as_deref_mut() else { return false };
            link.is_listed = false;
            if link.ends_ms.is_some() {
                return false;
            }
            match self.write(index) {
                Ok(left) => {
                    let Some(link) = self.peers[index].link.as_deref_mut() else { return false };
                    link.is_stuck = left;
                    link.is_listed = left || link.inbox.has_news();
                    link.is_listed
                }
                Err(why) => {
                    self.lose(self.peers[index].id, &why);
                    false
                }
            }
        });
        // Links that were listed meanwhile.
        listed.append(&mut self.listed);
        self.listed = listed;
    }

    fn write(&mut self, index: usize) -> Result<bool, String> {
        let Traffic { peers, cache, adapter, regions, operations, sends, news, .. } = self;
        let peer = peers[index].id;
        let Some(link) = peers[index].link.as_deref_mut() else { return Ok(false) };
        let Link { inbox, out, accesses, endpoint, name, .. } = link;
        let mut context =
            ReadContext { adapter, cache, endpoint, name: *name, peer, regions, operations, out };
        let left = inbox.pull(&mut context)?;
        let way = &mut Way { adapter, slots: sends, cache, endpoint, name: *name };
        let left = out.write(way, &mut news.sent)? || left;
        Ok(accesses.write(way, operations, &mut news.found)? || left)
    }
}
