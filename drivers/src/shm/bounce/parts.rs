//! Parts of chunks: the sender copies them into bounce buffers while the receiver copies earlier ones out.

use crate::node::Segment;
use crate::node::claim::{self, Side, UNIT};
use crate::shm::link::Link;
use crate::shm::ring::cell::{self, Range};
use crate::shm::selector::Method;
use crate::shm::shape::LONG;
use nmad_engine::memory::Segments;

/// Bytes of one part: small enough that several are under way, so that both sides copy at once. Zen 4: half
/// and twice are within the spread.
const PART: u64 = 16 << 10;
/// Parts of a chunk of short blocks, if that makes them shorter than PART: the receiver copies the last one
/// when the sender has nothing to do any more, and blocks are copied slowly. EPYC, 64 KiB: 0.94 of the time
/// with blocks of 1 KiB, with twice as many parts; blocks of 4 KiB took 1.2 times as long.
const PARTS: u64 = 8;
/// Parts copied before the link is polled again. Zen 4: half and twice are within the spread.
const AT_ONCE: usize = 8;

impl Link {
    /// Copies some parts into bounce buffers, while there is room. Returns the number of bytes.
    pub fn stream(&mut self) -> Result<u64, &'static str> {
        let mut moved = 0;
        for _ in 0..AT_ONCE {
            let b = &self.shared;
            let next = self.outgoing.chunks.iter().position(|out| out.is_bounced && out.has_rest(b));
            let Some(index) = next else { break };
            if !self.has_room()? {
                break;
            }
            let cell = self.producer.next();
            let most = part_len(&self.outgoing.chunks[index].from);
            let Some(start) = self.range(most as u32)? else { break };
            let b = &self.shared;
            let out = &mut self.outgoing.chunks[index];
            let Some(range) = claim::claim_at_most(out.word(b), out.round, Side::Push, most) else {
                self.ranges.give_back();
                continue;
            };
            let part = out.from.slice(range.0, range.1 - range.0);
            // The receiver reports after a number of data bytes (TELL_BYTES). If ranges were longer than
            // their data, the buffer could be full before that, and both sides would wait forever.
            self.ranges.shrink(part.len() as u32);
            let place = b.end.bounce(start);
            match out.method {
                Method::NonTemporal => {
                    put(&b.segment, place, &part, Segment::put_non_temporal);
                    Segment::order();
                }
                _ => put(&b.segment, place, &part, Segment::put),
            }
            out.add_bounced(b, part.len());
            self.outgoing.last[out.place] = cell;
            let content = Range { start, of: out.name(), at: range.0 };
            self.push(cell::PART, part.len() as u32, &content.encode());
            let (b, out) = (&self.shared, &self.outgoing.chunks[index]);
            claim::end(out.word(b), out.round, Side::Push, range, true);
            moved += part.len();
            // The peer can copy the first parts while this side continues.
            self.wake();
        }
        if moved > 0 {
            self.outgoing.silence.end();
        }
        Ok(moved)
    }
}

/// Returns the length of the parts of a chunk.
fn part_len(from: &Segments) -> u64 {
    if from.is_finer_than(LONG) { (from.len() / PARTS / UNIT * UNIT).clamp(UNIT, PART) } else { PART }
}

/// Copies all pieces to `place` with `one`, which is inlined into the loop: there may be very many pieces.
#[inline]
fn put(segment: &Segment, place: usize, part: &Segments, one: impl Fn(&Segment, usize, &[u8])) {
    part.slices().fold(place, |place, piece| {
        one(segment, place, piece);
        place + piece.len()
    });
}
