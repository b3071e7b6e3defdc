//! Small blocks of a large message travel with its request to send, larger ones follow in place (P1
//! section 5.3).

use crate::net::memory::BufferId;
use crate::net::rail::Faults;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{
    Caller, Config, Context, Error, Event, Hints, Instant, Limits, PeerId, Protocol, RailId, Reads,
    RemoteAccess, RequestId, Sent, Source, Submitted, Tag, TagMatch, pump,
};
use nmad_wire::{Block, Blocks, Frame, Header, Kind, Rts, flags};

/// A small block and a large one, in turns.
const MIXED: [usize; 2] = [64, 20_000];
/// Three of each.
const LEN: usize = 3 * (64 + 20_000);
/// Bytes of the small ones.
const SMALL: u64 = 3 * 64;

fn net_of(rails: &[Limits], credit: u64) -> Net {
    Net::met(rails, Config { credit, ..Config::default() })
}

fn net(rails: usize) -> Net {
    net_of(&vec![limits(); rails], 1 << 20)
}

fn pushes() -> Limits {
    Limits { push: u64::MAX, ..limits() }
}

fn reads() -> Limits {
    Limits { remote: RemoteAccess::Copies, reads: Reads::From(1_000), inject: true, ..limits() }
}

/// Sends from host 0 in pieces of these lengths in turns.
fn send_in(net: &mut Net, tag: u64, data: &[u8], lens: &[usize]) -> RequestId {
    let (buffer, segments) = net.memory(|memory| memory.lend_in_turns(data, lens));
    let request = net.hosts[0].engine.send(PeerId(1), Context(0), Tag(tag), segments, Hints::default());
    net.lend(0, request, buffer, true);
    request
}

/// Receives at host 1 in pieces of these lengths in turns.
fn recv_in(net: &mut Net, source: Source, tag: u64, len: usize, lens: &[usize]) -> (RequestId, BufferId) {
    let (buffer, segments) = net.memory(|memory| memory.lend_in_turns(&vec![0xA5; len], lens));
    let request = net.hosts[1].engine.recv(source, Context(0), exact(tag), segments);
    net.lend(1, request, buffer, false);
    (request, buffer)
}

/// What host 0 has sent: the requests to send with blocks, and the bytes of chunks.
fn said(net: &mut Net) -> (Vec<String>, u64) {
    let mut chunks = 0;
    let mut requests = Vec::new();
    for (_, text) in net.said(0) {
        if let Some(len) = text.strip_prefix("chunk of ") {
            chunks += len.trim_end_matches(" B").parse::<u64>().expect("a number");
        } else if text.contains("rts") {
            requests.push(text);
        }
    }
    (requests, chunks)
}

fn traffic(net: &Net) -> (u64, u64) {
    let traffic = net.hosts[0].engine.inspect().traffic(PeerId(1)).expect("it is there");
    (traffic.blocks, traffic.blocks_bytes)
}

#[test]
fn small_blocks_travel_with_the_request_and_large_ones_follow() {
    for (rails, is_early, lens) in
        [(1, true, &[LEN][..]), (2, false, &[LEN]), (3, true, &[7, 100, 5_000]), (2, true, &MIXED)]
    {
        let mut net = net(rails);
        let data = pattern(LEN, 3);
        let early = is_early.then(|| recv_in(&mut net, from(0), 5, LEN, lens));
        let send = send_in(&mut net, 5, &data, &MIXED);
        net.settle();
        let posted = early.unwrap_or_else(|| recv_in(&mut net, from(0), 5, LEN, lens));
        net.settle();
        assert!(net.got(1, posted, &data), "{rails} rails, early {is_early}");
        assert!(matches!(net.result(0, send), Some(Ok(envelope)) if envelope.len == LEN as u64));
        let (requests, chunks) = said(&mut net);
        assert_eq!(requests.len(), 1);
        assert!(
            requests[0].contains("rts 60192 B") && requests[0].contains("with 3 blocks of 192 B"),
            "{requests:?}"
        );
        assert_eq!(chunks, LEN as u64 - SMALL);
        assert_eq!(traffic(&net), (3, SMALL));
        assert_eq!(net.pending(), 0);
        net.memory(|memory| memory.check());
    }
}

#[test]
fn small_blocks_beside_each_other_have_one_place() {
    let mut net = net(1);
    let data = pattern(LEN, 4);
    let posted = recv_in(&mut net, Source::Any, 5, LEN, &[LEN]);
    send_in(&mut net, 5, &data, &[8, 24, 32, 20_000]);
    net.settle();
    assert!(net.got(1, posted, &data));
    let (requests, chunks) = said(&mut net);
    assert!(requests[0].contains("with 3 blocks of 192 B"), "{requests:?}");
    assert_eq!(chunks, LEN as u64 - SMALL);
}

#[test]
fn a_message_of_blocks_of_one_kind_goes_whole() {
    for lens in [&[LEN][..], &[20_064], &[10_000, 20_000, 30_192], &[64], &[64, 65, 66]] {
        let mut net = net(1);
        let data = pattern(LEN, 5);
        let posted = recv_in(&mut net, from(0), 5, LEN, &[LEN]);
        send_in(&mut net, 5, &data, lens);
        net.settle();
        assert!(net.got(1, posted, &data), "{lens:?}");
        let (requests, chunks) = said(&mut net);
        assert!(requests.iter().all(|text| !text.contains("blocks")), "{lens:?}: {requests:?}");
        assert_eq!((chunks, traffic(&net)), (LEN as u64, (0, 0)));
    }
}

#[test]
fn as_many_blocks_travel_as_the_packet_and_their_number_allow() {
    // One more large block than small ones fit, and then a packet that is full.
    for (lens, blocks, bytes) in [(&[8, 2_000][..], 64, 64 * 8), (&[1_000, 2_000], 15, 15_000)] {
        let mut net = net(1);
        let len = 100 * (lens[0] + lens[1]);
        let data = pattern(len, 6);
        let posted = recv_in(&mut net, from(0), 5, len, &[len]);
        send_in(&mut net, 5, &data, lens);
        net.settle();
        assert!(net.got(1, posted, &data), "{lens:?}");
        assert_eq!(traffic(&net), (blocks, bytes));
        let (_, chunks) = said(&mut net);
        assert_eq!(chunks, len as u64 - bytes);
    }
}

#[test]
fn a_receive_that_is_too_short_gets_the_beginning() {
    let around = [0, 1, 63, 64, 65, 20_063, 20_064, 20_065, 20_127, 20_128, 40_128, LEN - 20_000, LEN - 1];
    let rails = [vec![limits()], vec![limits(); 2], vec![pushes()], vec![reads()]];
    for (capacity, rails) in around.into_iter().flat_map(|capacity| rails.iter().map(move |r| (capacity, r)))
    {
        for is_early in [true, false] {
            let mut net = net_of(rails, 1 << 20);
            let data = pattern(LEN, 7);
            let early = is_early.then(|| recv_in(&mut net, from(0), 5, capacity, &[300]));
            let send = send_in(&mut net, 5, &data, &MIXED);
            net.settle();
            let (request, buffer) = early.unwrap_or_else(|| recv_in(&mut net, from(0), 5, capacity, &[300]));
            net.settle();
            let result = net.result(1, request);
            let is_cut = matches!(result, Some(Err(Error::Truncated { envelope, capacity: c }))
                if c == capacity as u64 && envelope.len == LEN as u64);
            assert!(is_cut, "{capacity} B: {result:?}");
            assert!(net.memory(|memory| memory.holds(buffer, &data[..capacity])), "{capacity} B");
            assert!(matches!(net.result(0, send), Some(Ok(_))), "{capacity} B");
            assert_eq!(net.pending(), 0);
            net.memory(|memory| memory.check());
        }
    }
}

#[test]
fn a_receive_that_is_too_long_keeps_its_end() {
    for rails in [vec![limits()], vec![pushes()], vec![reads()]] {
        let mut net = net_of(&rails, 1 << 20);
        let data = pattern(LEN, 8);
        let posted = recv_in(&mut net, Source::Any, 5, LEN + 5_000, &[64, 300]);
        send_in(&mut net, 5, &data, &MIXED);
        net.settle();
        assert!(net.got(1, posted, &data));
    }
}

#[test]
fn the_rest_is_pushed_on_a_single_reliable_rail() {
    for is_early in [true, false] {
        let mut net = net_of(&[pushes()], 1 << 20);
        let data = pattern(LEN, 9);
        let early = is_early.then(|| recv_in(&mut net, from(0), 5, LEN, &MIXED));
        let send = send_in(&mut net, 5, &data, &MIXED);
        net.settle();
        assert!(matches!(net.result(0, send), Some(Ok(_))), "nothing is waited for");
        let posted = early.unwrap_or_else(|| recv_in(&mut net, from(0), 5, LEN, &MIXED));
        net.settle();
        assert!(net.got(1, posted, &data), "early {is_early}");
        let (requests, chunks) = said(&mut net);
        assert!(requests[0].contains("with 3 blocks of 192 B of which 60000 B are pushed"), "{requests:?}");
        assert_eq!(chunks, LEN as u64 - SMALL);
        assert!(net.wires().own.is_empty(), "the engine's own memory is given back");
    }
}

#[test]
fn a_message_that_would_be_pushed_at_once_goes_by_the_window() {
    let mut net = net_of(&[pushes()], 1 << 20);
    let data = pattern(LEN, 10);
    let posted = recv_in(&mut net, from(0), 5, LEN, &[LEN]);
    net.wires().at_once = [Sent::Done].into();
    let (buffer, segments) = net.memory(|memory| memory.lend_in_turns(&data, &MIXED));
    let (now, to) = (Instant::from_ns(net.now), (PeerId(1), Context(0), Tag(5)));
    let host = &mut net.hosts[0];
    let node = &mut pump::Exclusive(&mut host.engine, &mut host.rails);
    let sent = pump::send_at_once(node, &to, (&segments, Hints::default()), Caller::Waits, &mut || now);
    let refused = sent.expect_err("its blocks are copied into a packet").expect("it was planned");
    let request = net.hosts[0].engine.send_as(to, segments, Hints::default(), Some(refused));
    net.lend(0, request, buffer, true);
    net.settle();
    assert!(net.got(1, posted, &data));
    assert_eq!(traffic(&net), (3, SMALL));
    // One piece leaves at once, as ever.
    let sent = net.send_at_once(0, (1, 0, 6), &data, Hints::default(), Caller::Waits);
    assert!(matches!(sent, Ok(Submitted::Ended(_))), "the rail has not been asked before: {sent:?}");
}

#[test]
fn the_rest_is_read_if_it_is_one_block() {
    for (refuses, is_early) in [(false, true), (false, false), (true, true), (true, false)] {
        let mut net = net_of(&[reads()], 1 << 20);
        net.wires().refuses_copies = refuses;
        let data = pattern(64 + 100_000, 11);
        let early = is_early.then(|| recv_in(&mut net, from(0), 5, data.len(), &[500]));
        let send = send_in(&mut net, 5, &data, &[64, 100_000]);
        net.settle();
        assert_eq!(net.result(0, send).is_some(), is_early, "its memory is in use until it was read");
        let posted = early.unwrap_or_else(|| recv_in(&mut net, from(0), 5, data.len(), &[500]));
        net.settle();
        assert!(net.got(1, posted, &data), "refuses {refuses}, early {is_early}");
        assert!(matches!(net.result(0, send), Some(Ok(_))));
        let (requests, chunks) = said(&mut net);
        assert!(requests[0].contains("with 1 blocks of 64 B to be read"), "{requests:?}");
        assert_eq!(chunks, if refuses { 100_000 } else { 0 });
        assert_eq!(net.pending(), 0);
    }
}

#[test]
fn a_matched_probe_finds_the_whole_message() {
    for rails in [vec![limits(); 2], vec![pushes()], vec![reads()]] {
        let mut net = net_of(&rails, 1 << 20);
        let data = pattern(LEN, 12);
        send_in(&mut net, 5, &data, &MIXED);
        net.settle();
        let claim = net.hosts[1].engine.claim(Source::Any, Context(0), TagMatch::Any).expect("it is there");
        assert_eq!(claim.envelope.len, LEN as u64);
        let (buffer, into) = net.memory(|memory| memory.lend_blank(LEN, 1_000));
        let request = net.hosts[1].engine.recv_claimed(claim, into);
        net.lend(1, request, buffer, false);
        net.settle();
        assert!(net.got(1, (request, buffer), &data));
    }
}

#[test]
fn an_invitation_for_the_whole_message_is_not_used_for_the_rest() {
    let mut net = net(2);
    // Once a flow has had a large message, posted receives invite the next one.
    for round in 0..4 {
        let data = pattern(LEN, round);
        let is_early = round % 2 == 1;
        let early = is_early.then(|| recv_in(&mut net, from(0), 5, LEN, &MIXED));
        if round == 3 {
            net.settle();
        }
        let send = send_in(&mut net, 5, &data, &MIXED);
        net.settle();
        let posted = early.unwrap_or_else(|| recv_in(&mut net, from(0), 5, LEN, &MIXED));
        net.settle();
        assert!(net.got(1, posted, &data) && net.result(0, send).is_some(), "round {round}");
        let (requests, chunks) = said(&mut net);
        let is_invited = requests[0].contains("to open region");
        assert_ne!(is_invited, requests[0].contains("blocks"), "round {round}: {requests:?}");
        assert!(round != 3 || is_invited, "{requests:?}");
        assert_eq!(chunks, LEN as u64 - if is_invited { 0 } else { SMALL });
    }
    assert_eq!(net.pending(), 0);
}

#[test]
fn a_link_that_dies_after_the_request_loses_nothing() {
    for (after, is_early) in (0..6).flat_map(|after| [(after, true), (after, false)]) {
        for rail in 0..2 {
            let mut net = net(2);
            let data = pattern(LEN, 13);
            let early = is_early.then(|| recv_in(&mut net, from(0), 5, LEN, &[LEN]));
            let send = send_in(&mut net, 5, &data, &MIXED);
            // The request, its answer and the chunks leave in the next few turns.
            for _ in 0..after {
                net.turn(0, true);
                net.now += 300;
                net.turn(1, true);
            }
            net.kill(rail, 0, 1);
            net.settle();
            let posted = early.unwrap_or_else(|| recv_in(&mut net, from(0), 5, LEN, &[LEN]));
            net.settle();
            assert!(net.got(1, posted, &data), "rail {rail} after {after} turns, early {is_early}");
            assert!(matches!(net.result(0, send), Some(Ok(_))));
            assert_eq!(net.pending(), 0);
            net.memory(|memory| memory.check());
        }
    }
}

#[test]
fn messages_arrive_once_and_in_order_over_rails_that_lose_repeat_and_overtake() {
    for seed in 1..30 {
        let lossy = Limits { lossy: true, packet: 1_400, chunk: 4_000, ..limits() };
        let rails = if seed % 2 == 0 { vec![lossy; 2] } else { vec![lossy, limits()] };
        let mut net = Net::new(2, &rails, &Config::default(), seed);
        net.set_faults(Faults { delay_ns: 30_000, drop: 30, repeat: 40 });
        let lens: [&[usize]; 3] = [&MIXED, &[20_000, 8, 8], &[300, 70_000]];
        let mut posted = Vec::new();
        for number in 0..6u64 {
            let data = pattern(LEN, seed * 10 + number);
            if number >= 3 {
                posted.push((recv_in(&mut net, Source::Any, 5, LEN, &[777]), data.clone()));
            }
        }
        for number in 0..6u64 {
            let data = pattern(LEN, seed * 10 + (number + 3) % 6);
            send_in(&mut net, 5, &data, lens[number as usize % 3]);
        }
        net.settle();
        for number in 0..3u64 {
            let data = pattern(LEN, seed * 10 + number);
            posted.push((recv_in(&mut net, from(0), 5, LEN, &MIXED), data));
        }
        net.settle();
        for (number, (posted, data)) in posted.into_iter().enumerate() {
            assert!(net.got(1, posted, &data), "message {number}, seed {seed}");
        }
        assert_eq!(net.pending(), 0);
        net.memory(|memory| memory.check());
    }
}

#[test]
fn a_cancelled_send_keeps_its_data_once_its_blocks_have_left() {
    let mut net = net(1);
    let data = pattern(LEN, 14);
    let send = send_in(&mut net, 5, &data, &MIXED);
    net.cancel(0, send);
    assert!(net.result(0, send).is_none(), "its request to send is in the window");
    net.settle();
    assert!(matches!(net.result(0, send), Some(Ok(_))));
    let posted = recv_in(&mut net, from(0), 5, LEN, &[LEN]);
    net.settle();
    assert!(net.got(1, posted, &data));
    assert_eq!(traffic(&net), (3, SMALL));
}

#[test]
fn a_peer_that_leaves_lets_whole_messages_be_received_and_drops_the_others() {
    for rails in [vec![pushes()], vec![limits()]] {
        let is_whole = rails[0].push > 0;
        let mut net = net_of(&rails, 1 << 20);
        let data = pattern(LEN, 15);
        send_in(&mut net, 5, &data, &MIXED);
        net.settle();
        net.kill(0, 0, 1);
        net.settle();
        let posted = recv_in(&mut net, from(0), 5, LEN, &[LEN]);
        net.settle();
        assert_eq!(net.got(1, posted, &data), is_whole);
        assert!(is_whole || net.result(1, posted.0) == Some(Err(Error::PeerLost(PeerId(0)))));
    }
}

#[test]
fn without_credit_a_message_goes_whole() {
    let mut net = net_of(&[limits()], 0);
    for number in 0..16 {
        send_in(&mut net, number, &pattern(16_000, number), &[16_000]);
    }
    net.settle();
    let data = pattern(LEN, 16);
    let before = traffic(&net);
    send_in(&mut net, 99, &data, &[1_000, 9_000]);
    net.settle();
    let blocks = traffic(&net).1 - before.1;
    assert!(blocks < 6_000, "{blocks} B although messages fill the receiver's memory");
    for number in 0..16 {
        let posted = recv_in(&mut net, from(0), number, 16_000, &[16_000]);
        net.settle();
        assert!(net.got(1, posted, &pattern(16_000, number)));
    }
    let posted = recv_in(&mut net, from(0), 99, LEN, &[LEN]);
    net.settle();
    assert!(net.got(1, posted, &data));
    // Blocks that were received are credit again.
    for round in 0..1_000 {
        let data = pattern(LEN, round);
        send_in(&mut net, 7, &data, &MIXED);
        net.settle();
        let posted = recv_in(&mut net, from(0), 7, LEN, &[LEN]);
        net.settle();
        assert!(net.got(1, posted, &data));
    }
    let (blocks, _) = traffic(&net);
    assert!(blocks >= 3 * 1_000, "{blocks}");
}

#[test]
fn blocks_that_break_the_rules_close_their_peer() {
    let request = |seq, name, len: u32| {
        let flags = flags::BLOCKS;
        let rts = Rts {
            flags,
            context: 0,
            tag: 9,
            seq,
            len: 1 << 30,
            request: name,
            region: 0,
            pushed: 0,
            address: 0,
        };
        let mut bytes = vec![0; Header::LEN];
        rts.encode(&mut bytes);
        Blocks::encode_places(&[Block { offset: 10, len }], &mut bytes);
        bytes.extend(vec![7; len as usize]);
        bytes
    };
    let closes = |packets: &[Vec<u8>]| {
        let mut net = net(1);
        let now = Instant::from_ns(net.now);
        for (number, packet) in packets.iter().enumerate() {
            let mut packet = packet.clone();
            let header =
                Header { kind: Kind::Packet, len: packet.len() as u32, number: 1 + number as u32, ack: 0 };
            packet[..Header::LEN].copy_from_slice(&header.encode());
            net.hosts[1].engine.handle(now, RailId(0), Event::Arrived { from: PeerId(0), packet: &packet });
        }
        net.turn(1, true);
        net.hosts[1].notices.iter().any(|notice| notice.peer == PeerId(0))
    };
    assert!(!closes(&[request(0, 5, 64), request(1, 6, 64)]));
    assert!(closes(&[request(0, 5, 64), request(1, 5, 64)]), "two messages under one request");
    assert!(closes(&[request(0, 5, 2 << 20)]), "more than the credit");
    assert!(closes(&[request(0, 5, 0)]), "an empty block");
    let fin = Frame::Fin(nmad_wire::Fin { request: 77, prompt: false }).to_vec();
    assert!(!closes(&[[vec![0; Header::LEN], fin].concat()]), "an unknown request is nobody's");
}

#[test]
fn receipts_say_what_traveled_with_the_request() {
    for (rails, protocol) in [
        (vec![limits(); 2], Protocol::Rendezvous),
        (vec![pushes()], Protocol::Push),
        (vec![reads()], Protocol::Read),
    ] {
        let mut net = net_of(&rails, 1 << 20);
        net.hosts[0].engine.setup().record_receipts(Some(1_000));
        let data = pattern(64 + 100_000, 17);
        send_in(&mut net, 5, &data, &[64, 100_000]);
        net.settle();
        let posted = recv_in(&mut net, from(0), 5, data.len(), &[data.len()]);
        net.settle();
        assert!(net.got(1, posted, &data));
        let receipt = net.hosts[0].engine.next_receipt().expect("it is over");
        assert_eq!((receipt.protocol, receipt.envelope.len), (protocol, data.len() as u64));
        assert_eq!((receipt.blocks, receipt.blocks_bytes), (1, 64), "{protocol:?}");
        let chunks: u64 = receipt.carried.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(chunks, if protocol == Protocol::Read { 0 } else { 100_000 });
    }
}
