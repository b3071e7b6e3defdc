//! The owner of an error of a request: the file whose access failed.

use super::File;
use crate::errhandler;
use crate::error::{Code, Owner};
use crate::handle::Comm;
use std::fmt;
use std::sync::Arc;

/// The file of an access that goes on.
#[derive(Clone)]
pub(super) struct Of(pub(super) Arc<File>);

impl fmt::Debug for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.handle().fmt(f)
    }
}

impl Owner for Of {
    fn handle(&self) -> Comm {
        self.0.on.handle
    }

    fn answer(&self, code: Code) -> Code {
        errhandler::call(&self.0.errhandler(), self.0.handle().0, code)
    }
}
