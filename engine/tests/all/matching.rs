//! Matching: the results equal those of a linear search, and take constant time with hundreds of thousands
//! of entries.

use crate::lone::Lone;
use nmad_engine::{Completion, Config, Context, PeerId, RequestId, Segments, Source, Tag, TagMatch};
use nmad_wire::Frame;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Searching a list of this length for each of its entries would take hours.
const MANY: u64 = 200_000;

fn many() -> Lone {
    let mut lone = Lone::new(1..4, Config { credit: 1 << 30, ..Config::default() });
    // The first packet lets the engine send its credit limit.
    (1..4).for_each(|peer| lone.arrive(peer, &[]));
    lone
}

/// Empty messages with these tags, a hundred in a packet.
fn arrive(lone: &mut Lone, tags: impl Iterator<Item = u64>) {
    let tags: Vec<u64> = tags.collect();
    for hundred in tags.chunks(100) {
        let frames: Vec<Frame<'_>> =
            hundred.iter().map(|&tag| Frame::Eager(lone.head(1, 0, tag, 0), &[])).collect();
        lone.arrive(1, &frames);
    }
}

fn completions(lone: &mut Lone) -> Vec<RequestId> {
    let next = || lone.engine.next_completion().map(|completion| completion.request);
    std::iter::from_fn(next).collect()
}

#[test]
fn posted_receives_are_found_at_once_wherever_they_are() {
    for any_source in [false, true] {
        let mut lone = many();
        let from = (!any_source).then_some(1);
        let post = |tag| lone.recv_into(from, 0, Some(tag), Segments::empty());
        let mut posted: Vec<RequestId> = (0..MANY).map(post).collect();
        arrive(&mut lone, (0..MANY).rev());
        posted.reverse();
        assert_eq!(completions(&mut lone), posted);
        assert_eq!(lone.engine.inspect().pending(), 0);
    }
}

#[test]
fn unexpected_messages_are_found_at_once_wherever_they_are() {
    let receive: [fn(&mut Lone, u64) -> RequestId; 3] = [
        |lone, tag| lone.recv_into(Some(1), 0, Some(tag), Segments::empty()),
        |lone, tag| lone.recv_into(None, 0, Some(tag), Segments::empty()),
        |lone, _| lone.recv_into(Some(1), 0, None, Segments::empty()),
    ];
    for receive in receive {
        let mut lone = many();
        arrive(&mut lone, 0..MANY);
        assert_eq!(lone.engine.inspect().unexpected() as u64, MANY);
        let requests: Vec<RequestId> = (0..MANY).rev().map(|tag| receive(&mut lone, tag)).collect();
        assert_eq!(completions(&mut lone), requests);
        assert_eq!(lone.engine.inspect().unexpected(), 0);
    }
}

#[test]
fn messages_of_one_tag_match_in_order() {
    let mut lone = many();
    let other = lone.recv_into(Some(2), 0, None, Segments::empty());
    arrive(&mut lone, (0..MANY).map(|_| 7));
    for seq in 0..MANY as u32 {
        let request = lone.recv_into(None, 0, None, Segments::empty());
        let Some(Completion { request: ended, result: Ok(envelope) }) = lone.engine.next_completion() else {
            panic!("message {seq} is not there");
        };
        assert_eq!((ended, envelope.seq), (request, seq));
    }
    assert!(lone.engine.cancel(other));
}

#[test]
fn receives_can_be_cancelled_wherever_they_are() {
    let mut lone = many();
    let post = |_| lone.recv_into(Some(1), 0, Some(7), Segments::empty());
    let posted: Vec<RequestId> = (0..MANY).map(post).collect();
    posted.iter().skip(1).step_by(2).for_each(|&request| assert!(lone.engine.cancel(request)));
    completions(&mut lone);
    arrive(&mut lone, (0..MANY / 2).map(|_| 7));
    assert_eq!(completions(&mut lone), posted.iter().step_by(2).copied().collect::<Vec<_>>());
}

/// A step of the test. Peers are 1 to 3.
#[derive(Debug, Clone)]
enum Step {
    Post {
        from: Option<u32>,
        context: u32,
        tag: Option<u64>,
    },
    Message {
        from: u32,
        context: u32,
        tag: u64,
    },
    /// Cancels the receive with this number in the order of posting.
    Cancel(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let (context, tag) = (0..2u32, 0..3u64);
    let from = prop::option::weighted(0.7, 1..4u32);
    prop_oneof![
        4 => (from, context.clone(), prop::option::weighted(0.7, tag.clone()))
            .prop_map(|(from, context, tag)| Step::Post { from, context, tag }),
        4 => (1..4u32, context, tag).prop_map(|(from, context, tag)| Step::Message { from, context, tag }),
        1 => any::<prop::sample::Index>().prop_map(Step::Cancel),
    ]
}

type Names = (Option<u32>, u32, Option<u64>);

/// The reference matcher: two lists, searched linearly.
#[derive(Default)]
struct Reference {
    posted: Vec<(usize, Names)>,
    unexpected: Vec<(u64, (u32, u32, u64))>,
    pairs: BTreeMap<usize, u64>,
}

fn takes((from, context, tag): Names, message: (u32, u32, u64)) -> bool {
    from.is_none_or(|from| from == message.0) && context == message.1 && tag.is_none_or(|t| t == message.2)
}

impl Reference {
    fn post(&mut self, receive: usize, names: Names) {
        match self.unexpected.iter().position(|&(_, message)| takes(names, message)) {
            Some(index) => drop(self.pairs.insert(receive, self.unexpected.remove(index).0)),
            None => self.posted.push((receive, names)),
        }
    }

    fn arrive(&mut self, id: u64, message: (u32, u32, u64)) {
        match self.posted.iter().position(|&(_, names)| takes(names, message)) {
            Some(index) => drop(self.pairs.insert(self.posted.remove(index).0, id)),
            None => self.unexpected.push((id, message)),
        }
    }

    fn first(&self, names: Names) -> Option<(u32, u32, u64)> {
        self.unexpected.iter().map(|&(_, message)| message).find(|&message| takes(names, message))
    }
}

fn probe(lone: &mut Lone, (from, context, tag): Names) -> Option<(u32, u32, u64)> {
    let source = from.map_or(Source::Any, |peer| Source::Peer(PeerId(peer)));
    let tag = tag.map_or(TagMatch::Any, |tag| TagMatch::Exact(Tag(tag)));
    let envelope = lone.engine.probe(source, Context(context), tag)?;
    Some((envelope.peer.0, envelope.context.0, envelope.tag.0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn matches_equal_those_of_two_lists(steps in vec(step(), 0..120)) {
        let mut lone = Lone::new(1..4, Config::default());
        let mut reference = Reference::default();
        let mut receives = Vec::new();
        for (id, step) in steps.into_iter().enumerate() {
            match step {
                Step::Post { from, context, tag } => {
                    let names = (from, context, tag);
                    prop_assert_eq!(probe(&mut lone, names), reference.first(names));
                    reference.post(receives.len(), names);
                    receives.push(lone.recv(from, context, tag, 8));
                }
                Step::Message { from, context, tag } => {
                    reference.arrive(id as u64, (from, context, tag));
                    lone.message(from, context, tag, &(id as u64).to_le_bytes());
                }
                Step::Cancel(index) if !receives.is_empty() => {
                    let index = index.index(receives.len());
                    let waits = reference.posted.iter().any(|&(receive, _)| receive == index);
                    prop_assert_eq!(lone.engine.cancel(receives[index].0), waits);
                    reference.posted.retain(|&(receive, _)| receive != index);
                }
                Step::Cancel(_) => {}
            }
        }
        let mut pairs = BTreeMap::new();
        while let Some(Completion { request, result }) = lone.engine.next_completion() {
            let receive = receives.iter().position(|(other, _)| *other == request).expect("a receive");
            lone.memory.end(receives[receive].1, false);
            let data = lone.memory.content(receives[receive].1);
            if result.is_ok() {
                pairs.insert(receive, u64::from_le_bytes(data.try_into().unwrap()));
            }
        }
        prop_assert_eq!(pairs, reference.pairs);
        prop_assert_eq!(lone.engine.inspect().pending(), reference.posted.len());
        prop_assert_eq!(lone.engine.inspect().unexpected(), reference.unexpected.len());
    }
}
