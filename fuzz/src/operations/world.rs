//! The hosts and the operations on them.

use super::ledger::{Ledger, Piece, Receive};
use crate::net::memory::BufferId;
use crate::net::rail::Faults;
use crate::net::{Net, pattern};
use crate::runner::say;
use arbitrary::{Result, Unstructured};
use nmad_engine::{
    Config, Context, Feed, Hints, Limits, Method, PeerId, RailId, Segments, Source, Tag, TagMatch, Unpacking,
};

const STRATEGIES: [&str; 6] =
    ["fifo", "aggregate", "greedy", "aggregate_fastest", "iso_split", "ratio_split"];
const LENS: [usize; 16] =
    [0, 1, 8, 22, 23, 100, 900, 1_000, 4_095, 4_096, 5_000, 9_000, 16_000, 33_000, 70_000, 200_000];
/// Bytes of messages in one run at most.
const BYTES_MAX: usize = 4 << 20;

pub struct World {
    pub(super) net: Net,
    hosts: u32,
    rails: usize,
    pub(super) ledger: Ledger,
    /// Host, place of the first receive, next piece.
    pub(super) unpacking: Vec<(usize, usize, usize, Unpacking)>,
    bytes: usize,
    /// Contents made so far, so that each is different.
    contents: u64,
}

fn config(script: &mut Unstructured<'_>) -> Result<Config> {
    Ok(Config {
        strategy: (*script.choose(&STRATEGIES)?).into(),
        feed: feed(script)?,
        eager_max: Some(*script.choose(&[32 << 10, 0, 100, 5_000])?),
        in_place_min: Some(*script.choose(&[4 << 10, 0, 64, usize::MAX])?),
        credit: *script.choose(&[1 << 20, 0, 1 << 18])?,
        chunk: *script.choose(&[1 << 20, 1_000, 10_000, 64 << 10])?,
        ..Config::default()
    })
}

fn feed(script: &mut Unstructured<'_>) -> Result<Feed> {
    Ok(*script.choose(&[Feed::Accumulate, Feed::Prepare, Feed::Backlog(1_000), Feed::Backlog(0)])?)
}

fn limits(script: &mut Unstructured<'_>) -> Result<Limits> {
    let lossy = script.ratio(1, 3)?;
    Ok(Limits {
        packet: *script.choose(&[16 << 10, 1_400, 512, 64 << 10])?,
        chunk: *script.choose(&[1 << 20, 1_400, 50_000, 7_777])?,
        gather: *script.choose(&[8, 0, 1, 64])?,
        depth: *script.choose(&[4, 1, 2, 16])?,
        lossy,
        push: if lossy { 0 } else { u64::MAX },
        bandwidth: *script.choose(&[0, 1_000_000_000, 100_000_000, 10_000_000_000])?,
        latency_ns: *script.choose(&[0, 1_000, 2_000, 50_000])?,
        ..Limits::default()
    })
}

impl World {
    pub fn new(script: &mut Unstructured<'_>) -> Result<World> {
        let hosts = script.int_in_range(2..=3)?;
        let rails: Vec<Limits> =
            (0..script.int_in_range(1..=3)?).map(|_| limits(script)).collect::<Result<_>>()?;
        let config = config(script)?;
        let mut net = Net::new(hosts, &rails, &config, script.arbitrary()?);
        let faults = Faults {
            delay_ns: *script.choose(&[0, 1_000, 20_000, 300_000])?,
            drop: script.int_in_range(0..=24)?,
            repeat: script.int_in_range(0..=40)?,
        };
        net.set_faults(faults);
        say(format_args!("{hosts} hosts, {config:?}, {rails:#?}, {faults:?}"));
        let ledger = Ledger::default();
        Ok(World { net, hosts, rails: rails.len(), ledger, unpacking: Vec::new(), bytes: 0, contents: 0 })
    }

    /// A host and one of its peers.
    fn two(&self, script: &mut Unstructured<'_>) -> Result<(usize, u32)> {
        let at = script.int_in_range(0..=self.hosts - 1)?;
        let other = script.int_in_range(1..=self.hosts - 1)?;
        Ok((at as usize, (at + other) % self.hosts))
    }

    fn content(&mut self, script: &mut Unstructured<'_>) -> Result<Vec<u8>> {
        let len = *script.choose(&LENS)?;
        let len = if self.bytes + len > BYTES_MAX { len.min(8) } else { len };
        self.bytes += len;
        self.contents += 1;
        Ok(pattern(len, self.contents))
    }

    fn names(&self, script: &mut Unstructured<'_>) -> Result<(u32, u64)> {
        Ok((*script.choose(&[0, 0, 0, 5])?, *script.choose(&[1, 1, 2, u64::MAX])?))
    }

    fn hints(script: &mut Unstructured<'_>) -> Result<Hints> {
        let rail = *script.choose(&[None, None, None, Some(0), Some(1), Some(2), Some(9)])?;
        Ok(Hints {
            priority: *script.choose(&[0, 0, 0, 1, 3, -2, i8::MIN, i8::MAX])?,
            rail: rail.map(RailId),
            synchronous: script.ratio(1, 4)?,
            unordered: script.ratio(1, 6)?,
            probe: *script.choose(&[None, None, None, Some(Method::Copy), Some(Method::Rendezvous)])?,
            ..Hints::default()
        })
    }

    fn lend(&mut self, content: &[u8], script: &mut Unstructured<'_>) -> Result<(BufferId, Segments)> {
        let piece = *script.choose(&[0, 0, 1_000, 4_096])?;
        Ok(self.net.memory(|memory| memory.lend(content, piece)))
    }

    pub fn send(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        let ((at, to), (context, tag)) = (self.two(script)?, self.names(script)?);
        let (content, hints) = (self.content(script)?, Self::hints(script)?);
        let (buffer, segments) = self.lend(&content, script)?;
        let engine = &mut self.net.hosts[at].engine;
        let gone = engine.inspect().failure(PeerId(to)).is_some();
        let request = engine.send(PeerId(to), Context(context), Tag(tag), segments, hints);
        self.net.lend(at, request, buffer, true);
        say(format_args!(
            "{request:?}: {at} sends {} B to {to}, context {context}, tag {tag}, {hints:?}",
            content.len()
        ));
        if !gone {
            self.ledger.send((at as u32, to, context), tag, !hints.unordered, content);
        }
        Ok(())
    }

    pub fn recv(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        let ((at, from), (context, tag)) = (self.two(script)?, self.names(script)?);
        let source = if script.ratio(1, 4)? { Source::Any } else { Source::Peer(PeerId(from)) };
        let tag = if script.ratio(1, 5)? { TagMatch::Any } else { TagMatch::Exact(Tag(tag)) };
        let len = *script.choose(&LENS)?;
        self.post(at, source, context, tag, len);
        Ok(())
    }

    pub(super) fn post(&mut self, host: usize, source: Source, context: u32, tag: TagMatch, capacity: usize) {
        let (request, buffer) = self.net.recv(host, source, context, tag, capacity);
        say(format_args!(
            "{request:?}: {host} receives {capacity} B from {source:?}, context {context}, {tag:?}"
        ));
        self.ledger.receives.push(Receive { host, request, buffer, capacity, piece: None, checked: false });
    }

    pub fn probe(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        let ((at, from), (context, tag)) = (self.two(script)?, self.names(script)?);
        let source = if script.arbitrary()? { Source::Any } else { Source::Peer(PeerId(from)) };
        let tag = if script.arbitrary()? { TagMatch::Any } else { TagMatch::Exact(Tag(tag)) };
        let Some(envelope) = self.net.hosts[at].engine.probe(source, Context(context), tag) else {
            return Ok(());
        };
        assert!(source == Source::Any || source == Source::Peer(envelope.peer));
        let from = Source::Peer(envelope.peer);
        self.post(at, from, context, TagMatch::Exact(envelope.tag), envelope.len as usize);
        let posted = self.ledger.receives.last().expect("just posted");
        if envelope.len < 1_000
            && let Some(outcome) = self.net.result(at, posted.request)
        {
            assert_eq!(outcome, Ok(envelope), "a receive after a probe got another message");
        }
        Ok(())
    }

    pub fn cancel(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        if !self.ledger.receives.is_empty() {
            let index = script.choose_index(self.ledger.receives.len())?;
            let Receive { host, request, .. } = self.ledger.receives[index];
            let ended = self.net.result(host, request).is_some();
            let cancelled = self.net.cancel(host, request);
            say(format_args!("{host} cancels {request:?}: {cancelled}"));
            assert!(!(ended && cancelled), "a receive that had ended was cancelled");
        }
        Ok(())
    }

    pub fn pack(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        let ((at, to), (context, tag)) = (self.two(script)?, self.names(script)?);
        if self.net.hosts[at].engine.inspect().failure(PeerId(to)).is_some() {
            return Ok(());
        }
        let mut packing = nmad_engine::Packing::new(PeerId(to), Context(context), Tag(tag));
        let mut message = None;
        for _ in 0..script.int_in_range(1..=4)? {
            let (content, hints) = (self.content(script)?, Self::hints(script)?);
            let (buffer, segments) = self.lend(&content, script)?;
            let request = packing.pack(&mut self.net.hosts[at].engine, segments, hints);
            let len = content.len();
            say(format_args!(
                "{request:?}: {at} packs {len} B to {to}, context {context}, tag {tag}, {hints:?}"
            ));
            self.net.lend(at, request, buffer, true);
            match message {
                None => message = Some(self.ledger.send((at as u32, to, context), tag, true, content)),
                Some(message) => self.ledger.messages[message].pieces.push(content),
            }
        }
        Ok(())
    }

    /// Takes the next piece of a message that is being taken apart, ends that, or begins another one.
    pub fn unpack(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        if self.unpacking.is_empty() || script.ratio(1, 4)? {
            let ((at, from), (context, tag)) = (self.two(script)?, self.names(script)?);
            let source = if script.ratio(1, 3)? { Source::Any } else { Source::Peer(PeerId(from)) };
            let tag = TagMatch::Exact(Tag(tag));
            let engine = &mut self.net.hosts[at].engine;
            let unpacking = nmad_engine::Unpacking::new(engine, source, Context(context), tag);
            say(format_args!("{at} begins to unpack {source:?}, context {context}, {tag:?}"));
            self.unpacking.push((at, self.ledger.receives.len(), 0, unpacking));
        }
        let index = script.choose_index(self.unpacking.len())?;
        if script.ratio(1, 5)? {
            let (at, .., unpacking) = self.unpacking.swap_remove(index);
            say(format_args!("{at} ends an unpacking"));
            unpacking.end(&mut self.net.hosts[at].engine);
            return Ok(());
        }
        let capacity = *script.choose(&LENS)?;
        let (buffer, segments) = self.net.memory(|memory| memory.lend_blank(capacity, 0));
        let (host, first, number, unpacking) = &mut self.unpacking[index];
        if *number == 0 {
            *first = self.ledger.receives.len();
        }
        let piece = Some(Piece { first: *first, number: *number });
        *number += 1;
        let (host, request) = (*host, unpacking.unpack(&mut self.net.hosts[*host].engine, segments));
        self.net.lend(host, request, buffer, false);
        say(format_args!("{request:?}: {host} unpacks {capacity} B"));
        self.ledger.receives.push(Receive { host, request, buffer, capacity, piece, checked: false });
        Ok(())
    }

    pub fn turn(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        let (host, _) = self.two(script)?;
        let urgent = script.arbitrary()?;
        say(format_args!("{host} turns, urgent: {urgent}"));
        self.net.turn(host, urgent);
        self.net.now += 500;
        self.check_ended();
        Ok(())
    }

    pub fn wait(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        self.net.now += *script.choose(&[1_000, 10_000, 100_000, 1_000_000, 600_000_000])?;
        Ok(())
    }

    pub fn kill(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        let ((at, other), rail) = (self.two(script)?, script.choose_index(self.rails)?);
        if script.ratio(1, 2)? {
            say(format_args!("rail {rail} between {at} and {other} dies"));
            self.net.kill(rail, at as u32, other);
        }
        Ok(())
    }

    pub fn choose_strategy(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        let (host, peer) = self.two(script)?;
        let peer = script.arbitrary::<bool>()?.then_some(PeerId(peer));
        let name = *script.choose(&STRATEGIES)?;
        say(format_args!("{host} chooses {name} for {peer:?}"));
        self.net.hosts[host].engine.setup().set_strategy(peer, name).expect("a known name");
        Ok(())
    }

    pub fn choose_feed(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        let (host, _) = self.two(script)?;
        let feed = feed(script)?;
        say(format_args!("{host} chooses {feed:?}"));
        self.net.hosts[host].engine.setup().set_feed(feed);
        Ok(())
    }

    pub fn stall(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        let ((host, _), rail) = (self.two(script)?, script.choose_index(self.rails)?);
        let (stalled, tardy) = (script.arbitrary()?, script.arbitrary()?);
        say(format_args!("rail {rail} of {host}: stalled {stalled}, tardy {tardy}"));
        self.net.stall(rail, host as u32, stalled);
        let mut wires = self.net.wires();
        match tardy {
            true => wires.tardy.insert((rail, host as u32)),
            false => wires.tardy.remove(&(rail, host as u32)),
        };
        Ok(())
    }

    pub fn leave_or_settle(&mut self, script: &mut Unstructured<'_>) -> Result<()> {
        let (host, _) = self.two(script)?;
        match script.ratio(1, 3)? {
            true => {
                say(format_args!("{host} leaves"));
                self.net.hosts[host].engine.leave();
            }
            false => self.settle(),
        }
        Ok(())
    }
}
