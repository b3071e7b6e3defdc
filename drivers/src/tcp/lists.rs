//! The links of a rail that need attention.

/// Indices of peers whose links need attention.
#[derive(Debug, Default)]
pub struct Lists {
    /// Orders were posted since the last flush.
    pub touched: Vec<usize>,
    /// Output waits for room in the kernel.
    pub blocked: Vec<usize>,
    /// Data was sent whose delivery is not confirmed.
    pub unproven: Vec<usize>,
    /// Links that continue at the next poll: a pushed chunk was accepted, or bytes were read together with
    /// the end of a chunk.
    pub continuing: Vec<usize>,
}

impl Lists {
    /// Takes back the memory of a processed list.
    #[inline]
    pub fn reuse(&mut self, mut continued: Vec<usize>) {
        if !continued.is_empty() {
            continued.clear();
            continued.append(&mut self.continuing);
            self.continuing = continued;
        }
    }

    /// Removes a peer whose link has ended from all lists.
    pub fn forget(&mut self, gone: usize) {
        let Lists { touched, blocked, unproven, continuing } = self;
        for list in [touched, blocked, unproven, continuing] {
            list.retain(|index| *index != gone);
        }
    }
}
