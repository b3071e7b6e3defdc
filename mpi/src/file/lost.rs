//! Accesses of all ranks, of which one may die: the others would wait for it, or for ranks that wait for it,
//! forever.

use super::File;
use crate::error::{Error, Result};
use crate::health::class_of_loss;
use crate::lost::{Checks, first_lost};
use crate::world::world;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A future that ends with an error when a rank of the file is gone.
pub(super) struct UnlessLost<F> {
    file: Arc<File>,
    inner: Pin<Box<F>>,
    checks: Checks,
}

impl<F> UnlessLost<F> {
    pub(super) fn new(file: Arc<File>, inner: F) -> UnlessLost<F> {
        UnlessLost { file, inner: Box::pin(inner), checks: Checks::default() }
    }
}

impl<R, F: Future<Output = Result<R>>> Future for UnlessLost<F> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R>> {
        if let Poll::Ready(ended) = self.inner.as_mut().poll(context) {
            return Poll::Ready(ended);
        }
        let lost = if self.checks.is_due() { lost(&self.file) } else { None };
        lost.map_or(Poll::Pending, |error| Poll::Ready(Err(error)))
    }
}

/// Returns the error of the first rank of the file that is gone, if there is one.
fn lost(file: &File) -> Option<Error> {
    let world = world().ok()?;
    let (rank, why) = first_lost(world, file.on.comm.local().processes())?;
    let text =
        format_args!("rank {rank} is gone: {why}; what this access has written up to now stays in the file");
    Some(file.error(class_of_loss(), text))
}
