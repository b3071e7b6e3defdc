//! Messages that are packed and unpacked piece by piece, as in Madeleine.

use crate::net::memory::BufferId;
use crate::net::rail::Faults;
use crate::net::{Net, from, limits, pattern};
use nmad_engine::{
    Config, Context, Hints, Limits, Packing, PeerId, RequestId, Source, Tag, TagMatch, Unpacking,
};

const ANY: (Source, TagMatch) = (Source::Any, TagMatch::Any);

fn pack(net: &mut Net, at: usize, packing: &mut Packing, data: &[u8]) -> RequestId {
    let (buffer, segments) = net.memory(|memory| memory.lend(data, 0));
    let request = packing.pack(&mut net.hosts[at].engine, segments, Hints::default());
    net.lend(at, request, buffer, true);
    request
}

fn begin(to: u32, tag: u64) -> Packing {
    Packing::new(PeerId(to), Context(3), Tag(tag))
}

fn unpack(net: &mut Net, at: usize, unpacking: &mut Unpacking, len: usize) -> (RequestId, BufferId) {
    let (buffer, segments) = net.memory(|memory| memory.lend_blank(len, 0));
    let request = unpacking.unpack(&mut net.hosts[at].engine, segments);
    net.lend(at, request, buffer, false);
    (request, buffer)
}

fn begin_unpacking(net: &mut Net, at: usize, (from, tag): (Source, TagMatch)) -> Unpacking {
    Unpacking::new(&mut net.hosts[at].engine, from, Context(3), tag)
}

/// Packs a whole message.
fn message(net: &mut Net, at: usize, to: u32, tag: u64, pieces: &[Vec<u8>]) {
    let mut packing = begin(to, tag);
    pieces.iter().for_each(|piece| {
        pack(net, at, &mut packing, piece);
    });
}

fn pieces(seed: u64) -> Vec<Vec<u8>> {
    [4, 0, 100_000, 8, 20_000].into_iter().map(|len| pattern(len, seed)).collect()
}

#[test]
fn pieces_arrive_whatever_is_posted_when() {
    for rails in 1..=3 {
        // This many pieces are unpacked before anything is sent.
        for early in 0..=5 {
            let mut net = Net::pair(rails, Config { strategy: "greedy".into(), ..Config::default() });
            let mut unpacking = begin_unpacking(&mut net, 1, ANY);
            let expected = pieces(9);
            let mut got: Vec<_> = Vec::new();
            for piece in &expected[..early] {
                got.push(unpack(&mut net, 1, &mut unpacking, piece.len()));
            }
            net.settle();
            message(&mut net, 0, 1, 5, &expected);
            net.settle();
            for piece in &expected[early..] {
                got.push(unpack(&mut net, 1, &mut unpacking, piece.len()));
            }
            unpacking.end(&mut net.hosts[1].engine);
            net.settle();
            for (recv, piece) in got.into_iter().zip(&expected) {
                assert!(net.got(1, recv, piece), "{rails} rails, {early} early, {} B", piece.len());
            }
            assert_eq!(net.pending(), 0);
        }
    }
}

#[test]
fn the_first_piece_decides_where_the_others_go() {
    let mut net = Net::pair(1, Config::default());
    // A remote call: the number of the service, the length of its argument, the argument.
    let argument = pattern(70_000, 1);
    let call = [vec![42], (argument.len() as u32).to_le_bytes().to_vec(), argument.clone()];
    message(&mut net, 0, 1, 1, &call);
    let mut unpacking = begin_unpacking(&mut net, 1, ANY);
    let service = unpack(&mut net, 1, &mut unpacking, 1);
    net.settle();
    assert!(net.got(1, service, &[42]));
    let len = unpack(&mut net, 1, &mut unpacking, 4);
    net.settle();
    let told = net.memory(|memory| u32::from_le_bytes(memory.content(len.1).try_into().unwrap()));
    let body = unpack(&mut net, 1, &mut unpacking, told as usize);
    unpacking.end(&mut net.hosts[1].engine);
    net.settle();
    assert!(net.got(1, body, &argument));
    let answer = net.recv(0, from(1), 3, TagMatch::Any, 10);
    net.send(1, 0, 3, 2, &[1; 10]);
    net.settle();
    assert!(net.got(0, answer, &[1; 10]));
}

#[test]
fn pieces_of_two_peers_do_not_mix_with_any_source() {
    for seed in 0..20 {
        let rails = [limits(), Limits { lossy: true, ..limits() }];
        let mut net = Net::new(3, &rails, &Config { strategy: "greedy".into(), ..Config::default() }, seed);
        net.set_faults(Faults { delay_ns: 100_000, drop: 20, repeat: 20 });
        let mut unpackings = [0, 1].map(|_| begin_unpacking(&mut net, 2, ANY));
        let mut got = [Vec::new(), Vec::new()];
        let mut packings = [0, 1].map(|_| begin(2, 7));
        // The pieces of both are received and sent in turns.
        for index in 0..5 {
            for which in [0, 1] {
                let len = pieces(0)[index].len();
                got[which].push(unpack(&mut net, 2, &mut unpackings[which], len));
                pack(&mut net, which, &mut packings[which], &pieces(which as u64 + 1)[index]);
                net.turn(2, true);
                net.now += 10_000;
            }
        }
        for unpacking in unpackings {
            unpacking.end(&mut net.hosts[2].engine);
        }
        net.settle();
        let mut origins = Vec::new();
        for list in got {
            let origin = net.result(2, list[0].0).unwrap().unwrap().peer;
            for (recv, piece) in list.into_iter().zip(pieces(u64::from(origin.0) + 1)) {
                assert!(net.got(2, recv, &piece), "seed {seed}");
            }
            origins.push(origin.0);
        }
        origins.sort_unstable();
        assert_eq!(origins, [0, 1]);
    }
}

#[test]
fn messages_of_one_flow_keep_their_order_and_their_pieces() {
    let mut net = Net::pair(2, Config { strategy: "greedy".into(), ..Config::default() });
    (0..4).for_each(|seed| message(&mut net, 0, 1, 1, &pieces(seed)));
    net.settle();
    for seed in 0..4 {
        let mut unpacking = begin_unpacking(&mut net, 1, ANY);
        let expected = pieces(seed);
        // All at once; the last pieces first would be invalid.
        let got: Vec<_> = expected.iter().map(|p| unpack(&mut net, 1, &mut unpacking, p.len())).collect();
        unpacking.end(&mut net.hosts[1].engine);
        net.settle();
        for (recv, piece) in got.into_iter().zip(&expected) {
            assert!(net.got(1, recv, piece), "message {seed}");
        }
    }
}

#[test]
fn pieces_of_interleaved_messages_do_not_mix() {
    let mut net = Net::pair(2, Config::default());
    let mut packings = [0, 1].map(|_| begin(1, 1));
    // The second message gets its other pieces before the first one does.
    for (message, piece) in [(0, 0), (1, 0), (1, 1), (1, 2), (0, 1), (0, 2)] {
        pack(&mut net, 0, &mut packings[message], &pieces(message as u64)[piece]);
        net.settle();
    }
    for message in 0..2 {
        let mut unpacking = begin_unpacking(&mut net, 1, ANY);
        for piece in &pieces(message)[..3] {
            let recv = unpack(&mut net, 1, &mut unpacking, piece.len());
            net.settle();
            assert!(net.got(1, recv, piece), "message {message}");
        }
        unpacking.end(&mut net.hosts[1].engine);
    }
}

#[test]
fn a_first_piece_is_an_ordinary_message_to_an_ordinary_receive() {
    let mut net = Net::pair(1, Config::default());
    message(&mut net, 0, 1, 1, &[vec![1; 10]]);
    let recv = net.recv(1, from(0), 3, TagMatch::Any, 10);
    net.send(0, 1, 3, 1, &[2; 10]);
    let mut unpacking = begin_unpacking(&mut net, 1, ANY);
    let piece = unpack(&mut net, 1, &mut unpacking, 10);
    unpacking.end(&mut net.hosts[1].engine);
    net.settle();
    assert!(net.got(1, recv, &[1; 10]) && net.got(1, piece, &[2; 10]));
}

#[test]
fn pieces_that_wait_fail_when_their_peer_dies() {
    for source in [Source::Any, from(0)] {
        let mut net = Net::pair(1, Config::default());
        let mut unpacking = begin_unpacking(&mut net, 1, (source, TagMatch::Any));
        let got: Vec<_> = (0..3).map(|_| unpack(&mut net, 1, &mut unpacking, 10)).collect();
        message(&mut net, 0, 1, 1, &[vec![1; 10]]);
        net.settle();
        assert!(net.got(1, got[0], &[1; 10]));
        net.kill(0, 0, 1);
        net.settle();
        for (request, _) in &got[1..] {
            assert!(matches!(net.result(1, *request), Some(Err(_))), "{source:?}");
        }
        unpacking.end(&mut net.hosts[1].engine);
        assert_eq!(net.pending(), 0);
    }
}
