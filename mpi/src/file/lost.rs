//! Waiting with others for others: of a rank that is gone nothing comes, also not from those that wait for
//! it.

use super::File;
use crate::error::{Class, Error, Result};
use crate::world::world;
use newmadeleine::engine::PeerId;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Time between two looks for ranks that are gone.
const CHECK: Duration = Duration::from_millis(10);

/// Something that ends when a rank of the file is gone.
pub(super) struct UnlessLost<F> {
    file: Arc<File>,
    inner: Pin<Box<F>>,
    checked: Option<Instant>,
}

impl<F> UnlessLost<F> {
    pub(super) fn new(file: Arc<File>, inner: F) -> UnlessLost<F> {
        UnlessLost { file, inner: Box::pin(inner), checked: None }
    }
}

impl<R, F: Future<Output = Result<R>>> Future for UnlessLost<F> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R>> {
        if let Poll::Ready(ended) = self.inner.as_mut().poll(context) {
            return Poll::Ready(ended);
        }
        let since = self.checked.get_or_insert_with(Instant::now);
        if since.elapsed() < CHECK {
            return Poll::Pending;
        }
        *since = Instant::now();
        lost(&self.file).map_or(Poll::Pending, |error| Poll::Ready(Err(error)))
    }
}

/// A rank of the file that is gone, if there is one.
fn lost(file: &File) -> Option<Error> {
    let world = world().ok()?;
    let processes = file.on.comm.local().processes();
    let (rank, why) = world.node().with(|engine| {
        let failure = |process: &u32| engine.inspect().failure(PeerId(*process)).map(|why| why.to_string());
        processes.iter().enumerate().find_map(|(rank, process)| Some((rank, failure(process)?)))
    })?;
    let text =
        format_args!("rank {rank} is gone: {why}; what this access has written up to now stays in the file");
    Some(file.error(Class::PROC_ABORTED, text))
}
