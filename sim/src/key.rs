//! Names of links.

/// One side of a link: fabric, this host, the other host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Which network.
    pub fabric: usize,
    /// This side.
    pub me: usize,
    /// The other side.
    pub peer: usize,
}

impl Key {
    /// The same link from the other side.
    pub fn reverse(self) -> Key {
        Key { me: self.peer, peer: self.me, ..self }
    }
}
