//! Parts of chunks through the area: the sender copies them in, the receiver copies them out, at the same
//! time.

use super::cell::{self, Part};
use super::claim::{self, Side};
use super::effort::copying;
use super::link::Link;
use super::pace::Way;
use super::segment::Segment;
use super::write::Impossible;

/// Bytes of one part: small enough that several are under way, so that both sides copy at once.
const PART: u64 = 16 << 10;
/// Parts copied before looking after other things.
const AT_ONCE: usize = 8;

impl Link {
    /// Copies some parts into the area, while there is room. Returns the bytes.
    pub fn stream(&mut self) -> Result<u64, Impossible> {
        let mut moved = 0;
        for _ in 0..AT_ONCE {
            let b = &self.shared;
            let next = self.pushing.chunks.iter().position(|out| out.streams && out.has_rest(b));
            let Some(index) = next else { break };
            if !self.has_room()? {
                break;
            }
            let cell = self.producer.next();
            let Some(start) = self.range(PART as u32)? else { break };
            let b = &self.shared;
            let out = &mut self.pushing.chunks[index];
            let word = b.segment.word(b.end.claim(out.place));
            let Some((at, to)) = claim::claim_at_most(word, out.round, Side::Push, PART) else {
                self.area.give_back();
                continue;
            };
            let part = out.from.slice(at, to - at);
            let put = if out.way == Way::Uncached { Segment::put_uncached } else { Segment::put };
            let mut place = b.end.area(start);
            copying(&mut out.effort, || {
                for piece in part.slices() {
                    put(&b.segment, place, piece);
                    place += piece.len();
                }
            });
            out.streamed(b, part.len());
            self.pushing.last[out.place] = cell;
            let content = Part { start, chunk: out.name(), at };
            self.push(cell::PART, part.len() as u32, &content.encode());
            claim::finish(
                self.shared.segment.word(self.shared.end.claim(self.pushing.chunks[index].place)),
                Side::Push,
            );
            moved += part.len();
            // The peer may begin while we go on.
            self.wake();
        }
        if moved > 0 {
            self.pushing.quiet.end();
        }
        Ok(moved)
    }
}
