//! The first files of the corpora, which are committed; `--write-seeds` writes them.

use crate::rng::Rng;
use nmad_wire::{
    Ack, Ask, Block, Blocks, ChunkHeader, Cipher, Control, Credit, Cts, Eager, Fin, Frame, Header, Hello,
    Keys, Kind, LinkDown, Offer, Part, Proof, Reclaim, Refusal, RefusalCode, Replay, Rtr, Rts, Seen, Welcome,
    Withdraw, Withdrawn, flags,
};

const HELLO: Hello = Hello { from: 1, to: 0, rail: 0, nonce: [1; 32], offer: None, mac: [2; 32] };
const WELCOME: Welcome = Welcome { rail: 0, nonce: [2; 32], offer: None, mac: [3; 32] };
const OFFER: Option<Offer> = Some(Offer { cipher: Cipher::Aes256Gcm, key: [5; 32] });
const SEEN: Seen = Seen { rail: 0, question: 1, below: 1, beyond: 4, moved: 2 };

/// The first name that a table gives.
const NAME: u64 = 1 << 32;

fn packet(kind: Kind, frames: &[Frame<'_>]) -> Vec<u8> {
    let mut bytes = vec![0; Header::LEN];
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    let header = Header { kind, len: bytes.len() as u32, number: 4, ack: 0 };
    bytes[..Header::LEN].copy_from_slice(&header.encode());
    bytes
}

fn eager(seq: u32, flags: u8) -> Eager {
    Eager { flags, context: 1, tag: 10, seq, len: 8, request: NAME }
}

fn rts(seq: u32, flags: u8, len: u64) -> Rts {
    let (region, pushed) = (NAME, len.min(1));
    Rts { flags, context: 1, tag: 11, seq, len, request: NAME | 2, region, pushed, address: 0 }
}

/// A packet with a request to send and the blocks at these places of its message.
fn rts_with_blocks(bits: u8, places: &[(u64, u32)]) -> Vec<u8> {
    let blocks: Vec<Block> = places.iter().map(|&(offset, len)| Block { offset, len }).collect();
    let mut encoded = Vec::new();
    Blocks::encode_places(&blocks, &mut encoded);
    let data = vec![7; blocks.iter().map(|block| block.len as usize).sum()];
    let blocks = Blocks::new(&encoded[Blocks::COUNT_LEN..], &data);
    packet(Kind::Packet, &[Frame::Rts(rts(2, bits | flags::BLOCKS, 50_000), blocks)])
}

fn keys(rails: u8) -> Keys {
    let mut keys = Keys::default();
    (0..rails).for_each(|rail| keys.push(rail, u64::from(rail) + 1));
    keys
}

/// One file for each kind of frame and packet, and some that are meant to hurt.
pub fn packets() -> Vec<(String, Vec<u8>)> {
    let mut files = good_packets();
    files.extend(bad_packets());
    files.into_iter().map(|(name, bytes)| (name.to_string(), bytes)).collect()
}

fn good_packets() -> Vec<(&'static str, Vec<u8>)> {
    let rtr = Rtr { context: 3, tag: 30, seq: 1, region: NAME | 1, len: 50_000, keys: keys(2) };
    let cts = Cts { request: NAME | 1, region: NAME, len: 50_000, keys: keys(2), prompt: true };
    let one = |frame: Frame<'_>| packet(Kind::Packet, &[frame]);
    let chunk = ChunkHeader { number: 4, ack: 0, region: NAME | 1, key: 1, offset: 0, len: 100 };
    let mut chunk = chunk.encode().to_vec();
    chunk.resize(ChunkHeader::LEN + 100, 7);
    vec![
        ("eager", one(Frame::Eager(eager(2, 0), &[7; 8]))),
        ("eager-synchronous", one(Frame::Eager(eager(2, flags::FIN), &[7; 8]))),
        ("eager-unordered", one(Frame::Eager(eager(0, flags::UNORDERED), &[7; 8]))),
        ("rts", one(Frame::Rts(rts(2, flags::FIN, 50_000), Blocks::NONE))),
        ("rts-invited", one(Frame::Rts(rts(2, flags::INVITED, 50_000), Blocks::NONE))),
        ("rts-parts", one(Frame::Rts(rts(2, flags::PARTS, 300), Blocks::NONE))),
        ("rts-read", one(Frame::Rts(rts(2, flags::READ | flags::FIN, 50_000), Blocks::NONE))),
        ("rts-blocks", rts_with_blocks(0, &[(0, 64), (4_160, 64)])),
        ("rts-blocks-pushed", rts_with_blocks(flags::PUSHED, &[(0, 64), (64, 1), (49_990, 10)])),
        ("rts-blocks-read", rts_with_blocks(flags::READ | flags::FIN, &[(100, 10)])),
        ("part", one(Frame::Part(Part { request: NAME, offset: 200, total: 300, len: 100 }, &[7; 100]))),
        ("cts", one(Frame::Cts(cts))),
        ("rtr", one(Frame::Rtr(rtr))),
        ("fin", one(Frame::Fin(Fin { request: NAME | 1, prompt: true }))),
        ("ack", packet(Kind::Notice, &[Frame::Ack(Ack { beyond: 5 })])),
        ("credit", one(Frame::Credit(Credit { limit: 1 << 20 }))),
        ("replay", one(Frame::Replay(Replay { rail: 1, number: 9, frames: &[12, 0] }))),
        ("link-down", one(Frame::LinkDown(LinkDown { rail: 1 }))),
        ("withdraw", one(Frame::Withdraw(Withdraw { region: NAME }))),
        ("reclaim", one(Frame::Reclaim(Reclaim { request: NAME, is_free: true }))),
        ("withdrawn", one(Frame::Withdrawn(Withdrawn { region: NAME, used: false }))),
        ("bye", one(Frame::Bye)),
        ("ask", packet(Kind::Notice, &[Frame::Ask(Ask { rail: 1, question: 1 })])),
        ("seen", packet(Kind::Notice, &[Frame::Seen(SEEN)])),
        ("chunk", chunk),
        ("hello", Control::Hello(HELLO).encode()),
        ("hello-encrypted", Control::Hello(Hello { offer: OFFER, ..HELLO }).encode()),
        ("welcome", Control::Welcome(WELCOME).encode()),
        ("welcome-encrypted", Control::Welcome(Welcome { offer: OFFER, ..WELCOME }).encode()),
        ("proof", Control::Proof(Proof { mac: [4; 32] }).encode()),
        ("refuse", Control::Refuse(Refusal { code: RefusalCode::Secret, text: "another job" }).encode()),
        ("nothing", packet(Kind::Packet, &[])),
    ]
}

fn bad_packets() -> Vec<(&'static str, Vec<u8>)> {
    let one = |frame: Frame<'_>| packet(Kind::Packet, &[frame]);
    let mut nested = vec![12, 0];
    for number in 0..40 {
        let mut outer = Vec::new();
        Frame::Replay(Replay { rail: 5, number, frames: &nested }).encode(&mut outer);
        nested = outer;
    }
    let mut deep = Header { kind: Kind::Packet, len: 0, number: 4, ack: 0 };
    deep.len = (Header::LEN + nested.len()) as u32;
    let mut longest = one(Frame::Bye);
    longest[..4].copy_from_slice(&nmad_wire::MAX_LEN.to_le_bytes());
    let mut long_data = one(Frame::Eager(eager(2, 0), &[7; 8]));
    long_data[Header::LEN + 20..Header::LEN + 24].copy_from_slice(&u32::MAX.to_le_bytes());
    let outside = ChunkHeader { number: 4, ack: 0, region: NAME, key: 1, offset: u64::MAX - 100, len: 100 };
    let early: Vec<Frame<'_>> =
        (0..200).map(|i| Frame::Rts(rts(3 + i * 1_000, 0, u64::MAX), Blocks::NONE)).collect();
    let rtrs: Vec<Frame<'_>> = (0..60)
        .map(|context| Rtr { context, tag: 0, seq: 0, region: 1, len: 0, keys: keys(0) })
        .map(Frame::Rtr)
        .collect();
    let empty = Cts { request: NAME | 1, region: NAME, len: 0, keys: keys(0), prompt: true };
    let lines = Refusal { code: RefusalCode::Rank, text: "one\ntwo\u{1b}[2J" };
    vec![
        ("bad-nested", [deep.encode().to_vec(), nested].concat()),
        ("bad-longest", longest),
        ("bad-data-length", long_data),
        ("bad-chunk-outside", [outside.encode().to_vec(), vec![0; 100]].concat()),
        ("bad-early", packet(Kind::Packet, &early)),
        ("bad-rtrs", packet(Kind::Packet, &rtrs)),
        ("bad-cts-empty", one(Frame::Cts(empty))),
        (
            "bad-seq-twice",
            packet(
                Kind::Packet,
                &[Frame::Rts(rts(9, 0, 1), Blocks::NONE), Frame::Rts(rts(9, 0, 1), Blocks::NONE)],
            ),
        ),
        ("bad-blocks-order", rts_with_blocks(0, &[(100, 64), (0, 64)])),
        ("bad-blocks-outside", rts_with_blocks(0, &[(u64::MAX - 1, 64)])),
        ("bad-seq-past", one(Frame::Rts(rts(0, 0, 1), Blocks::NONE))),
        ("bad-credit", one(Frame::Credit(Credit { limit: u64::MAX }))),
        ("bad-refuse", Control::Refuse(lines).encode()),
        ("bad-fins", packet(Kind::Notice, &[Frame::Fin(Fin { request: NAME, prompt: false }), Frame::Bye])),
        ("bad-zeros", vec![0; 64]),
        ("bad-ones", vec![0xff; 64]),
    ]
}

/// Scripts of several lengths; their operations are random, and the same every time.
pub fn scripts() -> Vec<(String, Vec<u8>)> {
    let script = |number: u64| {
        let mut rng = Rng::new(number, 0);
        let len = 60 + 90 * number as usize;
        (format!("script-{number:02}"), (0..len).map(|_| rng.next() as u8).collect())
    };
    (0..20).map(script).collect()
}
