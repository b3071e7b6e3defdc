//! The I/O bus of a host: the transfers of all its rails share it (P2 section 3.2).
//!
//! Where machines have a bus, an interface sends one order after the other, and the buses of both hosts bound
//! the sum of all that their interfaces send and receive at the same time. Rates are max-min fair: a transfer
//! can gain only if one with a lower rate loses.

use super::{Happening, Network};

/// One transfer between two hosts, while its bytes move.
#[derive(Debug)]
struct Stream {
    flight: u64,
    fabric: usize,
    from: usize,
    to: usize,
    /// Bytes that have not moved.
    left: f64,
    /// Bytes per nanosecond of the wire, and of what the buses grant it now.
    wire: f64,
    rate: f64,
    /// When it will be over if nothing changes.
    ends: u64,
}

/// All transfers that move now.
#[derive(Debug, Default)]
pub(super) struct Buses {
    streams: Vec<Stream>,
    /// Until when their bytes are counted.
    counted: u64,
}

impl Network {
    /// A flight joins the queue of its port; its first byte is there at `ready`.
    pub(super) fn queue(&mut self, fabric: usize, host: usize, flight: u64, ready: u64) {
        let port = self.port(fabric, host);
        port.queue.push_back((flight, ready));
        if port.queue.len() == 1 {
            let at = ready.max(port.tx_free);
            self.agenda.enter(at, Happening::Begin(fabric, host));
        }
    }

    /// A port begins with the first of its queue.
    pub fn begin(&mut self, now: u64, fabric: usize, host: usize) {
        let Some(&(flight, _)) = self.port(fabric, host).queue.front() else { return };
        let Some(order) = self.flights.get(&flight) else { return self.next_in_queue(now, fabric, host) };
        let (to, len) = (order.key.peer, order.len());
        let wire_ns = self.fabrics[fabric].model.wire_ns(len).max(1);
        self.count(now);
        let (left, wire) = (len as f64, len as f64 / wire_ns as f64);
        self.buses.streams.push(Stream { flight, fabric, from: host, to, left, wire, rate: 0.0, ends: 0 });
        self.share(now);
    }

    /// A transfer should be over; it is not if it was slowed down meanwhile.
    pub fn drained(&mut self, now: u64, flight: u64) {
        let is_over = |stream: &Stream| stream.flight == flight && stream.ends == now;
        let Some(index) = self.buses.streams.iter().position(is_over) else { return };
        self.count(now);
        let Stream { fabric, from, .. } = self.buses.streams.remove(index);
        self.share(now);
        if let Some(flight) = self.flights.get_mut(&flight) {
            flight.end = now;
        }
        self.next_in_queue(now, fabric, from);
        self.depart(now, flight);
    }

    fn next_in_queue(&mut self, now: u64, fabric: usize, host: usize) {
        let gap_ns = self.fabrics[fabric].model.gap_ns();
        let port = self.port(fabric, host);
        port.queue.pop_front();
        port.tx_free = now + gap_ns;
        if let Some(&(_, ready)) = port.queue.front() {
            let at = ready.max(port.tx_free);
            self.agenda.enter(at, Happening::Begin(fabric, host));
        }
    }

    /// Counts what has moved until now.
    fn count(&mut self, now: u64) {
        let past = (now - self.buses.counted) as f64;
        self.buses.counted = now;
        self.buses.streams.iter_mut().for_each(|stream| stream.left -= stream.rate * past);
    }

    /// Shares the buses among the transfers, and enters when each will be over.
    fn share(&mut self, now: u64) {
        let bus = self.machine.bus.map_or(f64::INFINITY, |bus| bus as f64 / 1e9);
        let routes: Vec<Route> =
            self.buses.streams.iter().map(|s| Route { from: s.from, to: s.to, wire: s.wire }).collect();
        for (stream, rate) in self.buses.streams.iter_mut().zip(fair(&routes, bus)) {
            stream.rate = rate;
            let ends = now + (stream.left / rate).ceil().max(0.0) as u64;
            if ends != stream.ends {
                stream.ends = ends;
                self.agenda.enter(ends, Happening::Drained(stream.flight));
            }
        }
    }
}

/// Which buses a transfer crosses, and how fast it could be without them.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The host whose bus the bytes leave over.
    pub from: usize,
    /// The host whose bus they arrive over.
    pub to: usize,
    /// Bytes per nanosecond of the wire.
    pub wire: f64,
}

/// Max-min fair rates: again and again, the transfer that is limited most gets its limit, and the others
/// share what it leaves.
pub fn fair(routes: &[Route], bus: f64) -> Vec<f64> {
    let mut rates: Vec<Option<f64>> = vec![None; routes.len()];
    let share = |rates: &[Option<f64>], crosses: &dyn Fn(&Route) -> bool| {
        let crossing = || routes.iter().zip(rates).filter(|(route, _)| crosses(route));
        let taken: f64 = crossing().filter_map(|(_, rate)| *rate).sum();
        let open = crossing().filter(|(_, rate)| rate.is_none()).count();
        (bus - taken) / open as f64
    };
    for _ in routes {
        let limit = |route: &Route| {
            let out = share(&rates, &|other| other.from == route.from);
            route.wire.min(out).min(share(&rates, &|other| other.to == route.to))
        };
        let open = routes.iter().enumerate().filter(|&(index, _)| rates[index].is_none());
        let Some((index, rate)) =
            open.map(|(index, route)| (index, limit(route))).min_by(|a, b| a.1.total_cmp(&b.1))
        else {
            break;
        };
        rates[index] = Some(rate);
    }
    rates.into_iter().map(|rate| rate.unwrap_or(0.0)).collect()
}
