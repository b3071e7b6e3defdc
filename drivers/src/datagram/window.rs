//! Replay window: no datagram is taken twice (as RFC 4303, section 3.4.3).

const WORDS: usize = 65;
/// How far datagrams may be reordered; older ones are dropped. A few megabytes at the usual MTU. One word
/// less than the bitmap has, because the latest word may be only partly valid.
const WINDOW: u64 = (WORDS as u64 - 1) * 64;

/// The sequence numbers that a link has received.
#[derive(Debug)]
pub struct Window {
    /// One more than the highest number.
    next: u64,
    /// A bitmap of the last [`WINDOW`] numbers.
    taken: [u64; WORDS],
}

impl Window {
    /// An empty window.
    pub const fn new() -> Self {
        Window { next: 0, taken: [0; WORDS] }
    }

    /// Expands the lower half of a sequence number to the number nearest to the expected one.
    #[inline]
    pub fn expand(&self, low: u32) -> u64 {
        let ahead = low.wrapping_sub(self.next as u32) as i32;
        self.next.wrapping_add_signed(i64::from(ahead))
    }

    /// Returns whether a number was not received before; false, too, if it is too old to tell.
    #[inline]
    pub fn is_new(&self, sequence: u64) -> bool {
        let (word, bit) = (self.taken[(sequence / 64 % WORDS as u64) as usize], 1 << (sequence % 64));
        sequence >= self.next || (self.next - sequence <= WINDOW && word & bit == 0)
    }

    /// Marks a number with the right tag as received; false: it was received before, or is too old to tell.
    #[inline]
    pub fn take(&mut self, sequence: u64) -> bool {
        if !self.is_new(sequence) {
            return false;
        }
        if sequence >= self.next {
            self.advance(sequence);
        }
        self.taken[(sequence / 64 % WORDS as u64) as usize] |= 1 << (sequence % 64);
        true
    }

    #[inline]
    fn advance(&mut self, sequence: u64) {
        // Words that become part of the window hold old bits.
        let before = self.next.checked_sub(1).map_or(0, |highest| highest / 64 + 1);
        let entered = (sequence / 64 + 1).saturating_sub(before);
        for back in 0..entered.min(WORDS as u64) {
            self.taken[((sequence / 64 - back) % WORDS as u64) as usize] = 0;
        }
        self.next = sequence + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_taken_once_in_whatever_order() {
        let mut window = Window::new();
        for n in [5, 0, 3, 70, 64, 63, 4000, 1] {
            assert!(window.take(n), "{n}");
        }
        for n in [5, 0, 3, 70, 64, 63, 4000, 1] {
            assert!(!window.take(n), "{n} again");
        }
        assert!(window.take(WINDOW + 10));
        assert!(!window.take(4), "too old to tell");
        assert!(!window.take(70) && window.take(WINDOW + 9) && window.take(500) && !window.take(4000));
    }

    #[test]
    fn a_long_run_is_taken_and_its_repetition_is_not() {
        let mut window = Window::new();
        for n in 0..3 * WINDOW {
            assert!(window.take(n) && !window.take(n), "{n}");
        }
        assert!(window.take(100 * WINDOW), "a long gap");
        assert!(window.take(100 * WINDOW - 5) && !window.take(100 * WINDOW - WINDOW));
    }

    #[test]
    fn lower_halves_are_expanded_across_their_end() {
        let mut window = Window::new();
        assert_eq!(window.expand(3), 3);
        window.take((1 << 32) - 2);
        assert_eq!(window.expand(5), (1 << 32) + 5);
        assert_eq!(window.expand(u32::MAX - 100), (1 << 32) - 101);
    }
}
