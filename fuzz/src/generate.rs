//! Inputs made with knowledge of their structure, and mutations of the corpus.

use crate::rng::Rng;
use nmad_wire::{
    Ack, Ask, Block, Blocks, ChunkHeader, Credit, Cts, Eager, Fin, Frame, Header, Keys, Kind, LinkDown, Part,
    Reclaim, Replay, Rtr, Rts, Seen, Withdraw, Withdrawn, flags,
};

/// A stream of packets, mostly well-formed.
pub fn packets(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = Vec::new();
    for number in 0..1 + rng.below(4) as u32 {
        match rng.below(4) {
            0 if !corpus.is_empty() => stream.extend_from_slice(&corpus[rng.below(corpus.len())]),
            1 => stream.extend(chunk(rng, number)),
            _ => stream.extend(packet(rng, number)),
        }
    }
    if rng.one_in(2) {
        mutate(rng, &mut stream);
    }
    stream
}

/// A script of operations: one of the corpus with changes, or another one.
pub fn script(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut script = Vec::new();
    if !corpus.is_empty() && !rng.one_in(3) {
        script.extend_from_slice(&corpus[rng.below(corpus.len())]);
        (0..1 + rng.below(8)).for_each(|_| mutate(rng, &mut script));
    }
    if script.len() < 40 || rng.one_in(3) {
        let more = 40 + rng.below(600);
        script.extend((0..more).map(|_| rng.next() as u8));
    }
    script
}

/// One change: of a bit, a byte, a length field, or of what stands where.
fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return bytes.push(rng.next() as u8);
    }
    let at = rng.below(bytes.len());
    let len = rng.below(bytes.len() - at).min(64);
    match rng.below(8) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = rng.next() as u8,
        2 => bytes[at] = rng.of(&[0, 1, 0x7f, 0x80, 0xff]),
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..at + len)),
        5 => {
            let part = bytes[at..at + len].to_vec();
            let to = rng.below(bytes.len());
            bytes.splice(to..to, part);
        }
        6 => {
            let field = field(rng).to_le_bytes();
            let len = rng.of(&[2, 4, 8]).min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&field[..len]);
        }
        _ => bytes.insert(at, rng.next() as u8),
    }
}

/// A value that may mean something: extremes, small numbers, and names of requests and receive regions, which
/// are generation above and place below.
fn field(rng: &mut Rng) -> u64 {
    match rng.below(6) {
        0 => rng.of(&[0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63, 1 << 31, 1 << 30, 0xffff_ffff, 50_000]),
        1 => rng.next(),
        2 => rng.below(32) as u64,
        _ => ((1 + rng.below(5)) as u64) << 32 | rng.below(8) as u64,
    }
}

fn seq(rng: &mut Rng) -> u32 {
    if rng.one_in(4) { field(rng) as u32 } else { rng.below(6) as u32 }
}

fn context(rng: &mut Rng) -> u32 {
    rng.of(&[0, 1, 1, 1, 3, 3, 9, 1 << 31, 1 << 31 | 1, u32::MAX])
}

fn tag(rng: &mut Rng) -> u64 {
    if rng.one_in(4) { field(rng) } else { rng.of(&[10, 11, 12, 13, 14, 15, 30, 30]) }
}

fn packet(rng: &mut Rng, number: u32) -> Vec<u8> {
    let mut body = Vec::new();
    (0..1 + rng.below(5)).for_each(|_| frame(rng, &mut body, 0));
    let kind = rng.of(&[Kind::Packet, Kind::Packet, Kind::Packet, Kind::Notice, Kind::Control]);
    let number = if rng.one_in(3) { seq(rng) } else { 4 + number };
    let ack = if rng.one_in(3) { seq(rng) } else { 0 };
    let header = Header { kind, len: (Header::LEN + body.len()) as u32, number, ack };
    let mut bytes = header.encode().to_vec();
    bytes.append(&mut body);
    bytes
}

fn chunk(rng: &mut Rng, number: u32) -> Vec<u8> {
    let len = rng.of(&[0, 1, 100, 8_192, 50_000]);
    let offset = if rng.one_in(2) { field(rng) } else { rng.below(60_000) as u64 };
    let header = ChunkHeader { number, ack: seq(rng), region: field(rng), key: field(rng), offset, len };
    let mut bytes = header.encode().to_vec();
    bytes.resize(ChunkHeader::LEN + len.min(200) as usize, 0x5a);
    bytes
}

fn keys(rng: &mut Rng) -> Keys {
    let mut keys = Keys::default();
    (0..rng.below(4)).for_each(|rail| keys.push(rail as u8, field(rng)));
    keys
}

/// Appends a request to send, often with blocks of its message, whose places are good or bad.
fn request_to_send(rng: &mut Rng, rts: Rts, out: &mut Vec<u8>) {
    if rng.one_in(2) {
        return Frame::Rts(rts, Blocks::NONE).encode(out);
    }
    let (mut offset, mut blocks, mut places) = (0u64, Vec::new(), Vec::new());
    for _ in 0..1 + rng.below(4) {
        let len = rng.of(&[0, 1, 8, 64, 64, 64, 1_000]);
        offset = offset.saturating_add(rng.of(&[0, 0, 64, 4_096, 20_000, u64::MAX]));
        blocks.push(Block { offset, len });
        offset = offset.saturating_add(u64::from(len));
    }
    Blocks::encode_places(&blocks, &mut places);
    let data = vec![0x55; blocks.iter().map(|block| block.len as usize).sum()];
    let blocks = Blocks::new(&places[Blocks::COUNT_LEN..], &data);
    let ways = flags::FIN | flags::UNORDERED | flags::PUSHED | flags::READ;
    Frame::Rts(Rts { flags: (rts.flags & ways) | flags::BLOCKS, ..rts }, blocks).encode(out);
}

/// Appends a frame with random fields.
fn frame(rng: &mut Rng, out: &mut Vec<u8>, depth: usize) {
    let frame = match rng.below(19) {
        0 | 1 => {
            let data = vec![0x33; rng.of(&[0, 1, 8, 22, 23, 200])];
            let flags = rng.of(&[0, 0, 1, 2, 3]);
            let (context, tag, seq, request) = (context(rng), tag(rng), seq(rng), field(rng));
            let eager = Eager { flags, context, tag, seq, len: data.len() as u32, request };
            return Frame::Eager(eager, &data).encode(out);
        }
        2 | 3 => {
            let (flags, len) = (rng.below(64) as u8, rng.of(&[0, 1, 50_000, 60_000, u64::MAX]));
            let pushed = rng.of(&[0, 1, len / 2, len, u64::MAX]);
            let (context, tag, seq) = (context(rng), tag(rng), seq(rng));
            let (request, region) = (field(rng), field(rng));
            let address = field(rng);
            let rts = Rts { flags, context, tag, seq, len, request, region, pushed, address };
            return request_to_send(rng, rts, out);
        }
        4 | 5 => Frame::Cts(Cts {
            request: field(rng),
            region: field(rng),
            len: rng.of(&[0, 1, 50_000, 50_001, u64::MAX]),
            keys: keys(rng),
            prompt: rng.of(&[false, true]),
        }),
        6 => {
            let (context, tag, seq, region) = (context(rng), tag(rng), seq(rng), field(rng));
            let len = rng.of(&[0, 1, 50_000, u64::MAX]);
            Frame::Rtr(Rtr { context, tag, seq, region, len, keys: keys(rng) })
        }
        7 => Frame::Fin(Fin { request: field(rng), prompt: rng.of(&[false, true]) }),
        8 => Frame::Ack(Ack { beyond: field(rng) }),
        9 => Frame::Credit(Credit { limit: field(rng) }),
        10 if depth < 20 => {
            let mut frames = Vec::new();
            (0..rng.below(3)).for_each(|_| frame(rng, &mut frames, depth + 1));
            let (rail, number) = (rng.below(16) as u8, seq(rng));
            return Frame::Replay(Replay { rail, number, frames: &frames }).encode(out);
        }
        14 => {
            let data = vec![0x44; rng.of(&[0, 1, 200])];
            let (offset, total) = (rng.of(&[0, 1, 200, u64::MAX]), rng.of(&[0, 200, 201, 50_000, u64::MAX]));
            let part = Part { request: field(rng), offset, total, len: data.len() as u32 };
            return Frame::Part(part, &data).encode(out);
        }
        11 => Frame::LinkDown(LinkDown { rail: rng.below(3) as u8 }),
        12 => Frame::Withdraw(Withdraw { region: field(rng) }),
        13 => Frame::Withdrawn(Withdrawn { region: field(rng), used: rng.one_in(2) }),
        18 => Frame::Reclaim(Reclaim { request: field(rng), is_free: rng.one_in(2) }),
        15 => Frame::Ask(Ask { rail: rng.below(3) as u8, question: seq(rng) }),
        16 => {
            let (rail, below, beyond, moved) = (rng.below(3) as u8, seq(rng), field(rng), seq(rng));
            Frame::Seen(Seen { rail, question: seq(rng), below, beyond, moved })
        }
        _ => Frame::Bye,
    };
    frame.encode(out);
}
