//! When the reader of a ring looks at the next cell.
//!
//! A reader that looks at a cell before it is written takes the line away from the writer, which has to fetch
//! it again, for each packet. While the peer sends one packet after the other, a reader that has emptied the
//! ring waits for some packets' time, and then finds several of them for one trip of a line each way. In
//! windows of 64 messages of 8 B that is worth 8.1 -> 11 million a second between cores that share no cache
//! (Zen 3), and costs 20.7 -> 19.7 between near ones (Zen 5).

/// Pauses of the processor before the next look, some 10 to 40 ns each. Zen 4: none, half and twice are
/// within the spread, also between far cores.
const PAUSES: u32 = 8;
/// The peer sends one packet after the other when it has sent this number without an answer. Zen 4: half and
/// twice are within the spread.
const ROW: u32 = 4;

/// What the last packets tell.
#[derive(Debug, Default)]
pub struct Rhythm {
    /// Packets since this side has sent something.
    row: u32,
    /// The next look is put off.
    is_late: bool,
    /// The last packet that this side sent answered a single one.
    turns: bool,
}

impl Rhythm {
    /// Before the next look: puts it off while the peer sends one packet after the other.
    #[inline]
    pub fn keep(&mut self) {
        if std::mem::take(&mut self.is_late) {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
    }

    /// Whether the first packet is probably the only one, to be answered before there is another. A look for
    /// a second one would take the line of the next cell from the writer, and delay the answer until that
    /// line is here.
    #[inline]
    pub fn is_turn(&self) -> bool {
        self.turns && self.row == 0
    }

    /// `count` packets were read.
    #[inline]
    pub fn read(&mut self, count: u32) {
        self.row = self.row.saturating_add(count);
        self.is_late = self.row >= ROW;
    }

    /// This side has sent something.
    #[inline]
    pub fn answered(&mut self) {
        self.turns = self.row == 1;
        self.row = 0;
        self.is_late = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_look_is_put_off_in_a_row_until_there_is_an_answer() {
        let mut rhythm = Rhythm::default();
        for _ in 0..64 {
            rhythm.read(3);
            assert!(!rhythm.is_late, "no row yet");
            for _ in 0..40 {
                rhythm.read(1);
                assert!(rhythm.is_late);
                rhythm.keep();
                assert!(!rhythm.is_late, "once");
            }
            rhythm.answered();
            assert!(rhythm.row == 0 && !rhythm.is_late);
        }
    }

    #[test]
    fn a_side_that_takes_turns_looks_for_one_packet() {
        let mut rhythm = Rhythm::default();
        assert!(!rhythm.is_turn(), "nothing is known");
        rhythm.read(1);
        rhythm.answered();
        assert!(rhythm.is_turn());
        rhythm.read(1);
        assert!(!rhythm.is_turn(), "there was another one");
        rhythm.read(1);
        rhythm.answered();
        assert!(!rhythm.is_turn());
    }
}
