//! Operations on peers' memory that are under way: what each is a part of.

use super::adapter::{Adapter, Place, Posted};
use nmad_engine::memory::Segment;
use nmad_engine::packet::RequestId;
use nmad_engine::transfer::access::Act;

/// What an operation is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartOf {
    /// Of a chunk that is read, by its number on the link.
    Chunk(u32),
    /// Of an access.
    Access(RequestId),
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    /// The link, by the name of its endpoint.
    pub(crate) endpoint: u32,
    /// The chunk or the access that it belongs to.
    pub(crate) part_of: PartOf,
    /// Bytes.
    pub(crate) len: u64,
}

/// All of a rail, by the token with which they were posted.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    list: Vec<Option<Operation>>,
    free: Vec<u32>,
}

impl Operations {
    /// Posts one between memory here and there; false: there is no room for it.
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

    /// Adds one; its token.
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

    /// Takes one away; none: its link has ended meanwhile.
    pub(crate) fn take(&mut self, token: u32) -> Option<Operation> {
        let operation = self.list.get_mut(token as usize)?.take()?;
        self.free.push(token);
        Some(operation)
    }

    /// Forgets those of a link that has ended.
    pub(crate) fn forget(&mut self, endpoint: u32) {
        for token in 0..self.list.len() {
            if self.list[token].is_some_and(|operation| operation.endpoint == endpoint) {
                self.take(token as u32);
            }
        }
    }
}
