//! Communicators with the handles that stand for them, also after these were freed.
//!
//! An operation that goes on when its communicator is freed still belongs to it: its error handler is
//! called if the operation fails. Messages under way hold only the handle, since they are many; so the
//! handle stands for nothing else until all of them have ended, and every holder has let go of the
//! communicator.

use super::{COMMS, Communicator, share};
use crate::errhandler;
use crate::error::{Code, Owner, Result};
use crate::handle::Comm;
use crate::orphans::Orphans;
use crate::world::World;
use std::fmt;
use std::sync::Arc;

/// A communicator to keep, and its handle.
#[derive(Clone)]
pub(crate) struct Named {
    pub(crate) comm: Arc<Communicator>,
    pub(crate) handle: Comm,
}

/// Those whose handles were freed, and may still be asked for by messages under way.
static FREED: Orphans<Named> = Orphans::new();

/// Requests to look at that take as long as freeing a communicator.
const REQUESTS: usize = 256;

impl Named {
    /// That of a handle.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn of(handle: Comm) -> Result<Named> {
        Ok(Named { comm: share(handle)?, handle })
    }

    /// That of a message which has not been taken from the engine yet; its handle may be freed.
    #[cold]
    pub(crate) fn of_message(handle: Comm) -> Option<Named> {
        let named = Named::of(handle).ok();
        named.or_else(|| FREED.find(|named| (named.handle == handle).then(|| named.clone())))
    }
}

/// Which freed communicators nothing belongs to any more that goes on.
fn are_over(world: &World) -> impl FnMut(&mut Named) -> bool + '_ {
    let mut owed = None;
    // Nobody but us has it, so nobody can begin anything on it.
    move |named| {
        Arc::strong_count(&named.comm) == 1
            && !owed
                .get_or_insert_with(|| world.node().with(|e| e.inspect().owed()))
                .has(named.comm.context())
    }
}

/// Lets go of freed communicators on which nothing goes on any more.
pub(crate) fn let_go(world: &World) {
    release(FREED.sweep(are_over(world)));
}

fn release(over: Vec<Named>) {
    for Named { comm, handle } in over {
        drop(comm);
        COMMS.release(handle.0);
    }
}

/// Frees a handle. It can be given out again when what goes on has ended.
pub(crate) fn free(handle: Comm, world: &World) {
    let Some(comm) = COMMS.hide(handle.0) else { return };
    let idle = world.node().with(|engine| engine.inspect().request_places()) / REQUESTS;
    release(FREED.add(Named { comm, handle }, idle, are_over(world)));
}

impl Owner for Named {
    fn handle(&self) -> Comm {
        self.handle
    }

    fn answer(&self, code: Code) -> Code {
        errhandler::call(&self.comm.errhandler(), self.handle.0, code)
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Named) -> bool {
        Arc::ptr_eq(&self.comm, &other.comm)
    }
}

impl Eq for Named {}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}
