//! The few recently active links, which are read directly without an `epoll_wait` first.

/// Links read at each poll, at most. `epoll_wait` for all others costs about as much as one empty read.
const HOT: usize = 4;
/// Consecutive empty reads after which a link is no longer hot.
const COLD_AFTER: u32 = 1024;

/// The hot links of a rail, by index.
#[derive(Debug, Default)]
pub struct Hot {
    links: Vec<(usize, u32)>,
}

impl Hot {
    /// Number of hot links.
    #[inline]
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// The hot link at index `place`.
    #[inline]
    pub fn at(&self, place: usize) -> Option<usize> {
        self.links.get(place).map(|(link, _)| *link)
    }

    /// Returns whether a link is hot.
    #[inline]
    pub fn has(&self, link: usize) -> bool {
        self.iter().any(|hot| hot == link)
    }

    /// All hot links.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.links.iter().map(|(link, _)| *link)
    }

    /// Marks a link as active. Returns the link that it displaces, if any.
    #[inline]
    pub fn heat(&mut self, link: usize) -> Option<usize> {
        match self.links.iter_mut().find(|(hot, _)| *hot == link) {
            Some((_, empty_reads)) => {
                *empty_reads = 0;
                None
            }
            None => self.insert(link),
        }
    }

    /// Records an empty read of the link at index `place`. Returns the link if it is no longer hot.
    #[inline]
    pub fn cool(&mut self, place: usize) -> Option<usize> {
        let (_, empty_reads) = self.links.get_mut(place)?;
        *empty_reads = empty_reads.saturating_add(1);
        // The only hot link stays: reading it costs no more than `epoll_wait`.
        (*empty_reads > COLD_AFTER && self.links.len() > 1).then(|| self.links.swap_remove(place).0)
    }

    /// Removes a link that was closed.
    pub fn forget(&mut self, link: usize) {
        self.links.retain(|(hot, _)| *hot != link);
    }

    fn insert(&mut self, link: usize) -> Option<usize> {
        let full = self.links.len() == HOT;
        let coldest = (0..HOT).filter(|_| full).max_by_key(|place| self.links[*place].1);
        let out = coldest.map(|place| self.links.swap_remove(place).0);
        self.links.push((link, 0));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coldest_makes_room_and_the_last_one_stays() {
        let mut hot = Hot::default();
        (0..HOT).for_each(|link| assert_eq!(hot.heat(link), None));
        hot.cool(2);
        assert_eq!(hot.heat(99), Some(2));
        let mut links: Vec<_> = hot.iter().collect();
        links.sort_unstable();
        assert_eq!(links, [0, 1, 3, 99]);
        let mut gone = 0;
        for _ in 0..=COLD_AFTER * HOT as u32 {
            gone += (0..hot.count()).rev().filter(|place| hot.cool(*place).is_some()).count();
        }
        assert_eq!((gone, hot.count()), (HOT - 1, 1));
    }
}
