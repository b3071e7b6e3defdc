//! What rails and cores of the ranks are busy with: when what is sent leaves, arrives and is taken.
//!
//! Each rank has its rails and one core. A rail sends one thing after the other, answers to requests behind
//! bodies too, and takes one thing after the other, whoever sent it. The core copies eager data on both
//! sides, one message after the other.

use super::outcome::{CallTimes, Setting};
use super::pattern::{CARRIERS, Carried};
use newmadeleine::engine::Forecast;

/// A message: its length, and what each rail carries of it if that is known.
pub(super) type Load = (u64, Option<Carried>);

/// Bytes of a short frame.
const SHORT: u64 = 64;

/// Longest chunk of a body, in bytes, unless the user sets another.
const CHUNK: u64 = 1 << 20;

/// What a rank's rails and core are busy with.
#[derive(Debug, Clone)]
struct Host {
    /// When each rail, in each direction, would be idle at its steady rate; with a burst it is up to the
    /// time of the burst earlier.
    sends_until: Vec<u64>,
    takes_until: Vec<u64>,
    /// Until when the core copies.
    core_until: u64,
}

/// A packet or a chunk, or all that one rail carries of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) rail: usize,
    pub(super) len: u64,
    /// When its last byte comes to the receiver's rail.
    pub(super) reaches: u64,
}

/// How a receiver reads a piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    /// It is a part of a body; otherwise eager data.
    pub(super) is_body: bool,
    /// It came while the receiver was away.
    pub(super) is_late: bool,
}

/// What becomes of a message that is sent.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) pieces: Vec<Piece>,
    /// When the sender may use its memory again.
    pub(super) sent: u64,
}

/// The rails and cores of all ranks.
pub(super) struct Hosts<'a> {
    setting: &'a Setting,
    hosts: Vec<Host>,
}

impl<'a> Hosts<'a> {
    pub(super) fn new(count: usize, setting: &'a Setting) -> Hosts<'a> {
        let none = || vec![0; setting.rails.len()];
        let host = Host { sends_until: none(), takes_until: none(), core_until: 0 };
        Hosts { setting, hosts: vec![host; count] }
    }

    /// The core of a rank has had something else to do until now.
    pub(super) fn core_is_free_at(&mut self, rank: usize, now: u64) {
        let host = &mut self.hosts[rank];
        host.core_until = host.core_until.max(now);
    }

    /// Until when the core of a rank copies.
    pub(super) fn core_until(&self, rank: usize) -> u64 {
        self.hosts[rank].core_until
    }

    /// Sends a short frame: over which rail, and when it comes to that of the receiver.
    pub(super) fn control(&self, now: u64, from: usize) -> Piece {
        let share = |rail: usize| {
            let reaches = self.idle_from(now, from, rail) + start_ns(self.forecast(rail));
            Piece { rail, len: 0, reaches }
        };
        let shares = (0..self.setting.rails.len()).map(share);
        shares.min_by_key(|share| share.reaches).unwrap_or(Piece { rail: 0, len: 0, reaches: now })
    }

    /// Sends eager data: packets, which the core copies, or, of a message of several, leaves in place.
    pub(super) fn eager(&mut self, now: u64, from: usize, (len, carried): Load) -> Departure {
        let count = self.packets(len);
        let rail = self.idle_first(now, from, len);
        let packet = self.packet(rail, len.div_ceil(count), count);
        let begun = now.max(self.hosts[from].core_until);
        let copied = begun + count * (packet.copy_ns + packet.post_ns);
        self.hosts[from].core_until = copied;
        // A traced rail has the copy in its time.
        let first = if self.is_traced() { begun } else { begun + packet.copy_ns };
        let shares = match count {
            1 => vec![self.carry(first, from, (rail, len), self.busy_ns(rail, len))],
            _ => self.share(first, from, (len, carried)),
        };
        // Rails have nothing to carry while the core copies the next packet.
        let last = if self.is_traced() { packet.copy_ns + packet.post_ns } else { packet.post_ns };
        let slowest = copied - last + packet.wire_ns;
        // Of several rails each gets its next packet when it is idle by its clock.
        let ahead = match self.setting.rails.len() {
            1 => self.setting.swallows,
            _ => self.setting.swallows.min(self.setting.packet),
        };
        let mut sent = copied;
        let mut shares = shares;
        for share in shares.iter_mut().filter(|_| count > 1) {
            let start = start_ns(self.forecast(share.rail));
            share.reaches = share.reaches.max(slowest + start);
            let left = share.reaches - start;
            let until = &mut self.hosts[from].sends_until[share.rail];
            *until = (*until).max(left);
            sent = sent.max(left.saturating_sub(self.busy_ns(share.rail, ahead)));
        }
        Departure { pieces: self.cut(now, &shares, self.setting.packet), sent }
    }

    /// Sends the body of a message that has asked: rails take it from where it lies.
    pub(super) fn body(&mut self, now: u64, from: usize, (len, carried): Load) -> Departure {
        let begun = self.give_body(now, from, len) - self.core_ns(len);
        let mut shares = match &self.setting.rails[..] {
            [_] => vec![self.carry(now, from, (0, len), self.body_ns(0, len))],
            _ => self.share(now, from, (len, carried)),
        };
        // The core gives one rail after the other its share.
        let mut given = begun;
        for share in &mut shares {
            share.reaches = share.reaches.max(given + start_ns(self.forecast(share.rail)));
            given += self.core_ns(share.len);
        }
        let left = |share: &Piece| {
            let rail = self.forecast(share.rail);
            share.reaches.saturating_sub(start_ns(rail)).saturating_sub(rail.busy_ns(self.setting.swallows))
        };
        let sent = shares.iter().map(left).max().unwrap_or(now).max(self.hosts[from].core_until);
        Departure { pieces: self.cut(now, &shares, CHUNK), sent }
    }

    /// When the rail of the receiver has taken a share: it takes one thing after the other.
    pub(super) fn take(&mut self, now: u64, to: usize, rail: usize, len: u64) -> u64 {
        let wire_ns = self.busy_ns(rail, len);
        let until = &mut self.hosts[to].takes_until[rail];
        *until = now.max(*until + wire_ns);
        now.max(until.saturating_sub(self.burst_ns(rail)))
    }

    /// When the core of the receiver, which is in the library, has a piece in its place that has come by now.
    pub(super) fn place(&mut self, now: u64, to: usize, piece: Piece, read: Read) -> u64 {
        let (copy_ns, post_ns) = match self.setting.calls {
            CallTimes { read_ps, body_ps: 1.., .. } => {
                (piece.len * read_ps[usize::from(read.is_body)] / 1000, 0)
            }
            _ if read.is_body => (0, 0),
            _ => {
                let Packet { post_ns, copy_ns, .. } = self.packet(piece.rail, piece.len, 1);
                (copy_ns, post_ns)
            }
        };
        let is_traced = self.is_traced();
        let until = &mut self.hosts[to].core_until;
        // The time of a traced rail ends when the receiver has read it, if that was not away. What the first
        // of several takes besides its bytes is in the time of the wire.
        let alone = if is_traced && !read.is_late { now } else { now + copy_ns };
        *until = alone.max(*until + post_ns + copy_ns);
        *until
    }

    /// Until when the core of a host, which is in the library, has given a part of a body to the rails.
    fn give_body(&mut self, now: u64, host: usize, len: u64) -> u64 {
        let until = now.max(self.hosts[host].core_until) + self.core_ns(len);
        self.hosts[host].core_until = until;
        until
    }

    /// Whether times of rails and calls are those of a run.
    pub(super) fn is_traced(&self) -> bool {
        self.setting.calls.body_ps > 0
    }

    /// How long a core moves a part of a body.
    fn core_ns(&self, len: u64) -> u64 {
        len * self.setting.calls.body_ps / 1000
    }

    /// The shares of rails, cut into pieces of at most `longest` bytes, each with the time when it comes.
    /// Pieces in the burst of a rail come as soon as they can.
    fn cut(&self, now: u64, shares: &[Piece], longest: u64) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for Piece { rail, len, reaches } in shares.iter().copied() {
            let mut offset = 0;
            while offset < len || pieces.is_empty() {
                let piece = (len - offset).min(longest.max(1));
                offset += piece;
                let steadily = reaches.saturating_sub(self.busy_ns(rail, len - offset));
                let reaches = steadily.max(now + start_ns(self.forecast(rail)));
                pieces.push(Piece { rail, len: piece, reaches });
            }
        }
        pieces
    }

    /// Times of a packet. A trace gives those of the core: for its bytes, and beyond them, unless other
    /// packets of the message follow, in whose time it is taken.
    fn packet(&self, rail: usize, len: u64, count: u64) -> Packet {
        let packet = Packet::of(self.forecast(rail), len);
        let CallTimes { post_ns, body_ps, .. } = self.setting.calls;
        let copy_ns = len * body_ps / 1000;
        match body_ps {
            0 => packet,
            _ if count > 1 => Packet { post_ns: 0, copy_ns, ..packet },
            _ => Packet { post_ns: post_ns.saturating_sub(copy_ns), copy_ns, ..packet },
        }
    }

    fn packets(&self, len: u64) -> u64 {
        len.div_ceil(self.setting.packet.max(1)).max(1)
    }

    fn forecast(&self, rail: usize) -> &Forecast {
        &self.setting.rails[rail].forecast
    }

    fn busy_ns(&self, rail: usize, len: u64) -> u64 {
        self.forecast(rail).busy_ns(len)
    }

    /// Time of the wire of a rail for a body.
    fn body_ns(&self, rail: usize, len: u64) -> u64 {
        let forecast = self.forecast(rail);
        let measured_ns = forecast.body_ns(len).saturating_sub(start_ns(forecast));
        let busy_ns = forecast.busy_ns(len);
        // Short bodies were measured at the speed of the burst.
        if self.setting.rails[rail].burst > 0 { busy_ns } else { measured_ns.max(busy_ns) }
    }

    /// Time of a full burst at the steady rate.
    fn burst_ns(&self, rail: usize) -> u64 {
        self.busy_ns(rail, self.setting.rails[rail].burst)
    }

    /// When a rail has carried what it has.
    fn idle_from(&self, now: u64, from: usize, rail: usize) -> u64 {
        self.hosts[from].sends_until[rail].saturating_sub(self.burst_ns(rail)).max(now)
    }

    /// The rail that would have carried a packet first.
    fn idle_first(&self, now: u64, from: usize, len: u64) -> usize {
        let ends = |&rail: &usize| {
            let forecast = self.forecast(rail);
            self.idle_from(now, from, rail) + start_ns(forecast) + forecast.busy_ns(len)
        };
        (0..self.setting.rails.len()).min_by_key(ends).unwrap_or(0)
    }

    /// A rail carries something, for which its wire needs this time, after what it has.
    fn carry(&mut self, now: u64, from: usize, (rail, len): (usize, u64), wire_ns: u64) -> Piece {
        let until = &mut self.hosts[from].sends_until[rail];
        *until = now.max(*until) + wire_ns;
        Piece { rail, len, reaches: self.idle_from(now, from, rail) + start_ns(self.forecast(rail)) }
    }

    /// Rails share a message so that all finish together.
    fn share(&mut self, now: u64, from: usize, (len, carried): Load) -> Vec<Piece> {
        let rails: Vec<&Forecast> = self.setting.rails.iter().map(|rail| &rail.forecast).collect();
        if let Some(carried) = carried.filter(|_| rails.len() <= CARRIERS) {
            let loaded: Vec<usize> = (0..rails.len()).filter(|&rail| carried[rail] > 0).collect();
            let share = |rail: usize| {
                let wire_ns = self.body_ns(rail, carried[rail]);
                self.carry(now, from, (rail, carried[rail]), wire_ns)
            };
            return loaded.into_iter().map(share).collect();
        }
        let idle = |rail: usize| self.idle_from(now, from, rail);
        let carries = |rail: usize, end: u64| rails[rail].body_bytes(end.saturating_sub(idle(rail)));
        let alone = (0..rails.len()).map(|rail| idle(rail) + rails[rail].body_ns(len)).min().unwrap_or(now);
        let (mut below, mut above) = (now, alone);
        while above - below > 100 {
            let middle = below.midpoint(above);
            let sum: u64 = (0..rails.len()).map(|rail| carries(rail, middle)).sum();
            if sum >= len { above = middle } else { below = middle }
        }
        let mut left = len;
        let parts: Vec<(usize, u64)> = (0..rails.len())
            .map(|rail| {
                let part = carries(rail, above).min(left);
                left -= part;
                (rail, part)
            })
            .filter(|(_, part)| *part > 0)
            .collect();
        let share = |(rail, part): (usize, u64)| {
            let wire_ns = self.busy_ns(rail, part);
            let share = self.carry(now, from, (rail, part), wire_ns);
            Piece { reaches: share.reaches.max(above), ..share }
        };
        parts.into_iter().map(share).collect()
    }
}

/// What one packet takes.
struct Packet {
    /// Of the core on each side, besides its bytes.
    post_ns: u64,
    /// Of the core on each side, for its bytes.
    copy_ns: u64,
    /// Of the wire.
    wire_ns: u64,
}

impl Packet {
    /// Of `len` bytes. What an eager message was measured to take beyond a short one, and beyond the wire's
    /// part, is the copies on both sides.
    fn of(rail: &Forecast, len: u64) -> Packet {
        let wire_ns = rail.busy_ns(len);
        if !rail.is_measured() {
            return Packet { post_ns: 0, copy_ns: len / COPIED, wire_ns };
        }
        let copies_ns = rail.eager_ns(len).saturating_sub(start_ns(rail) + wire_ns);
        // A short message is posted and taken in its time; a second packet was perhaps measured badly.
        let post_ns = rail.packet_ns().min(start_ns(rail) / 2);
        Packet { post_ns, copy_ns: copies_ns / 2, wire_ns }
    }
}

/// Bytes that are copied in a nanosecond where nobody has measured it.
const COPIED: u64 = 4;

/// What a short frame takes from rank to rank.
fn start_ns(rail: &Forecast) -> u64 {
    rail.eager_ns(SHORT)
}
