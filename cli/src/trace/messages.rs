//! The messages of a job, put together from the traces of its ranks: what the sender's packets, the
//! receiver's packets and the sender's receipts say of one message.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::links::Links;
use super::records::{Receipt, Record, Records, What};

/// A message from one rank to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) context: u32,
    pub(crate) tag: u64,
    pub(crate) len: u64,
    /// When the first of it was given to a rail.
    pub(crate) sent_ns: u64,
    /// When the receiver had all of it; none: its trace does not say.
    pub(crate) arrived_ns: Option<u64>,
    pub(crate) protocol: String,
    /// Rails and bytes.
    pub(crate) carried: Vec<(String, u64)>,
    /// What the sender's receipt says besides, of messages of some length.
    pub(crate) receipt: Option<Predicted>,
}

/// What a receipt says of decision and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Predicted {
    pub(crate) eager_max: u64,
    pub(crate) predicted_ns: u64,
    pub(crate) actual_ns: u64,
}

impl Message {
    /// Why it took this protocol, in words.
    pub(crate) fn why(&self) -> &'static str {
        match (&*self.protocol, self.receipt) {
            ("inject" | "eager" | "eager-zcopy", _) => "at most the eager limit: sent without asking",
            ("eager-parts", _) => "longer than a packet, and the receivers are late or the limit is set",
            ("push", _) => "one reliable rail: the body follows its request",
            ("rtr", _) => "the receive was posted and had invited it",
            (_, Some(receipt)) if self.len <= receipt.eager_max => {
                "no credit was left: the receiver was asked"
            }
            _ => "above the eager limit: the receiver was asked",
        }
    }

    /// Whether a collective sent it: MAD-MPI has odd contexts for these.
    pub(crate) fn is_collective(&self) -> bool {
        self.context % 2 == 1
    }

    /// Difference of prediction and time over the time.
    pub(crate) fn error(&self) -> Option<f64> {
        let Predicted { predicted_ns, actual_ns, .. } = self.receipt?;
        (actual_ns > 0).then(|| (predicted_ns as f64 - actual_ns as f64) / actual_ns as f64)
    }
}

/// Which message of a pair of ranks: its context and place in the flow, or its packet if it has none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Name {
    Ordered { context: u32, seq: u32 },
    Unordered { rail: String, number: u32, place: usize },
}

/// Sender, receiver, and name.
type Key = (u32, u32, Name);

/// The messages of these ranks, in the order of sending.
pub(crate) fn messages(all: &[Records]) -> Vec<Message> {
    let (messages, links) = (BTreeMap::new(), Links::of(all));
    let mut found = Found { messages, links, in_parts: HashMap::new() };
    for rank in all {
        rank.list.iter().for_each(|record| found.packet(rank.rank, record));
    }
    for rank in all {
        rank.receipts.iter().for_each(|receipt| found.receipt(rank.rank, receipt));
    }
    found.land(all);
    let mut list: Vec<Message> = found.messages.into_values().collect();
    list.sort_by_key(|message| (message.sent_ns, message.from, message.to));
    list
}

struct Found {
    messages: BTreeMap<Key, Message>,
    links: Links,
    /// Messages in parts that are not complete, by sender and receiver: the name and the bytes that came.
    in_parts: HashMap<(u32, u32), VecDeque<(Key, u64)>>,
}

impl Found {
    /// What the frames of a packet say, at either end.
    fn packet(&mut self, me: u32, record: &Record) {
        let Record { peer, rail, number, at_ns, .. } = record;
        let (from, to, there) = match record.what {
            What::PostPacket => (me, *peer, self.links.there(me, *peer, rail)),
            What::Arrived => (*peer, me, rail.clone()),
            _ => return,
        };
        let (posted_ns, arrived_ns) = self.links.times(me, record);
        let sent_ns = posted_ns.unwrap_or(*at_ns);
        for (place, frame) in record.text.split(" | ").skip(1).enumerate() {
            if let Some(part) = part(frame) {
                if record.what == What::Arrived {
                    self.part((from, to), part, *at_ns);
                }
                continue;
            }
            let Some(Frame { protocol, len, context, tag, seq }) = frame_of(frame) else { continue };
            let name = match seq {
                Some(seq) => Name::Ordered { context, seq },
                None => Name::Unordered { rail: there.clone(), number: *number, place },
            };
            let key = (from, to, name);
            let is_whole = protocol == "eager";
            let message = Message {
                from,
                to,
                context,
                tag,
                len,
                sent_ns,
                arrived_ns: arrived_ns.filter(|_| is_whole),
                protocol: protocol.into(),
                carried: if is_whole { vec![(rail.clone(), len)] } else { Vec::new() },
                receipt: None,
            };
            if protocol == "eager-parts" && record.what == What::Arrived {
                self.in_parts.entry((from, to)).or_default().push_back((key.clone(), 0));
            }
            self.messages.entry(key).or_insert(message);
        }
    }

    /// A part has come: of the oldest message of this length that is not complete.
    fn part(&mut self, pair: (u32, u32), (len, total): (u64, u64), at_ns: u64) {
        let Some(open) = self.in_parts.get_mut(&pair) else { return };
        let is_it = |(key, _): &(Key, u64)| self.messages.get(key).is_some_and(|found| found.len == total);
        let Some(place) = open.iter().position(is_it) else { return };
        open[place].1 += len;
        if open[place].1 >= total
            && let Some((key, _)) = open.remove(place)
            && let Some(message) = self.messages.get_mut(&key)
        {
            message.arrived_ns = Some(at_ns);
        }
    }

    fn receipt(&mut self, from: u32, receipt: &Receipt) {
        let Receipt { at_ns, message, to, context, tag, seq, len, carried, .. } = receipt;
        let key = (from, *to, Name::Ordered { context: *context, seq: *seq });
        let found = self.messages.entry(key).or_insert_with(|| Message {
            from,
            to: *to,
            context: *context,
            tag: *tag,
            len: *len,
            sent_ns: *at_ns,
            arrived_ns: None,
            protocol: String::new(),
            carried: Vec::new(),
            receipt: None,
        });
        let Receipt { eager_max, predicted_ns, actual_ns, .. } = *receipt;
        (found.protocol, found.carried) = (message.clone(), carried.clone());
        found.receipt = Some(Predicted { eager_max, predicted_ns, actual_ns });
    }

    /// Gives each message that has a body the chunks that carried it: those of a rail in their order, as many
    /// bytes as its receipt says.
    fn land(&mut self, all: &[Records]) {
        let mut landed: HashMap<(u32, u32, String), VecDeque<(u64, u64)>> = HashMap::new();
        for (me, record) in all.iter().flat_map(|rank| rank.list.iter().map(move |each| (rank.rank, each))) {
            if record.what == What::Landed {
                let queue = landed.entry((record.peer, me, record.rail.clone())).or_default();
                queue.push_back((record.at_ns, record.len));
            }
        }
        let mut open: Vec<&mut Message> =
            self.messages.values_mut().filter(|message| message.arrived_ns.is_none()).collect();
        open.sort_by_key(|message| message.sent_ns);
        for message in open {
            let (from, to) = (message.from, message.to);
            for (rail, bytes) in &message.carried {
                let there = self.links.there(from, to, rail);
                let Some(queue) = landed.get_mut(&(from, to, there)) else { continue };
                let mut missing = *bytes;
                while missing > 0
                    && let Some((at_ns, len)) = queue.pop_front()
                {
                    if len > missing {
                        queue.push_front((at_ns, len - missing));
                    }
                    missing = missing.saturating_sub(len);
                    message.arrived_ns = message.arrived_ns.max(Some(at_ns));
                }
            }
        }
    }
}

/// A message in a packet, or a request to send one.
struct Frame {
    protocol: &'static str,
    len: u64,
    context: u32,
    tag: u64,
    seq: Option<u32>,
}

/// `eager 24 B context 0 tag 0x7 seq 20`, `rts 3145728 B context 0 tag 0x8 seq 21 ...`
fn frame_of(text: &str) -> Option<Frame> {
    let words: Vec<&str> = text.split(' ').collect();
    let [kind @ ("eager" | "rts"), len, "B", "context", context, "tag", tag, rest @ ..] = &*words else {
        return None;
    };
    let seq = match rest {
        ["seq", seq, ..] => Some(seq.parse().ok()?),
        _ => None,
    };
    let protocol = match *kind {
        "eager" => "eager",
        _ if text.contains(" to open region ") => "rtr",
        _ if text.contains(" are pushed") => "push",
        _ if text.ends_with(" in parts") => "eager-parts",
        _ => "rendezvous",
    };
    let tag = u64::from_str_radix(tag.strip_prefix("0x")?, 16).ok()?;
    Some(Frame { protocol, len: len.parse().ok()?, context: context.parse().ok()?, tag, seq })
}

/// `part of 72000 B at 0 of 300000 B`: its length and that of the message.
fn part(text: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = text.split(' ').collect();
    let ["part", "of", len, "B", "at", _, "of", total, "B"] = &*words else { return None };
    Some((len.parse().ok()?, total.parse().ok()?))
}

/// Two ranks of one machine may read its clock so far apart.
const READING_NS: i64 = 100_000;

/// The messages of these ranks in the order of sending, after moving the ranks' clocks so that none arrives
/// before it was sent: on one machine all ranks read the same clock, and nothing moves. Between two ranks the
/// difference of clocks is half the difference of the shortest times in the two directions, as in the network
/// time protocol.
pub(crate) fn align(all: &mut [Records]) -> Vec<Message> {
    let found = messages(all);
    let mut shortest: HashMap<(u32, u32), i64> = HashMap::new();
    for message in found.iter().filter(|message| message.arrived_ns.is_some()) {
        let took = message.arrived_ns.unwrap_or(0) as i64 - message.sent_ns as i64;
        let least = shortest.entry((message.from, message.to)).or_insert(took);
        *least = took.min(*least);
    }
    if shortest.values().all(|took| *took >= -READING_NS) {
        return found;
    }
    // From the first rank on, along pairs that have exchanged something in both directions.
    let mut known: HashMap<u32, i64> = all.first().map(|rank| (rank.rank, 0)).into_iter().collect();
    let mut next: VecDeque<u32> = known.keys().copied().collect();
    while let Some(a) = next.pop_front() {
        for rank in all.iter() {
            let b = rank.rank;
            let (Some(there), Some(back)) = (shortest.get(&(a, b)), shortest.get(&(b, a))) else { continue };
            if !known.contains_key(&b) {
                known.insert(b, known[&a] - (there - back) / 2);
                next.push_back(b);
            }
        }
    }
    all.iter_mut().for_each(|rank| rank.shift(known.get(&rank.rank).copied().unwrap_or(0)));
    messages(all)
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
