//! How a request ended.

use crate::error::{Error, Owner, Result};
use crate::status::Status;

/// How a request ended. With an error the status says what is known nevertheless.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) status: Status,
    pub(crate) error: Option<Error>,
}

impl Ended {
    pub(crate) const fn well(status: Status) -> Ended {
        Ended { status, error: None }
    }

    pub(crate) fn badly(status: Status, error: Error) -> Ended {
        let status = Status { error: error.class(), sets_error: false, ..status };
        Ended { status, error: Some(error) }
    }

    /// It was an operation on this communicator, unless its error belongs to something else.
    pub(crate) fn on(self, comm: Option<impl Owner + 'static>) -> Ended {
        let owned = |error: Error| if error.owner().is_some() { error } else { error.on(comm) };
        Ended { error: self.error.map(owned), ..self }
    }

    /// The status, or the error.
    #[inline]
    pub(crate) fn answer(self) -> Result<Status> {
        match self.error {
            None => Ok(self.status),
            Some(error) => Err(error),
        }
    }
}
