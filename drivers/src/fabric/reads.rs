//! Reads of peers' memory that are under way: which chunk each belongs to.

/// A read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Read {
    /// The link, by the name of its endpoint.
    pub(crate) endpoint: u32,
    /// Number of the chunk on the link.
    pub(crate) chunk: u32,
    /// Bytes.
    pub(crate) len: u64,
}

/// All of a rail, by the token with which they were posted.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    list: Vec<Option<Read>>,
    free: Vec<u32>,
}

impl Reads {
    /// Adds one; its token.
    pub(crate) fn add(&mut self, read: Read) -> u32 {
        match self.free.pop() {
            Some(token) => {
                self.list[token as usize] = Some(read);
                token
            }
            None => {
                self.list.push(Some(read));
                self.list.len() as u32 - 1
            }
        }
    }

    /// Takes one away; none: its link has ended meanwhile.
    pub(crate) fn take(&mut self, token: u32) -> Option<Read> {
        let read = self.list.get_mut(token as usize)?.take()?;
        self.free.push(token);
        Some(read)
    }

    /// Forgets those of a link that has ended.
    pub(crate) fn forget(&mut self, endpoint: u32) {
        for token in 0..self.list.len() {
            if self.list[token].is_some_and(|read| read.endpoint == endpoint) {
                self.take(token as u32);
            }
        }
    }
}
