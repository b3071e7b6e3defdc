//! Dropped datagrams: counted, and reported in the log at most once a second.

use log::Level;

/// Why a datagram is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// From a sender that does not know the secret of the job.
    Stranger,
    /// With a tag that is not the link's.
    Forged,
    /// It was taken before.
    Repeated,
    /// From the address of a peer to which there is no link, not yet or not any more.
    Untimely,
    /// Not as long as it says, or too short to say.
    Truncated,
    /// Part of something longer than a rail carries, or not where it could belong.
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

/// How many were dropped.
#[derive(Debug, Default)]
pub struct Strays {
    counts: [u64; Stray::ALL.len()],
    told: [u64; Stray::ALL.len()],
    told_at_ms: Option<u64>,
}

impl Strays {
    /// Another one. Whether there is something to tell.
    #[cold]
    pub fn count(&mut self, stray: Stray) {
        self.counts[stray as usize] += 1;
    }

    /// How many so far.
    pub fn counted(&self, stray: Stray) -> u64 {
        self.counts[stray as usize]
    }

    /// How many for any reason.
    pub fn all(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What the log should say now, if a second has passed since it said something. What happens on any
    /// network, and wherever links open and end, is nothing to warn of.
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
    fn all_are_counted_and_one_line_a_second_is_told() {
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
    fn what_is_usual_is_no_warning() {
        let mut strays = Strays::default();
        strays.count(Stray::Repeated);
        strays.count(Stray::Untimely);
        assert_eq!(
            strays.news(0),
            Some((Level::Debug, "dropped datagrams: 1 repeated, 1 without a link".into()))
        );
    }
}
