//! Every kind of frame and of control message, made from random fields.

use nmad_wire::{
    Ack, Ask, Block, Blocks, Cipher, Control, Credit, Cts, Eager, Fin, Frame, Header, Hello, Keys, Kind,
    LinkDown, MAX_RAILS, Offer, Part, Proof, Reclaim, Refusal, RefusalCode, Replay, Rtr, Rts, Seen, Welcome,
    Withdraw, Withdrawn, flags,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A frame that owns its data.
#[derive(Debug, Clone)]
pub struct Owned {
    frame: Frame<'static>,
    places: Vec<u8>,
    data: Vec<u8>,
}

impl Owned {
    pub fn frame(&self) -> Frame<'_> {
        match self.frame {
            Frame::Eager(eager, _) => Frame::Eager(eager, &self.data),
            Frame::Part(part, _) => Frame::Part(part, &self.data),
            Frame::Replay(replay) => Frame::Replay(Replay { frames: &self.data, ..replay }),
            Frame::Rts(rts, _) => Frame::Rts(rts, Blocks::new(&self.places, &self.data)),
            frame => frame,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.frame().encode(&mut bytes);
        bytes
    }
}

fn without_data(frame: Frame<'static>) -> Owned {
    with_data(frame, Vec::new())
}

fn with_data(frame: Frame<'static>, data: Vec<u8>) -> Owned {
    Owned { frame, places: Vec::new(), data }
}

/// A request to send with blocks at these places, and bytes for all of them.
pub fn with_blocks(rts: Rts, blocks: &[Block]) -> Owned {
    let mut places = Vec::new();
    Blocks::encode_places(blocks, &mut places);
    let data = vec![8; blocks.iter().map(|block| block.len as usize).sum()];
    let rts = Rts { flags: rts.flags | flags::BLOCKS, ..rts };
    Owned { frame: Frame::Rts(rts, Blocks::NONE), places: places.split_off(Blocks::COUNT_LEN), data }
}

/// Fields with their extremes more often than chance would have them.
fn wide() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![any::<u64>(), Just(0), Just(1), Just(u64::MAX), Just(1 << 32)]
}

fn narrow() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![any::<u32>(), Just(0), Just(1), Just(u32::MAX)]
}

pub fn keys() -> impl Strategy<Value = Keys> {
    vec(wide(), 0..=MAX_RAILS).prop_map(|list| {
        let mut keys = Keys::default();
        list.into_iter().enumerate().for_each(|(rail, key)| keys.push(rail as u8, key));
        keys
    })
}

fn eager() -> impl Strategy<Value = Owned> {
    let fields = (0..4u8, narrow(), wide(), narrow(), wide(), vec(any::<u8>(), 0..200));
    fields.prop_map(|(flags, context, tag, seq, request, data)| {
        let request = if flags & flags::FIN != 0 { request } else { 0 };
        let eager = Eager { flags, context, tag, seq, len: data.len() as u32, request };
        with_data(Frame::Eager(eager, &[]), data)
    })
}

fn rts() -> impl Strategy<Value = Owned> {
    let fields =
        (prop_oneof![0..12u8, 16..20u8, 32..36u8], narrow(), wide(), narrow(), wide(), wide(), wide());
    fields.prop_map(|(flags, context, tag, seq, len, request, detail)| {
        let region = if flags & flags::INVITED != 0 { detail } else { 0 };
        let pushed = if flags & flags::PUSHED != 0 { detail.min(len) } else { 0 };
        let address = if flags & flags::READ != 0 { detail } else { 0 };
        without_data(Frame::Rts(
            Rts { flags, context, tag, seq, len, request, region, pushed, address },
            Blocks::NONE,
        ))
    })
}

fn part() -> impl Strategy<Value = Owned> {
    let fields = (wide(), 0..1u64 << 62, 0..1u64 << 62, vec(any::<u8>(), 0..200));
    fields.prop_map(|(request, offset, more, data)| {
        let len = data.len() as u32;
        let part = Part { request, offset, total: offset + u64::from(len) + more, len };
        with_data(Frame::Part(part, &[]), data)
    })
}

fn replay() -> impl Strategy<Value = Owned> {
    let fields = (0..MAX_RAILS as u8, narrow(), vec(any::<u8>(), 0..200));
    fields
        .prop_map(|(rail, number, data)| with_data(Frame::Replay(Replay { rail, number, frames: &[] }), data))
}

fn grants() -> impl Strategy<Value = Owned> {
    let cts =
        (wide(), wide(), wide(), keys(), any::<bool>()).prop_map(|(request, region, len, keys, prompt)| {
            Frame::Cts(Cts { request, region, len, keys, prompt })
        });
    let rtr = (narrow(), wide(), narrow(), wide(), wide(), keys()).prop_map(
        |(context, tag, seq, region, len, keys)| Frame::Rtr(Rtr { context, tag, seq, region, len, keys }),
    );
    prop_oneof![cts, rtr].prop_map(without_data)
}

fn short() -> impl Strategy<Value = Owned> {
    prop_oneof![
        (wide(), any::<bool>()).prop_map(|(request, prompt)| Frame::Fin(Fin { request, prompt })),
        wide().prop_map(|beyond| Frame::Ack(Ack { beyond })),
        wide().prop_map(|limit| Frame::Credit(Credit { limit })),
        (0..MAX_RAILS as u8).prop_map(|rail| Frame::LinkDown(LinkDown { rail })),
        wide().prop_map(|region| Frame::Withdraw(Withdraw { region })),
        (wide(), any::<bool>()).prop_map(|(region, used)| Frame::Withdrawn(Withdrawn { region, used })),
        (wide(), any::<bool>()).prop_map(|(request, is_free)| Frame::Reclaim(Reclaim { request, is_free })),
        Just(Frame::Bye),
        (0..MAX_RAILS as u8, any::<u32>()).prop_map(|(rail, question)| Frame::Ask(Ask { rail, question })),
        (0..MAX_RAILS as u8, any::<u32>(), any::<u32>(), wide(), any::<u32>()).prop_map(
            |(rail, question, below, beyond, moved)| {
                Frame::Seen(Seen { rail, question, below, beyond, moved })
            }
        ),
    ]
    .prop_map(without_data)
}

fn rts_with_blocks() -> impl Strategy<Value = Owned> {
    let way = prop_oneof![Just(0), Just(flags::PUSHED), Just(flags::READ)];
    let fields = (way, 0..4u8, narrow(), wide(), wide(), vec((0..1_000u64, 1..100u32), 1..9), 1..5_000u64);
    fields.prop_map(|(way, bits, seq, request, detail, gaps, rest)| {
        let mut end = 0;
        let place = |(gap, len): (u64, u32)| {
            let offset = end + gap;
            end = offset + u64::from(len);
            Block { offset, len }
        };
        let blocks: Vec<Block> = gaps.into_iter().map(place).collect();
        let len = end + rest;
        let left = len - blocks.iter().map(|block| u64::from(block.len)).sum::<u64>();
        let pushed = if way == flags::PUSHED { detail.min(left) } else { 0 };
        let address = if way == flags::READ { detail } else { 0 };
        let flags = way | bits;
        with_blocks(Rts { flags, context: 1, tag: 2, seq, len, request, region: 0, pushed, address }, &blocks)
    })
}

/// Any frame.
pub fn frame() -> impl Strategy<Value = Owned> {
    prop_oneof![eager(), rts(), rts_with_blocks(), part(), replay(), grants(), short()]
}

/// One of each kind, for tests that walk through all bytes.
pub fn one_of_each() -> Vec<Owned> {
    let mut keys = Keys::default();
    (0..3).for_each(|rail| keys.push(rail, 100 + u64::from(rail)));
    let eager = Eager { flags: 0, context: 1, tag: 2, seq: 3, len: 5, request: 0 };
    let data = vec![9; 5];
    let rts =
        Rts { flags: 0, context: 1, tag: 2, seq: 3, len: 4, request: 5, region: 0, pushed: 0, address: 0 };
    let invited = Rts { flags: flags::INVITED | flags::FIN, region: 6, ..rts };
    let pushed = Rts { flags: flags::PUSHED | flags::UNORDERED, pushed: 4, ..rts };
    let read = Rts { flags: flags::READ | flags::FIN, address: 1 << 40, ..rts };
    let synchronous = Eager { flags: flags::FIN, request: 7, ..eager };
    let mut list = vec![
        with_data(Frame::Eager(eager, &[]), data.clone()),
        with_data(Frame::Eager(synchronous, &[]), data.clone()),
        with_data(Frame::Part(Part { request: 1, offset: 2, total: 9, len: 5 }, &[]), data.clone()),
        with_data(Frame::Replay(Replay { rail: 1, number: 2, frames: &[] }), data),
    ];
    let others = [
        Frame::Rts(rts, Blocks::NONE),
        Frame::Rts(invited, Blocks::NONE),
        Frame::Rts(pushed, Blocks::NONE),
        Frame::Rts(Rts { flags: flags::PARTS, ..rts }, Blocks::NONE),
        Frame::Rts(read, Blocks::NONE),
        Frame::Cts(Cts { request: 1, region: 2, len: 3, keys, prompt: true }),
        Frame::Rtr(Rtr { context: 1, tag: 2, seq: 3, region: 4, len: 5, keys }),
        Frame::Fin(Fin { request: 1, prompt: true }),
        Frame::Ack(Ack { beyond: 1 }),
        Frame::Credit(Credit { limit: 1 }),
        Frame::LinkDown(LinkDown { rail: 1 }),
        Frame::Withdraw(Withdraw { region: 1 }),
        Frame::Withdrawn(Withdrawn { region: 1, used: true }),
        Frame::Reclaim(Reclaim { request: 1, is_free: true }),
        Frame::Bye,
        Frame::Ask(Ask { rail: 1, question: 2 }),
        Frame::Seen(Seen { rail: 1, question: 5, below: 2, beyond: 3, moved: 4 }),
    ];
    list.extend(others.into_iter().map(without_data));
    let blocks = [Block { offset: 3, len: 2 }, Block { offset: 5, len: 3 }];
    let mixed = Rts { len: 100, pushed: 95, ..pushed };
    list.push(with_blocks(mixed, &blocks));
    list
}

const OFFER: Option<Offer> = Some(Offer { cipher: Cipher::ChaCha20Poly1305, key: [3; 32] });

/// One of each control message.
pub fn controls() -> Vec<Control<'static>> {
    let refuse = |code, text| Control::Refuse(Refusal { code, text });
    vec![
        Control::Hello(Hello { from: 1, to: u32::MAX, rail: 3, nonce: [4; 32], offer: None, mac: [9; 32] }),
        Control::Welcome(Welcome { rail: 5, nonce: [6; 32], offer: None, mac: [7; 32] }),
        Control::Hello(Hello { from: 1, to: 2, rail: 3, nonce: [4; 32], offer: OFFER, mac: [9; 32] }),
        Control::Welcome(Welcome { rail: 5, nonce: [6; 32], offer: OFFER, mac: [7; 32] }),
        Control::Proof(Proof { mac: [8; 32] }),
        refuse(RefusalCode::Version, "you speak version 2"),
        refuse(RefusalCode::Secret, ""),
        refuse(RefusalCode::Rank, "I am rank 3 \u{1f980}"),
        refuse(RefusalCode::Crossed, "the other one stays"),
        refuse(RefusalCode::Encryption, "rank 3 encrypts the link"),
    ]
}

/// A packet around these frames.
pub fn packet(body: &[u8]) -> Vec<u8> {
    let len = (Header::LEN + body.len()) as u32;
    let header = Header { kind: Kind::Packet, len, number: 1, ack: 2 };
    [&header.encode()[..], body].concat()
}
