//! How requests ended, until somebody asks.

use crate::node::Outcome;
use nmad_engine::{Completion, RequestId};

/// Results by the place that the request had in the engine's table. A place is reused only after its
/// request ended, so two ended requests can share one; the older result then moves to `older`.
#[derive(Debug, Default)]
pub(crate) struct Results {
    places: Vec<Option<(RequestId, Outcome)>>,
    older: Vec<(RequestId, Outcome)>,
}

impl Results {
    #[inline]
    pub(crate) fn put(&mut self, completion: Completion) {
        let Completion { request, result } = completion;
        let index = request.0 as u32 as usize;
        if index >= self.places.len() {
            self.places.resize_with(index + 1, || None);
        }
        if let Some(older) = self.places[index].replace((request, result)) {
            self.older.push(older);
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, request: RequestId) -> Option<Outcome> {
        let place = self.places.get_mut(request.0 as u32 as usize)?;
        if place.as_ref().is_some_and(|(other, _)| *other == request) {
            return place.take().map(|(_, outcome)| outcome);
        }
        let index = self.older.iter().position(|(other, _)| *other == request)?;
        Some(self.older.swap_remove(index).1)
    }

    #[inline]
    pub(crate) fn has(&self, request: RequestId) -> bool {
        let place = self.places.get(request.0 as u32 as usize).and_then(|p| p.as_ref());
        place.is_some_and(|(other, _)| *other == request)
            || self.older.iter().any(|(other, _)| *other == request)
    }
}
