//! Resources that a rail has before it has any link: its listening socket, its wakeup descriptor, and a
//! mark in the memory of this process with which peers test whether they can access that memory.

use crate::connections::Accepted;
use crate::error::DriverError;
use crate::handshake::random;
use crate::node::across::{self, Process, pidfd};
use crate::node::{Segment, cache_of_core};
use crate::opening::Origin;
use crate::shm::address::Address;
use crate::shm::layout::{End, LEN, MAGIC};
use crate::shm::link::Opened;
use crate::shm::shared::Shared;
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Backlog of the listening socket: all processes of a node may connect at the same time.
const BACKLOG: i32 = 1024;

/// The resources of a rail that exist before its links.
#[derive(Debug)]
pub struct Home {
    pub address: Address,
    pub socket: OwnedFd,
    pub wakeup: OwnedFd,
    /// Whether large data may be copied from process to process.
    cross_memory: bool,
    mark: &'static Mark,
}

/// Random words by which peers test their access to the memory of this process: they read them and write
/// them back unchanged.
type Mark = [AtomicU64; 2];

/// Returns the mark of this process. It is never freed: a peer may write it back after the rail has ended,
/// and would change whatever this process keeps in its place by then.
fn mark() -> Result<&'static Mark, Errno> {
    static MARK: OnceLock<&Mark> = OnceLock::new();
    if let Some(mark) = MARK.get() {
        return Ok(mark);
    }
    let bytes = random()?;
    let words = [0, 8].map(|at| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes));
    Ok(MARK.get_or_init(|| Box::leak(Box::new(words.map(AtomicU64::new)))))
}

impl Home {
    pub fn open(name: &str, cross_memory: bool, watch: &Watch) -> Result<Home, DriverError> {
        let failed = |what: &str, e: Errno| {
            DriverError::new(name, format!("{what} (NMAD_RAILS=lo does without shared memory)"), e)
        };
        let no_bytes = |e| failed("gets no random bytes", e);
        let address = Address::fresh(&random().map_err(no_bytes)?);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|e| failed("cannot make a socket", e))?;
        let at = SocketAddrUnix::new_abstract_name(address.name.as_bytes())
            .map_err(|e| failed("cannot name a socket", e))?;
        net::bind(&socket, &at).map_err(|e| failed("cannot name a socket", e))?;
        net::listen(&socket, BACKLOG).map_err(|e| failed("cannot listen", e))?;
        let wakeup = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(|e| failed("cannot make an eventfd", e))?;
        watch.add(&socket, Token::Opening, false).map_err(|e| failed("cannot watch a socket", e))?;
        watch.add(&wakeup, Token::Wakeup, false).map_err(|e| failed("cannot watch an eventfd", e))?;
        if cross_memory {
            across::permit_access();
        }
        Ok(Home { address, socket, wakeup, cross_memory, mark: mark().map_err(no_bytes)? })
    }

    /// Connects to the listening socket of a peer.
    pub fn connect(&self, at: &Address) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        net::connect(&fd, &SocketAddrUnix::new_abstract_name(at.name.as_bytes())?)?;
        Ok(fd)
    }

    /// Accepts a waiting connection. The names of abstract sockets are public on a node, so every user can
    /// connect. The kernel reports the user, and a process of another user is disconnected before a byte is
    /// read, so it never occupies a peer's place.
    pub fn accept(&self) -> Option<Accepted> {
        let fd = net::accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).ok()?;
        let peer = across::peer_of(fd.as_fd());
        let user = peer.map(|peer| peer.user);
        if user == Some(geteuid().as_raw()) {
            let text = peer.map_or(String::new(), |peer| format!("process {}", peer.process));
            return Some(Accepted::Stranger(fd, Origin { text, host: None, is_known: true }));
        }
        let whose = user.map_or("an unknown user".into(), |user| format!("user {user}"));
        Some(Accepted::Rejected(format!("a process of {whose} at the socket of this rail")))
    }

    /// Creates the segment of a link that this side opens; returns it with its descriptor.
    pub fn segment(&self) -> std::io::Result<(Segment, OwnedFd)> {
        let (segment, fd) = Segment::create(LEN)?;
        segment.word(End::magic()).store(MAGIC, Ordering::Relaxed);
        self.write_mark(&segment, End::Opened);
        Ok((segment, fd))
    }

    /// Maps the segment of a link that the peer opens.
    pub fn adopt(&self, fd: BorrowedFd<'_>) -> Result<Segment, String> {
        let segment = Segment::adopt(fd, LEN).map_err(|e| e.to_string())?;
        if segment.word(End::magic()).load(Ordering::Relaxed) != MAGIC {
            return Err("its shared memory is of another release (start one release everywhere)".into());
        }
        self.write_mark(&segment, End::Answered);
        Ok(segment)
    }

    /// Writes the address and value of our mark into the segment.
    fn write_mark(&self, segment: &Segment, end: End) {
        let [first, second] = self.mark.each_ref().map(|word| word.load(Ordering::Relaxed));
        let words = [(&raw const *self.mark) as u64, first, second, cache_of_core()];
        for (at, word) in words.into_iter().enumerate() {
            segment.word(end.probe() + at * 8).store(word, Ordering::Relaxed);
        }
    }

    /// Builds a link after its handover is complete. Tests whether the peer's memory can be accessed.
    pub fn open_link(
        &self,
        peer: PeerId,
        remote: u8,
        (segment, end): (Segment, End),
        socket: OwnedFd,
        wakeup: OwnedFd,
    ) -> Opened {
        let process = Process::behind(socket.as_fd());
        // Duplicated: the rail watches this descriptor, the copies use the other one.
        let watched = process.as_ref().and_then(|process| pidfd(process.id()));
        let process =
            process.filter(|process| self.cross_memory && can_access(process, &segment, end.other()));
        let shared = Shared::new(segment, end, process);
        shared.tell_access();
        Opened { peer, remote, shared, socket, wakeup, process: watched }
    }
}

/// Tests whether this process can read and write the memory of `process`: it reads the mark of `end` at the
/// address in the segment and writes it back unchanged. Only a trial is reliable, because user namespaces,
/// capabilities, security modules and system call filters all may forbid the access.
fn can_access(process: &Process, segment: &Segment, end: End) -> bool {
    let [address, first, second] =
        [0, 8, 16].map(|word| segment.word(end.probe() + word).load(Ordering::Relaxed));
    let mut found = [0; 2];
    let reads = across::peek(process, address, &mut found).is_ok() && found == [first, second];
    reads && across::poke(process, address, &found).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_of_access_writes_to_no_other_memory_after_the_rail_has_ended() {
        let home = Home::open("shm", true, &Watch::new().expect("a descriptor")).expect("a rail");
        let (segment, _) = home.segment().expect("shared memory");
        drop(home);
        // Takes the place of whatever the rail has freed.
        let others: Vec<Box<[u64; 2]>> = (0..1000).map(|_| Box::new([7; 2])).collect();
        let me = Process::of(std::process::id() as i32);
        assert!(can_access(&me, &segment, End::Opened));
        assert!(others.iter().all(|other| **other == [7; 2]));
    }
}
