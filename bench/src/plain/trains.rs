//! Bulk data in datagrams over a bare UDP socket: what the kernel carries if nothing has to be found again.
//!
//! A message leaves in trains of up to 64 KiB that the kernel cuts into datagrams (UDP_SEGMENT) and joins
//! again (UDP_GRO), straight from and to user memory. The datagrams bear no number, so data lands where it
//! belongs only while none is lost or overtaken: no transfer could be built like this, and none with
//! datagrams is faster. Lost datagrams are not sent again and do not count.
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt as nixopt};
use rustix::net::sockopt;

use super::datagram::Datagrams;
use super::wait::{spin, timed_out};

/// Longest send: what an IP packet may hold, since the kernel makes one of it first.
const SEND_MAX: usize = 65_507;
/// Datagrams that older kernels cut one send into, at most.
const TRAIN_MAX: usize = 64;
/// Asked of the system for what has arrived and was not read.
const BUFFER: usize = 4 << 20;
/// The receiver reports how much has arrived each time it has received this number of bytes.
const NEWS_EVERY: u64 = 128 << 10;
/// After this time without a report the sender counts the bytes in flight as lost and sends the end again.
const PATIENCE: Duration = Duration::from_millis(20);
/// Data lands where a page begins: shortly behind, where large buffers of malloc do, some processors' string
/// copies take many times as long (AMD's Zen 3, 1 to 31 bytes).
const PAGE: usize = 4096;
/// Ends a batch, with its number behind. Data is made of other bytes.
const END: [u8; 8] = [0xE5; 8];
const END_LEN: usize = END.len() + 1;

/// A UDP socket tied to the other side, for bulk.
#[derive(Debug)]
pub struct Trains {
    socket: UdpSocket,
    /// Bytes of a train.
    train: usize,
    /// Bytes that may be on their way.
    window: u64,
    limit: Duration,
    /// Number of the last batch, the same at both sides.
    batch: u8,
}

impl Trains {
    /// Makes a pair of sockets that are tied to each other ready for bulk; each call on it ends within
    /// `limit`.
    ///
    /// # Errors
    /// The socket is not tied.
    pub fn new(tied: Datagrams, limit: Duration) -> io::Result<Trains> {
        let socket = tied.into_socket();
        let datagram = longest(&socket)?;
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER)?;
        sockopt::set_socket_send_buffer_size(&socket, BUFFER)?;
        let is_cut = setsockopt(&socket, nixopt::UdpGsoSegment, &(datagram as i32)).is_ok();
        // It works without, slower.
        let _ = setsockopt(&socket, nixopt::UdpGroSegment, &true);
        let count = if is_cut { (SEND_MAX / datagram).clamp(1, TRAIN_MAX) } else { 1 };
        // The kernel counts what it spends on its own structures, too.
        let window = sockopt::socket_recv_buffer_size(&socket)? as u64 / 4;
        Ok(Trains { socket, train: count * datagram, window, limit, batch: 0 })
    }

    /// Sends `data` `times` times and returns how many bytes have arrived.
    ///
    /// # Errors
    /// The other side cannot be reached, or does not answer.
    pub fn send(&mut self, data: &[u8], times: usize) -> io::Result<u64> {
        let deadline = Instant::now() + self.limit;
        self.batch = self.batch.wrapping_add(1);
        let (mut sent, mut told) = (0, 0);
        for train in (0..times).flat_map(|_| data.chunks(self.train)) {
            while sent + train.len() as u64 > told + self.window {
                // The receiver never reports lost bytes: without news, nothing counts as in flight.
                told = self.hear(deadline)?.map_or(sent, |news| news.arrived);
            }
            spin(deadline, || self.socket.send(train))?.ok_or_else(timed_out)?;
            sent += train.len() as u64;
        }
        self.end(deadline)
    }

    /// Says that the batch has ended until the other side has heard it.
    fn end(&self, deadline: Instant) -> io::Result<u64> {
        loop {
            self.say_end(deadline)?;
            while let Some(news) = self.hear(deadline)? {
                if news.is_last {
                    return Ok(news.arrived);
                }
            }
        }
    }

    pub(super) fn say_end(&self, deadline: Instant) -> io::Result<()> {
        spin(deadline, || self.socket.send(&end_of(self.batch)))?.map(drop).ok_or_else(timed_out)
    }

    /// What the other side says of this batch next; none if it says nothing for a while.
    fn hear(&self, deadline: Instant) -> io::Result<Option<News>> {
        let soon = deadline.min(Instant::now() + PATIENCE);
        let mut bytes = [0; News::LEN];
        while spin(soon, || self.socket.recv(&mut bytes))?.is_some() {
            let news = News::decode(bytes);
            if news.batch == self.batch {
                return Ok(Some(news));
            }
        }
        if soon == deadline { Err(timed_out()) } else { Ok(None) }
    }

    /// Receives such a batch of messages of `len` bytes into `into`, which is made long enough.
    ///
    /// # Errors
    /// The other side cannot be reached, or sends nothing.
    pub fn receive(&mut self, into: &mut Vec<u8>, len: usize) -> io::Result<()> {
        let deadline = Instant::now() + self.limit;
        self.batch = self.batch.wrapping_add(1);
        into.resize(PAGE + len + SEND_MAX, 0);
        let begin = into.as_ptr().align_offset(PAGE).min(PAGE);
        let (mut arrived, mut told) = (0, 0);
        loop {
            let at = begin + (arrived % len.max(1) as u64) as usize;
            let place = &mut into[at..at + SEND_MAX];
            let got = spin(deadline, || self.socket.recv(place))?.ok_or_else(timed_out)?;
            // The kernel joins a last, shorter datagram to those before.
            let ended = place[..got].last_chunk().and_then(batch_of);
            arrived += (got - ended.map_or(0, |_| END_LEN)) as u64;
            let is_last = ended == Some(self.batch);
            if is_last || arrived - told >= NEWS_EVERY {
                told = arrived;
                let news = News { arrived, batch: self.batch, is_last }.encode();
                spin(deadline, || self.socket.send(&news))?.ok_or_else(timed_out)?;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// What the receiver tells.
struct News {
    /// Bytes of the batch that have arrived.
    arrived: u64,
    batch: u8,
    /// Whether no more is expected.
    is_last: bool,
}

impl News {
    const LEN: usize = 10;

    fn encode(&self) -> [u8; News::LEN] {
        let mut bytes = [0; News::LEN];
        bytes[..8].copy_from_slice(&self.arrived.to_le_bytes());
        bytes[8..].copy_from_slice(&[self.batch, u8::from(self.is_last)]);
        bytes
    }

    fn decode([a, b, c, d, e, f, g, h, batch, is_last]: [u8; News::LEN]) -> News {
        News { arrived: u64::from_le_bytes([a, b, c, d, e, f, g, h]), batch, is_last: is_last != 0 }
    }
}

fn end_of(batch: u8) -> [u8; END_LEN] {
    let mut bytes = [batch; END_LEN];
    bytes[..END.len()].copy_from_slice(&END);
    bytes
}

/// The batch that these bytes end.
fn batch_of(bytes: &[u8; END_LEN]) -> Option<u8> {
    bytes.strip_prefix(&END).and_then(|rest| rest.first().copied())
}

/// Longest data of a datagram that passes uncut.
fn longest(socket: &UdpSocket) -> io::Result<usize> {
    let (mtu, headers) = match socket.peer_addr()?.ip() {
        IpAddr::V4(_) => (sockopt::ip_mtu(socket)?, 28),
        IpAddr::V6(_) => (sockopt::ipv6_mtu(socket)?, 48),
    };
    Ok((mtu as usize).saturating_sub(headers).clamp(1, SEND_MAX))
}
