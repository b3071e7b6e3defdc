//! Dropped datagrams: counted, and reported in the log at most once a second.

use log::Level;

/// Reason for dropping a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// Its sender does not know the secret of the job.
    Stranger,
    /// Its tag is not the link's.
    Forged,
    /// It was received before.
    Repeated,
    /// It comes from the address of a peer without a link, not yet or not any more.
    Untimely,
    /// It is shorter than its header or its length field.
    Truncated,
    /// It is a part of an order longer than a rail carries, or outside of its order.
    Malformed,
}

impl Stray {
    const ALL: [(Stray, &str); 6] = [
        (Stray::Stranger, "from strangers"),
        (Stray::Forged, "with a wrong tag"),
        (Stray::Repeated, "repeated"),
        (Stray::Untimely, "without a link"),
        (Stray::Truncated, "truncated"),
        (Stray::Malformed, "malformed"),
    ];
}

/// Counters of dropped datagrams.
#[derive(Debug, Default)]
pub struct Strays {
    counts: [u64; Stray::ALL.len()],
    told: [u64; Stray::ALL.len()],
    told_at_ms: Option<u64>,
}

impl Strays {
    /// Counts a dropped datagram.
    #[cold]
    pub fn count(&mut self, stray: Stray) {
        self.counts[stray as usize] += 1;
    }

    /// Number dropped so far for this reason.
    pub fn counted(&self, stray: Stray) -> u64 {
        self.counts[stray as usize]
    }

    /// Number dropped for any reason.
    pub fn all(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns a line for the log, if there is news and a second has passed since the last one. Drops that
    /// occur on any network, and wherever links open and end, are no warnings.
    pub fn news(&mut self, now_ms: u64) -> Option<(Level, String)> {
        if self.counts == self.told || self.told_at_ms.is_some_and(|at| now_ms < at + 1000) {
            return None;
        }
        self.told_at_ms = Some(now_ms);
        let new = Stray::ALL.iter().map(|(stray, words)| {
            let place = *stray as usize;
            (self.counts[place] - self.told[place], words)
        });
        let list: Vec<_> =
            new.filter(|(count, _)| *count > 0).map(|(n, words)| format!("{n} {words}")).collect();
        let is_new = |stray: Stray| self.counts[stray as usize] > self.told[stray as usize];
        let is_odd = [Stray::Stranger, Stray::Forged, Stray::Truncated, Stray::Malformed].map(is_new);
        let level = if is_odd.contains(&true) { Level::Warn } else { Level::Debug };
        self.told = self.counts;
        Some((level, format!("dropped datagrams: {}", list.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_drops_are_counted_and_logged_once_a_second() {
        let mut strays = Strays::default();
        assert_eq!(strays.news(0), None);
        let mut lines = Vec::new();
        for ms in 0..2500 {
            strays.count(if ms % 2 == 0 { Stray::Forged } else { Stray::Repeated });
            lines.extend(strays.news(ms));
        }
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[1], (Level::Warn, "dropped datagrams: 500 with a wrong tag, 500 repeated".into()));
        assert_eq!((strays.counted(Stray::Forged), strays.all()), (1250, 2500));
    }

    #[test]
    fn usual_drops_are_no_warning() {
        let mut strays = Strays::default();
        strays.count(Stray::Repeated);
        strays.count(Stray::Untimely);
        assert_eq!(
            strays.news(0),
            Some((Level::Debug, "dropped datagrams: 1 repeated, 1 without a link".into()))
        );
    }
}
