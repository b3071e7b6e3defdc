//! Ends of links and receive regions: when these calls return, no operation accesses their memory any more.
//!
//! If the adapter ends the operations of an endpoint when that is dropped, this is done. Otherwise this
//! side waits for the reads under way, which takes as long as some MiB; if one does not end, the rail ends,
//! and the other rails carry on.

use super::adapter::{Adapter, Completion};
use super::link::Link;
use super::operations::{Operation, Owner};
use super::traffic::Traffic;
use super::write::Way;
use nmad_engine::packet::{PeerId, RegionId};
use nmad_engine::transfer::driver::{Event, Order};
use rustix::fd::OwnedFd;
use rustix::net;
use std::time::{Duration, Instant};

/// Longest wait for operations that cannot be cancelled.
const READS_MAX: Duration = Duration::from_secs(1);

impl<A: Adapter> Traffic<A> {
    /// Reports all pending events, completed orders first.
    #[inline]
    pub(crate) fn report(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        if !self.news.is_empty() {
            self.news.report(report);
        }
    }

    /// Queues an event for the next report.
    pub(crate) fn queue_event(&mut self, event: Event<'static>) {
        self.news.found.push(event);
    }

    /// Reports the end of a link, or of the attempt to open one.
    #[cold]
    pub(crate) fn lost(&mut self, peer: PeerId, why: &str, unsent: Vec<Order>) {
        self.news.lost(&self.name, peer, why, unsent);
    }

    /// Closes a link, if there is one, and reports that.
    #[cold]
    #[inline(never)]
    pub(crate) fn lose(&mut self, peer: PeerId, why: &str) {
        if let Some((_, unsent)) = self.remove(peer, why) {
            self.lost(peer, why, unsent);
        }
    }

    /// Closes every link.
    #[cold]
    pub(super) fn lose_all(&mut self, why: &str) {
        let open = self.peers.iter_mut().filter(|peer| peer.link.is_some()).map(|peer| peer.id);
        for peer in open.collect::<Vec<_>>() {
            self.lose(peer, why);
        }
    }

    /// Removes a link that the engine has closed; returns its unsent orders to the engine. Returns its
    /// connection.
    pub(crate) fn leave(&mut self, peer: PeerId) -> Option<OwnedFd> {
        let removed = self.remove(peer, "has no link any more: this side closed it");
        let (socket, unsent) = removed.map_or((None, Vec::new()), |(socket, unsent)| (Some(socket), unsent));
        self.lost(peer, "has no link any more: this side closed it", unsent);
        socket
    }

    /// Ends a link. None: there is none, or it has ended with all others, which was reported.
    fn remove(&mut self, peer: PeerId, why: &str) -> Option<(OwnedFd, Vec<Order>)> {
        let index = self.peers.find(peer)?;
        self.peers[index].link.as_ref()?;
        if !self.adapter.abilities().ends_operations && !self.wait_for_reads(index, None) {
            self.end_all(peer, why);
            return None;
        }
        let link = self.peers[index].link.take()?;
        self.listed.retain(|listed| *listed != index);
        self.ending.retain(|ending| *ending != index);
        Some(self.end_link(*link))
    }

    /// Ends the endpoint of a link, and then the use of its memory.
    fn end_link(&mut self, link: Link<A>) -> (OwnedFd, Vec<Order>) {
        let Link { endpoint, name, socket, mut out, accesses, .. } = link;
        drop(endpoint);
        out.release_held_up(&mut self.sends);
        self.news.found.extend(accesses.end());
        if self.adapter.abilities().ends_operations {
            self.sends.reclaim(name);
            self.operations.forget(name);
        }
        self.peer_of[name as usize] = usize::MAX;
        let _ = self.watch.remove(&socket);
        (socket, out.take_unsent())
    }

    /// Ends every operation of the rail, and all links including the one to `peer`. No link is opened after
    /// that.
    #[cold]
    fn end_all(&mut self, peer: PeerId, why: &str) {
        log::warn!("rail {}: peer {} stopped in the middle of a read: the rail ends", self.name, peer.0);
        self.adapter.end();
        let open = self.peers.iter_mut().filter_map(|peer| Some((peer.id, peer.link.take()?)));
        for (other, link) in open.collect::<Vec<_>>() {
            let (_, unsent) = self.end_link(*link);
            match other == peer {
                true => self.lost(other, why, unsent),
                false => self.lost(other, "shared an endpoint with a peer that stopped in a read", unsent),
            }
        }
        self.listed.clear();
        self.ending.clear();
        self.found.clear();
    }

    /// Closes a receive region. Its memory is not accessed any more.
    pub(crate) fn close(&mut self, region: RegionId) {
        let Some(peer) = self.regions.close(region) else { return };
        let Some(index) = self.peers.find(peer).filter(|&index| self.peers[index].link.is_some()) else {
            return;
        };
        if !self.wait_for_reads(index, Some(region)) {
            return self.lose(peer, "stopped in the middle of a read (does it run?)");
        }
        self.with_inbox(peer, |inbox, context| inbox.discard(region, context.out));
    }

    /// Waits for the reads of a link into a receive region, or into any; false: they take too long. No
    /// other reads are started meanwhile.
    fn wait_for_reads(&mut self, index: usize, region: Option<RegionId>) -> bool {
        let mut until = None;
        while self.peers[index].link.as_ref().is_some_and(|link| link.inbox.is_reading(region)) {
            let now = Instant::now();
            if now >= *until.get_or_insert(now + READS_MAX) {
                return false;
            }
            self.adapter.poll(&mut self.found);
            for completion in std::mem::take(&mut self.found) {
                match completion {
                    Completion::Operated { token, is_good } => self.handle_operation(token, is_good),
                    other => self.found.push(other),
                }
            }
            if self.is_broken(index) {
                return false;
            }
        }
        true
    }

    /// Returns whether the link is about to be closed, so that its reads are not reported any more.
    fn is_broken(&self, index: usize) -> bool {
        let name = self.peers[index].link.as_ref().map(|link| link.name);
        let is_of_it = |found: &Completion| match found {
            Completion::Broken { endpoint, .. } => endpoint.is_none() || *endpoint == name,
            _ => false,
        };
        self.found.iter().any(is_of_it)
    }

    /// Handles the completion of an operation on a peer's memory.
    pub(super) fn handle_operation(&mut self, token: u32, is_good: bool) {
        let Some(Operation { endpoint, owner, len }) = self.operations.take(token) else { return };
        let index = self.peer_of.get(endpoint as usize).copied();
        let peer = index.and_then(|index| self.link_named(index, endpoint));
        let Some(peer) = peer else { return };
        match owner {
            Owner::Chunk(chunk) if is_good => {
                self.with_inbox(peer, |inbox, context| inbox.read((chunk, len), context));
            }
            Owner::Chunk(chunk) => _ = self.with_inbox(peer, |inbox, _| inbox.failed(chunk)),
            Owner::Access(request) => self.handle_access(peer, (request, len, is_good)),
        }
        if !is_good {
            let why = "cannot be reached any more (has it died?)".into();
            self.found.push(Completion::Broken { endpoint: Some(endpoint), why });
        }
    }

    /// Requests completions that confirm that the peers have received everything.
    fn conclude(&mut self) {
        self.forget_ended();
        let Traffic { peers, sends, cache, adapter, .. } = self;
        for link in peers.iter_mut().filter_map(|peer| peer.link.as_deref_mut()) {
            if link.ends_ms.is_none() {
                let Link { out, endpoint, name, .. } = link;
                let way = &mut Way { adapter, slots: sends, cache, endpoint, name: *name };
                if let Err(why) = out.conclude(way) {
                    log::debug!("a link has ended before the rail: {why}");
                }
            }
        }
    }

    /// Closes the links of peers that have ended, because they receive nothing any more.
    fn forget_ended(&mut self) {
        for index in 0..self.peers.iter_mut().count() {
            self.connection_ended(index);
            let link = self.peers[index].link.as_deref();
            if let Some(name) = link.filter(|link| link.ends_ms.is_some()).map(|link| link.name) {
                self.sends.reclaim(name);
            }
        }
    }

    /// Ends the rail: posted orders are sent, if the fabric takes them in time. Returns the connections of
    /// the links; the other sides are notified when these close.
    pub(crate) fn end(&mut self) -> Vec<OwnedFd> {
        let until = Instant::now() + READS_MAX;
        self.conclude();
        while !self.sends.are_all_free() && Instant::now() < until {
            self.forget_ended();
            self.adapter.poll(&mut self.found);
            for completion in std::mem::take(&mut self.found) {
                match completion {
                    Completion::Sent { slot } => self.sends.completed(slot),
                    Completion::Broken { endpoint: Some(name), .. } => self.sends.reclaim(name),
                    _ => {}
                }
            }
        }
        // Close the connections first, so that no peer uses an endpoint that has ended.
        for peer in self.peers.iter_mut() {
            let _ = peer.link.as_ref().map(|link| net::shutdown(&link.socket, net::Shutdown::Write));
        }
        self.adapter.end();
        let links = self.peers.iter_mut().filter_map(|peer| peer.link.take());
        links.collect::<Vec<_>>().into_iter().map(|link| self.end_link(*link).0).collect()
    }
}
