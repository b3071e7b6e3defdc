//! Example of a driver, over two channels of the standard library, and two engines that communicate over
//! it.
//!
//! It implements all that a driver must provide: links that open and end, packets, chunks that arrive in
//! user memory, and reports of sent orders. `docs/driver.md` describes the interface.
//!
//! ```text
//! cargo run -p nmad-engine --example driver
//! ```

use nmad_engine::{
    Completion, Config, Context, Departure, Driver, Engine, Event, Hints, Instant, Key, Limits, Order,
    PeerId, PollScope, RegionId, Segments, Sent, Source, Tag, TagMatch, pump,
};
use std::collections::HashMap;
use std::mem::take;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Orders accepted before a poll has reported them.
const DEPTH: usize = 64;

/// A message from one end to the other.
enum Message {
    /// Opens the link; with the number of the sender's rail.
    Hello(u8),
    Packet(Vec<u8>),
    /// Number, acknowledgement, receive region, its key, offset, data.
    Chunk(u32, u32, RegionId, Key, u64, Vec<u8>),
    /// The sender closes the link.
    End,
}

/// One end of the only link of a rail.
pub struct ChannelRail {
    number: u8,
    peer: PeerId,
    out: Sender<Message>,
    incoming: Receiver<Message>,
    is_asked: bool,
    is_up: bool,
    regions: HashMap<RegionId, (Key, Segments)>,
    keys: u64,
    /// Events for the next poll: an engine receives events only there.
    news: Vec<Event<'static>>,
}

impl ChannelRail {
    /// The two ends of a link between ranks 0 and 1, on the rails of these numbers.
    pub fn pair(numbers: [u8; 2]) -> [ChannelRail; 2] {
        let ((to_1, from_0), (to_0, from_1)) = (channel(), channel());
        let end = |number, peer, out, incoming| ChannelRail {
            number,
            peer: PeerId(peer),
            out,
            incoming,
            is_asked: false,
            is_up: false,
            regions: HashMap::new(),
            keys: 0,
            news: Vec::new(),
        };
        [end(numbers[0], 1, to_1, from_1), end(numbers[1], 0, to_0, from_0)]
    }

    /// Sends the opening message once, whether the engine or the other side opens the link.
    fn ask(&mut self) {
        if !self.is_asked {
            self.is_asked = true;
            self.tell(Message::Hello(self.number));
        }
    }

    /// The next poll detects a peer that has ended.
    fn tell(&self, message: Message) {
        let _ = self.out.send(message);
    }

    fn lose(&mut self, why: &str) {
        (self.is_asked, self.is_up) = (false, false);
        self.regions.clear();
        let why = format!("rail {}: peer {} {why}", self.name(), self.peer.0);
        // Unsent orders would be returned here; an order posted to a channel is sent.
        self.news.push(Event::Lost { peer: self.peer, why, unsent: Vec::new() });
    }

    fn arrive(&mut self, message: Message, report: &mut dyn FnMut(Event<'_>)) {
        let peer = self.peer;
        match message {
            Message::Hello(remote) if !self.is_up => {
                self.ask();
                self.is_up = true;
                report(Event::Up { peer, remote });
            }
            Message::Packet(packet) if self.is_up => report(Event::Arrived { from: peer, packet: &packet }),
            Message::Chunk(number, ack, region, key, offset, data) if self.is_up => {
                let len = data.len() as u64;
                let fits = |into: &Segments| offset.checked_add(len).is_some_and(|end| end <= into.len());
                let open = self.regions.get(&region).filter(|(own, into)| *own == key && fits(into));
                let kept = open.map(|(_, into)| into.write(offset, &data)).is_some();
                report(Event::Landed { from: peer, number, ack, region, offset, len, kept });
            }
            Message::End if self.is_up => self.lose("gave the link up"),
            // Sent before the other side knew that the link had ended.
            _ => {}
        }
    }
}

impl Driver for ChannelRail {
    fn name(&self) -> &str {
        "channel"
    }
    fn limits(&self) -> Limits {
        let (packet, chunk) = (16 << 10, 1 << 30);
        Limits { packet, chunk, gather: 4, depth: DEPTH, ..Limits::default() }
    }
    fn open(&mut self, region: RegionId, _: PeerId, into: Segments) -> Key {
        // Each key is used once, so that late chunks never fall into a later receive region.
        self.keys += 1;
        self.regions.insert(region, (Key(self.keys), into));
        Key(self.keys)
    }
    fn close(&mut self, region: RegionId) {
        self.regions.remove(&region);
    }
    fn room(&self) -> usize {
        DEPTH.saturating_sub(self.news.len())
    }
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        // A rail whose limits offer no more gets only orders.
        let Departure::Order(order) = departure else { return Sent::Retry };
        match order {
            Order::Connect { .. } => self.ask(),
            Order::Close { .. } => {
                self.tell(Message::End);
                self.lose("was given up");
            }
            Order::Packet { to, number, packet } => {
                let mut bytes = Vec::with_capacity(packet.len());
                packet.parts(|part| bytes.extend_from_slice(part));
                self.tell(Message::Packet(bytes));
                self.news.push(Event::Sent { to, number, packet: Some(packet) });
            }
            Order::Chunk { to, number, ack, region, key, offset, from } => {
                let mut data = Vec::with_capacity(from.len() as usize);
                from.append_to(&mut data);
                self.tell(Message::Chunk(number, ack, region, key, offset, data));
                self.news.push(Event::Sent { to, number, packet: None });
            }
            // A rail whose limits allow no push gets none.
            Order::Accept { .. } => {}
        }
        Sent::Posted
    }
    fn poll(&mut self, _: PollScope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        loop {
            take(&mut self.news).into_iter().for_each(&mut *report);
            match self.incoming.try_recv() {
                Ok(message) => self.arrive(message, report),
                Err(TryRecvError::Disconnected) if self.is_up || self.is_asked => self.lose("has ended"),
                Err(_) if self.news.is_empty() => return true,
                Err(_) => {}
            }
        }
    }
}

/// A rank: an engine and its only rail.
struct Rank {
    engine: Engine,
    rails: Vec<Box<dyn Driver>>,
}

impl Rank {
    fn new(me: u32, rail: ChannelRail) -> Rank {
        let mut engine = Engine::new(Config { me: PeerId(me), ..Config::default() }).expect("it exists");
        let id = engine.setup().add_rail(rail.limits());
        engine.setup().add_link(rail.peer, id);
        Rank { engine, rails: vec![Box::new(rail)] }
    }

    /// Runs one pass of the pump; returns a completed request. Without costs and timers any time is valid.
    fn turn(&mut self) -> Option<Completion> {
        let now = Instant::default();
        pump::turn(&mut pump::Exclusive(&mut self.engine, &mut self.rails), now, &mut || now, true);
        self.engine.next_completion()
    }
}

fn main() {
    let [mut sender, mut receiver] = {
        let [left, right] = ChannelRail::pair([0, 0]);
        [Rank::new(0, left), Rank::new(1, right)]
    };
    for len in [5, 20_000, 10_000_000] {
        let (mut data, mut memory) = (vec![7u8; len], vec![0u8; len]);
        // SAFETY: both vectors outlive their requests, which have ended when the loop below ends, and
        // nothing else uses them meanwhile.
        let (data, into) = unsafe {
            (Segments::from_raw(data.as_mut_ptr(), len), Segments::from_raw(memory.as_mut_ptr(), len))
        };
        sender.engine.send(PeerId(1), Context(0), Tag(9), data, Hints::default());
        receiver.engine.recv(Source::Peer(PeerId(0)), Context(0), TagMatch::Exact(Tag(9)), into);
        let mut ended = 0;
        while ended < 2 {
            let both = [sender.turn(), receiver.turn()];
            ended += both.iter().flatten().inspect(|completion| assert!(completion.result.is_ok())).count();
        }
        assert!(memory.iter().all(|&byte| byte == 7), "the message is intact");
        println!(
            "{len:>9} B arrived; rank 0 sent so far: {:?}",
            sender.engine.inspect().counters(nmad_engine::RailId(0))
        );
    }
}
