//! Predicts whether the next packet comes alone, from the pattern of the last ones.

/// The pattern of the last packets.
#[derive(Debug, Default)]
pub struct Rhythm {
    /// Packets received since this side last sent something.
    row: u32,
    /// The last packet that this side sent was the answer to a single one.
    turns: bool,
}

impl Rhythm {
    /// Returns whether the first packet is probably the only one, which is answered before the next one
    /// comes. Polling for a second one would take the line of the next cell from the writer, and delay the
    /// answer until the line has come over.
    #[inline]
    pub fn is_turn(&self) -> bool {
        self.turns && self.row == 0
    }

    /// Records that `count` packets were read.
    #[inline]
    pub fn read(&mut self, count: u32) {
        self.row = self.row.saturating_add(count);
    }

    /// Records that this side has sent something.
    #[inline]
    pub fn answered(&mut self) {
        self.turns = self.row == 1;
        self.row = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
