//! How close the reader of a ring stays behind a peer who sends one packet after the other.
//!
//! Who looks at a cell before it is written takes its line away from the writer, who has to fetch it again,
//! for each packet. Who leaves the ring alone for a while when it was read to its end finds several packets
//! there, for one trip each way. On cores that are not near to each other that is worth more than it costs
//! (8 B, windows of 64: 8.1 -> 11 million a second), on near ones, where a trip takes no longer than three
//! packets, less (20.7 -> 19.7). So both are tried.

use super::duel::{Choice, Duel};
use std::time::Instant;

/// The ring is left alone for so many pauses of the processor, some 10 to 40 ns each.
const PAUSES: u32 = 8;
/// The peer sends one packet after the other when it has sent so many without an answer.
const ROW: u32 = 4;
/// Rows that are shorter tell nothing about the way.
const LEAST: u32 = 32;
/// A row that does not end is taken for several that are so long.
const MOST: u32 = 1024;
/// One row in so many is measured while nothing is tried: asking for the time takes as long as some packets.
const SAMPLE: u32 = 8;

/// The ways: look again at once, or pause.
const PAUSE: usize = 1;

/// How a link is read.
#[derive(Debug, Default)]
pub struct Lag {
    /// Packets since this side has left something.
    row: u32,
    /// What was decided for this row.
    way: usize,
    /// The next look is put off.
    lags: bool,
    /// The last packet that this side left answered a single one.
    turns: bool,
    /// The end of the row before, if this one is measured.
    begun: Option<Instant>,
    rows: u32,
    duel: Duel<2>,
}

impl Lag {
    /// Before the next look: puts it off, if so decided.
    #[inline]
    pub fn keep(&mut self) {
        if std::mem::take(&mut self.lags) {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
    }

    /// Whether the first packet is probably the only one, to be answered before there is another. Looking for
    /// one all the same would take the line of the next cell from the writer, and the processor has little
    /// else to do until it is here: the answer would wait for it.
    #[inline]
    pub fn is_turn(&self) -> bool {
        self.turns && self.row == 0
    }

    /// So many packets were read.
    #[inline]
    pub fn read(&mut self, count: u32) {
        self.row += count;
        self.lags = self.row >= ROW && self.way == PAUSE;
        if self.row >= MOST {
            self.end();
        }
    }

    /// This side has left something.
    #[inline]
    pub fn answered(&mut self) {
        self.turns = self.row == 1;
        if self.row >= ROW {
            self.end();
        }
        self.row = 0;
        self.lags = false;
    }

    /// A row is over: what it tells, and how the next one goes. Its time counts from the end of the row
    /// before, since who is late finds much of it there at once.
    #[cold]
    #[inline(never)]
    fn end(&mut self) {
        let count = std::mem::take(&mut self.row);
        if let Some(begun) = self.begun.take()
            && count >= LEAST
        {
            self.duel.note(self.way, f64::from(count) / (begun.elapsed().as_nanos() as f64).max(1.0));
        }
        let Choice { way, is_trial } = self.duel.choose(true);
        self.way = way;
        self.rows = self.rows.wrapping_add(1);
        self.begun = (is_trial || self.rows.is_multiple_of(SAMPLE)).then(Instant::now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_goes_one_way_and_both_are_tried() {
        let mut lag = Lag::default();
        let mut seen = [0; 2];
        for _ in 0..64 {
            lag.read(3);
            assert!(!lag.lags, "no row yet");
            let way = lag.way;
            for _ in 0..40 {
                lag.read(1);
                assert_eq!((lag.way, lag.lags), (way, way == PAUSE));
            }
            seen[way] += 1;
            lag.answered();
            assert!(lag.row == 0 && !lag.lags);
        }
        assert!(seen[0] >= 6 && seen[1] >= 6, "{seen:?}");
    }

    #[test]
    fn who_takes_turns_looks_for_one_packet() {
        let mut lag = Lag::default();
        assert!(!lag.is_turn(), "nothing is known");
        lag.read(1);
        lag.answered();
        assert!(lag.is_turn());
        lag.read(1);
        assert!(!lag.is_turn(), "there was another one");
        lag.read(1);
        lag.answered();
        assert!(!lag.is_turn());
    }

    #[test]
    fn a_row_that_is_there_at_once_is_measured_as_well() {
        let mut lag = Lag::default();
        for _ in 0..12 {
            lag.read(64);
            lag.answered();
        }
        let known = format!("{:?}", lag.duel);
        assert!(!known.contains("count: 0"), "both ways: {known}");
    }

    #[test]
    fn a_row_without_end_is_decided_again() {
        let mut lag = Lag::default();
        (0..40 * MOST).for_each(|_| lag.read(1));
        assert_eq!(lag.rows, 40);
    }
}
