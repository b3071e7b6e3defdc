//! Operations on peers' memory that are under way: maps each one to the chunk or access that it belongs to.

use super::adapter::{Adapter, Place, Posted};
use nmad_engine::memory::Segment;
use nmad_engine::packet::RequestId;
use nmad_engine::transfer::access::Act;

/// The owner of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A chunk that is read, by its number on the link.
    Chunk(u32),
    /// An access to exposed memory.
    Access(RequestId),
}

/// An operation under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    /// The link, by the name of its endpoint.
    pub(crate) endpoint: u32,
    /// The chunk or the access that it belongs to.
    pub(crate) owner: Owner,
    /// Length in bytes.
    pub(crate) len: u64,
}

/// All operations of a rail, by token.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    list: Vec<Option<Operation>>,
    free: Vec<u32>,
}

impl Operations {
    /// Posts an operation between local and remote memory; false: there is no room for it.
    ///
    /// # Errors
    /// The endpoint has failed.
    pub(crate) fn post<A: Adapter>(
        &mut self,
        operation: Operation,
        (adapter, endpoint): (&mut A, &mut A::Endpoint),
        act: Act,
        here: (Segment, &A::Region),
        there: Place,
    ) -> Result<bool, String> {
        let token = self.add(operation);
        let posted = adapter.operate(endpoint, act, here, there, token);
        if matches!(posted, Ok(Posted::Full) | Err(_)) {
            self.take(token);
        }
        Ok(posted? != Posted::Full)
    }

    /// Adds an operation; returns its token.
    fn add(&mut self, operation: Operation) -> u32 {
        match self.free.pop() {
            Some(token) => {
                self.list[token as usize] = Some(operation);
                token
            }
            None => {
                self.list.push(Some(operation));
                self.list.len() as u32 - 1
            }
        }
    }

    /// Removes a completed operation; none: its link has ended meanwhile.
    pub(crate) fn take(&mut self, token: u32) -> Option<Operation> {
        let operation = self.list.get_mut(token as usize)?.take()?;
        self.free.push(token);
        Some(operation)
    }

    /// Removes the operations of a link that has ended.
    pub(crate) fn forget(&mut self, endpoint: u32) {
        for token in 0..self.list.len() {
            if self.list[token].is_some_and(|operation| operation.endpoint == endpoint) {
                self.take(token as u32);
            }
        }
    }
}
