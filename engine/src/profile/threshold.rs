//! Thresholds: the size from which one method beats another, by the interpolated crossings of P4 section
//! III-B.
//!
//! Measured curves that lie close together cross more than once. The crossing taken has the least loss: for
//! each place where the method could change, the time lost at all measured sizes, relative to the better
//! method, is summed up, and the place with the smallest sum wins. The threshold is the linear
//! interpolation between the two sizes around that place.

use super::curve::Curve;
use super::sample::{BLOCKS, Sample};
use alloc::vec::Vec;

/// Lengths in bytes from which data is left in place instead of being copied together with other data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InPlace {
    /// Contiguous data behind a header (P4's iovec threshold).
    pub message: u64,
    /// A block of non-contiguous data, or of several orders that one system call sends; `None`: that was not
    /// measured, and the driver uses a nominal length.
    pub block: Option<u64>,
}

impl InPlace {
    /// All data is copied.
    pub const NEVER: InPlace = InPlace { message: u64::MAX, block: Some(u64::MAX) };
    /// No data is copied that can be left in place.
    pub const ALWAYS: InPlace = InPlace { message: 1, block: Some(1) };
}

/// Messages of at least this length use rendezvous whatever was measured, unless configured otherwise, so
/// that the memory of unexpected messages is bounded (P4 section III-B).
pub const UNEXPECTED_MAX: u64 = 64 << 10;
/// Least cost of any alternative to copying, in nanoseconds: a packet of its own needs a decision (P4
/// allows it 100 ns), a piece in place is an entry of a list that every layer walks.
const ALTERNATIVE_NS: u64 = 100;
/// In a stream, the copies of a packet on both sides overlap with those of its neighbours, which its half
/// round trip does not show: only this fraction of it counts in comparison with a message that is read. Two
/// cores of a Xeon with AMX: 8 KiB in windows of 64 take 0.64 us in packets and 1.05 read, alone 2.2 and
/// 2.0; 16 KiB alone 3.6 and 2.3. With all of it messages from 6 KiB on are read there, with half of it
/// from 20 KiB on.
const STREAMED: (u64, u64) = (3, 4);
/// Longest message whose copy takes little beside its start.
const SHORT_MESSAGE: u64 = 1 << 10;
/// Bounds of the bytes that can be copied in that time on any machine.
const SHORT_LEN: (u64, u64) = (64, 512);

/// Sizes, in bytes, at which another method becomes better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Data of at least this many bytes is sent in place instead of being copied into its packet (P4's
    /// iovec threshold); [`u64::MAX`]: copying is never worse.
    pub in_place_min: u64,
    /// Messages of at least this many bytes use rendezvous (P4's rendezvous threshold). At most
    /// [`UNEXPECTED_MAX`].
    pub rendezvous_min: u64,
    /// Messages of at least this many bytes send their data at once after the request to send, if the peer
    /// has a single, reliable rail; [`u64::MAX`]: the rail does not support it, or it was not measured.
    pub push_min: u64,
    /// Messages of at least this many bytes are read by their receiver from the sender's memory instead of
    /// being sent in a packet; [`u64::MAX`]: the rail does not support it, or it was not measured.
    pub read_min: u64,
    /// Messages of at least this many bytes use rendezvous although they could be read, since then both
    /// sides copy; [`u64::MAX`]: none.
    pub read_max: u64,
    /// Two pieces of data share a packet if the smaller one has at most this many bytes (P4's aggregation
    /// threshold); [`u64::MAX`]: always.
    pub aggregate_max: u64,
    /// Blocks of non-contiguous data of at least this many bytes are sent in place, shorter ones are packed
    /// (P1 section 5.3).
    pub block_min: u64,
    /// A share of a large message on this rail is at least this long: the length at which the bytes take as
    /// long as the start (P2 section 3.4, P3 figure 2).
    pub chunk_min: u64,
}

impl Thresholds {
    /// Returns the thresholds raised so that data shorter than `short_len` is copied into the packet at hand.
    /// If two methods take the same time within a few percent, noise decides between them, and a wrong
    /// decision for short data costs a program that sends much of it a system call per message.
    pub(super) fn at_least(mut self, short_len: u64) -> Thresholds {
        for from in [&mut self.in_place_min, &mut self.aggregate_max, &mut self.block_min] {
            *from = short_len.max(*from);
        }
        self
    }
}

/// Returns the bytes whose copying takes no longer than the least cost of any alternative.
pub(super) fn short_len(memcpy: Option<&Curve>) -> u64 {
    memcpy.map_or(SHORT_LEN.0, |curve| curve.bytes(ALTERNATIVE_NS).clamp(SHORT_LEN.0, SHORT_LEN.1))
}

/// Returns the size from which `second` is better than `first`: zero if it always is, [`u64::MAX`] if it
/// never is at a size where both were measured; `None` without a common size.
pub fn crossing(first: &[(u64, u64)], second: &[(u64, u64)]) -> Option<u64> {
    let (both, index) = change_at(first, second);
    match index {
        _ if both.is_empty() => None,
        0 => Some(0),
        index if index == both.len() => Some(u64::MAX),
        index => Some(between(both[index - 1], both[index])),
    }
}

/// Returns the measured sizes around a crossing; `None` if it is not between two sizes.
pub(super) fn changes_at(first: &[(u64, u64)], second: &[(u64, u64)]) -> Option<(u64, u64)> {
    let (both, index) = change_at(first, second);
    let above = both.get(index)?.0;
    Some((both.get(index.checked_sub(1)?)?.0, above))
}

/// Returns the sizes that both have measured, and the index from which the second is the better choice.
fn change_at(first: &[(u64, u64)], second: &[(u64, u64)]) -> (Vec<(u64, f64, f64)>, usize) {
    let both: Vec<(u64, f64, f64)> = first
        .iter()
        .filter_map(|&(len, a)| {
            let b = second.iter().find(|other| other.0 == len)?.1;
            Some((len, a as f64, b as f64))
        })
        .collect();
    let loss = |chosen: f64, other: f64| if chosen > other { chosen / other.max(1.0) - 1.0 } else { 0.0 };
    // Change before the first size: all sizes use the second method.
    let mut sum: f64 = both.iter().map(|&(_, a, b)| loss(b, a)).sum();
    let mut best = (sum, 0);
    for (index, &(_, a, b)) in both.iter().enumerate() {
        sum += loss(a, b) - loss(b, a);
        // Rounding errors of the running sum must not decide.
        if sum < best.0 - 1e-9 {
            best = (sum, index + 1);
        }
    }
    (both, best.1)
}

/// Returns where the lines between two sizes cross; the second size if they do not.
fn between(below: (u64, f64, f64), above: (u64, f64, f64)) -> u64 {
    let (before, after) = (below.2 - below.1, above.1 - above.2);
    if before <= 0.0 || after <= 0.0 {
        return above.0;
    }
    below.0 + ((above.0 - below.0) as f64 * before / (before + after)) as u64
}

/// Returns sizes and times of samples.
pub(super) fn points(samples: &[Sample]) -> Vec<(u64, u64)> {
    samples.iter().map(|sample| (sample.len, sample.ns)).collect()
}

/// Returns the better of copying and sending in place, by the threshold between them, for all sizes
/// measured with the chosen method.
pub(super) fn best_eager(copy: &[Sample], in_place: &[Sample], in_place_min: u64) -> Vec<(u64, u64)> {
    let copied = copy.iter().filter(|s| s.len < in_place_min || !in_place.iter().any(|o| o.len == s.len));
    let left = in_place.iter().filter(|s| s.len >= in_place_min);
    let mut best: Vec<(u64, u64)> = copied.chain(left).map(|sample| (sample.len, sample.ns)).collect();
    best.sort_unstable();
    best
}

/// Returns the rendezvous threshold: where the best eager method plus the copy of an unexpected message at
/// the receiver becomes slower than rendezvous. At most [`UNEXPECTED_MAX`], and at least the shortest
/// measured rendezvous.
pub(super) fn rendezvous_min(eager: &[(u64, u64)], rendezvous: &[(u64, u64)], memcpy: Option<&Curve>) -> u64 {
    let unexpected = unexpected(eager, memcpy);
    crossing(&unexpected, rendezvous).map_or(UNEXPECTED_MAX, |len| within(rendezvous, len))
}

/// Returns the threshold for pushed messages, whose data waits in the rail until a receive is posted.
pub(super) fn push_min(eager: &[(u64, u64)], pushed: &[(u64, u64)], memcpy: Option<&Curve>) -> u64 {
    let crossing = crossing(&unexpected(eager, memcpy), pushed);
    crossing.map_or(u64::MAX, |len| within(pushed, len))
}

/// Returns the sizes from which a message is read instead of sent in a packet, and from which it is sent by
/// rendezvous instead of read. The rail pushes such messages if it can, so their handshake does not count.
/// A packet is compared with a message that is read after scaling by [`STREAMED`].
pub(super) fn read(eager: &[(u64, u64)], read: &[(u64, u64)], body: &[(u64, u64)]) -> (u64, u64) {
    let streamed: Vec<(u64, u64)> =
        eager.iter().map(|&(len, ns)| (len, ns * STREAMED.0 / STREAMED.1)).collect();
    let from = crossing(&streamed, read).map_or(u64::MAX, |len| within(read, len));
    (from, crossing(read, body).unwrap_or(u64::MAX))
}

/// Limits a crossing to at least the shortest message measured with the other method: after a disturbance
/// during the eager measurements, a process would otherwise use rendezvous for every byte.
fn within(measured: &[(u64, u64)], len: u64) -> u64 {
    let shortest = measured.first().map_or(1, |shortest| shortest.0);
    len.clamp(shortest.clamp(1, UNEXPECTED_MAX), UNEXPECTED_MAX)
}

/// Returns the times of eager messages that arrive before their receive: they are copied once more. The
/// transfer includes such a copy, so a copy that takes longer than the whole transfer was disturbed when it
/// was measured.
pub(super) fn unexpected(eager: &[(u64, u64)], memcpy: Option<&Curve>) -> Vec<(u64, u64)> {
    eager.iter().map(|&(len, ns)| (len, ns + memcpy.map_or(0, |curve| curve.ns(len).min(ns)))).collect()
}

/// Returns the additional time of a second packet: the least difference between two messages in two packets
/// and the same in one, at sizes where sharing pays. `None`: it was not measured, or sharing never pays.
pub(super) fn packet_ns(shared: &[Sample], apart: &[Sample]) -> Option<u64> {
    let more = |one: &Sample| apart.iter().find(|two| two.len == one.len)?.ns.checked_sub(one.ns);
    shared.iter().take(4).filter_map(more).min()
}

/// Returns the length whose bytes take as long as the start.
pub(super) fn chunk_min(body: &Curve) -> u64 {
    body.bytes(body.start_ns().saturating_mul(2)).max(1)
}

/// Returns the length from which a block is left in place, from messages in blocks of several sizes. Longer
/// blocks than were measured always are; `None`: the longest ones were not measured, because time was short,
/// and those that were take less time copied.
pub(super) fn measured_block_min(packed: &[Sample], gathered: &[Sample]) -> Option<u64> {
    let longest = packed.last()?.len.min(gathered.last()?.len);
    let min = crossing(&points(packed), &points(gathered))?.min(2 * longest);
    (longest >= BLOCKS.1 || min <= longest).then_some(min)
}

/// Returns the shortest length that is longer than all blocks that were measured to take less time copied.
pub(super) fn copied_below(packed: &[Sample], gathered: &[Sample]) -> u64 {
    let left = |len: u64| gathered.iter().find(|sample| sample.len == len);
    let is_copied = |sample: &&Sample| left(sample.len).is_some_and(|left| sample.ns < left.ns);
    packed.iter().filter(is_copied).map(|sample| sample.len + 1).max().unwrap_or(0)
}

/// Returns an estimate of the length up to which a block is packed, without messages in blocks: copying its
/// bytes on both sides takes no longer than a piece in place does. What a piece takes is the median
/// difference of short messages in place and copied, which have one copy less, and at least
/// [`ALTERNATIVE_NS`]: single differences are within the noise of a message's time. Copies count by their
/// bytes alone, since the pieces of a message are copied one after the other.
pub(super) fn block_min(
    copy: &[Sample],
    in_place: &[Sample],
    memcpy: Option<&Curve>,
    in_place_min: u64,
) -> u64 {
    let Some(byte_ns) = memcpy.map(Curve::last_ns_per_byte).filter(|ns| *ns > 0.0) else {
        return in_place_min;
    };
    let piece_ns = |left: &Sample| {
        let copied = copy.iter().find(|copied| copied.len == left.len)?;
        Some(left.ns as i64 - copied.ns as i64 + (left.len as f64 * byte_ns) as i64)
    };
    let short = in_place.iter().take_while(|left| left.len <= SHORT_MESSAGE);
    let mut pieces: Vec<i64> = short.filter_map(piece_ns).collect();
    pieces.sort_unstable();
    let Some(&median) = pieces.get(pieces.len() / 2) else { return in_place_min };
    let ns = median.max(ALTERNATIVE_NS as i64);
    ((ns as f64 / (2.0 * byte_ns)) as u64).min(BLOCKS.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stay_in_place_from_where_that_takes_less() {
        let of = |ns: fn(u64) -> u64| -> Vec<Sample> {
            let sample = |len| Sample::of(len, &mut [ns(len)]).expect("a time");
            [64, 256, 1024, 4096, 16_384].into_iter().map(sample).collect()
        };
        // 64 KiB in blocks: a copy of 4,000 ns, or 50 ns for each block.
        let (packed, gathered) = (of(|_| 20_000), of(|len| 16_000 + 50 * (65_536 / len)));
        let min = measured_block_min(&packed, &gathered).expect("measured");
        assert!((700..1_024).contains(&min), "{min}");
        let never = of(|len| 30_000 + 50 * (65_536 / len));
        assert_eq!(measured_block_min(&packed, &never), Some(32_768), "longer ones are not copied");
        assert_eq!(measured_block_min(&packed, &[]), None);
        assert_eq!(
            measured_block_min(&packed[..2], &gathered),
            None,
            "blocks of 256 B say nothing of others"
        );
        assert_eq!((copied_below(&packed[..2], &gathered), copied_below(&packed, &[])), (257, 0));
        // Time was short, but not too short.
        let min = measured_block_min(&packed[..4], &gathered[..4]).expect("those of 1 KiB stay in place");
        assert!((700..1_024).contains(&min), "{min}");
    }

    #[test]
    fn without_messages_in_blocks_short_ones_are_packed_whatever_noise_says() {
        let of = |times: [u64; 4]| -> Vec<Sample> {
            let lens = [64, 256, 1024, 4096].into_iter().zip(times);
            lens.map(|(len, ns)| Sample::of(len, &mut [ns]).expect("a time")).collect()
        };
        // Ten bytes are copied in a nanosecond; messages take 5 us, and each time is off by some percent.
        let memcpy = Curve::line(150, 10_000_000_000);
        let copied = of([5_103, 5_523, 5_613, 6_625]);
        let min = |left| block_min(&copied, &of(left), Some(&memcpy), 43_046);
        assert_eq!(min([4_900, 5_273, 5_524, 6_846]), 500, "a piece takes 100 ns at least");
        // A piece takes 400 ns in the median of three.
        assert_eq!(min([5_103, 5_898, 6_500, 4_000]), 2_000);
        assert_eq!(min([90_000; 4]), BLOCKS.1, "there is a bound");
        assert_eq!(block_min(&copied, &[], Some(&memcpy), 43_046), 43_046, "nothing goes in place");
    }

    fn line(start: u64, per_byte: f64) -> Vec<(u64, u64)> {
        (0..16).map(|k| (1 << k, start + ((1u64 << k) as f64 * per_byte) as u64)).collect()
    }

    #[test]
    fn the_crossing_is_interpolated_between_its_neighbours() {
        // Equal at 600 bytes.
        let at = crossing(&line(1_000, 2.0), &line(1_600, 1.0)).unwrap();
        assert!((595..605).contains(&at), "{at}");
        assert_eq!(crossing(&line(1_000, 2.0), &line(900, 1.0)), Some(0), "always");
        assert_eq!(crossing(&line(900, 1.0), &line(1_000, 2.0)), Some(u64::MAX), "never");
        assert_eq!(crossing(&line(900, 1.0), &[]), None);
    }

    #[test]
    fn one_bad_sample_moves_no_crossing() {
        let mut second = line(1_600, 1.0);
        // At 8 bytes the second method seems much better, at 16 KiB worse.
        second[3].1 = 900;
        second[14].1 = 40_000;
        let at = crossing(&line(1_000, 2.0), &second).unwrap();
        assert!((595..605).contains(&at), "{at}");
    }

    #[test]
    fn the_rendezvous_threshold_includes_the_copy_of_unexpected_messages() {
        let memcpy = Curve::line(1, 1_000_000_000);
        let (eager, rendezvous) = (line(1_000, 1.0), line(9_000, 1.0));
        let at = rendezvous_min(&eager, &rendezvous, Some(&memcpy));
        assert!((7_990..8_010).contains(&at), "{at}: a copy of 8000 B costs what the handshake does");
        assert_eq!(rendezvous_min(&eager, &rendezvous, None), UNEXPECTED_MAX);
    }

    #[test]
    fn messages_are_read_if_a_packet_is_much_slower_and_a_body_not_faster() {
        let (eager, read, body) = (line(1_000, 1.0), line(1_600, 0.25), line(3_000, 0.125));
        let (from, below) = super::read(&eager, &read, &body);
        assert!((1_690..1_710).contains(&from), "{from}: three quarters of a packet take as long there");
        assert!((11_100..11_300).contains(&below), "{below}");
        assert_eq!(super::read(&eager, &[], &body), (u64::MAX, u64::MAX), "nobody measured it");
    }

    #[test]
    fn thresholds_are_never_below_the_measured_sizes() {
        // Two ranks on one core: each eager message waited until the other rank yielded the core.
        let (eager, rendezvous) = (line(541_000, 1.0), line(6_000, 1.0).split_off(10));
        assert_eq!(rendezvous_min(&eager, &rendezvous, None), 1024);
        assert_eq!(push_min(&eager, &rendezvous, None), 1024);
    }

    #[test]
    fn short_data_is_bounded_on_all_machines() {
        assert_eq!(short_len(Some(&Curve::line(1, 2_000_000_000))), 198);
        assert_eq!(
            short_len(Some(&Curve::line(5_000, 2_000_000_000))),
            SHORT_LEN.0,
            "measured beside others"
        );
        assert_eq!(short_len(None), SHORT_LEN.0);
    }

    #[test]
    fn a_chunk_is_worth_its_start() {
        assert_eq!(chunk_min(&Curve::line(2_000, 500_000_000)), 1_000);
    }
}
