//! The few links on which something happened lately: they are read directly, without asking first.

/// Links read at each poll, at most. Asking for all others costs about as much as one read in vain.
const HOT: usize = 4;
/// Reads in vain after which a link makes room for those that had success.
const COLD_AFTER: u32 = 1024;

/// The hot links of a rail, by index.
#[derive(Debug, Default)]
pub struct Hot {
    links: Vec<(usize, u32)>,
}

impl Hot {
    /// How many there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// The link at place `place`.
    #[inline]
    pub fn at(&self, place: usize) -> Option<usize> {
        self.links.get(place).map(|(link, _)| *link)
    }

    /// Something happened on this link.
    #[inline]
    pub fn heat(&mut self, link: usize) {
        match self.links.iter_mut().find(|(hot, _)| *hot == link) {
            Some((_, vain)) => *vain = 0,
            None => self.insert(link),
        }
    }

    /// A read from the link at `place` was in vain.
    #[inline]
    pub fn cool(&mut self, place: usize) {
        let Some((_, vain)) = self.links.get_mut(place) else { return };
        *vain = vain.saturating_add(1);
        // A link that is alone stays: reading it costs no more than asking for all.
        if *vain > COLD_AFTER && self.links.len() > 1 {
            self.links.swap_remove(place);
        }
    }

    /// The link is gone.
    pub fn forget(&mut self, link: usize) {
        self.links.retain(|(hot, _)| *hot != link);
    }

    fn insert(&mut self, link: usize) {
        if self.links.len() == HOT {
            let coldest = (0..HOT).max_by_key(|place| self.links[*place].1).unwrap_or(0);
            self.links.swap_remove(coldest);
        }
        self.links.push((link, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coldest_makes_room_and_the_last_one_stays() {
        let mut hot = Hot::default();
        (0..HOT).for_each(|link| hot.heat(link));
        hot.cool(2);
        hot.heat(99);
        let mut links: Vec<_> = (0..hot.count()).filter_map(|place| hot.at(place)).collect();
        links.sort_unstable();
        assert_eq!(links, [0, 1, 3, 99]);
        for _ in 0..=COLD_AFTER * HOT as u32 {
            (0..hot.count()).rev().for_each(|place| hot.cool(place));
        }
        assert_eq!(hot.count(), 1);
    }
}
