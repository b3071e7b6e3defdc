//! Error handlers: what happens with an error that a call has found.

use crate::comm::Named;
use crate::error::{Class, Error, Result};
use crate::handle::{Comm, DYNAMIC, Errhandler, Group, Session, Win};
use crate::objects;
use crate::session;
use crate::table::Table;
use crate::window;
use crate::world::world;
use newmadeleine::initial_errhandler::{NAMES, VARIABLE};
use newmadeleine::tell_user;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

/// Handlers that programs made.
static HANDLERS: Table<Handler> = Table::new(DYNAMIC);

/// What a front gives back to its caller: the class, and where the words are that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// Class, or code above [`Class::LAST`] that the program has added.
    pub class: Class,
    /// 1 to 127: for [`text_of`]; 0: nothing is known but the class.
    pub detail: u8,
}

/// A handler of the program's: it is given the handle of the object (the core's), and the code.
pub type Callback = Box<dyn Fn(u32, Code) + Send + Sync>;

/// An error handler.
pub(crate) struct Handler {
    kind: Kind,
    /// The handle and how often it was given out; zero handles are none.
    handle: Mutex<(Errhandler, u32)>,
}

enum Kind {
    /// Ends the job.
    Fatal,
    /// Ends the processes of the communicator; here: the job.
    Abort,
    /// Answers the error.
    Return,
    User(Callback),
}

impl Handler {
    fn new(kind: Kind, handle: Errhandler) -> Arc<Handler> {
        Arc::new(Handler { kind, handle: Mutex::new((handle, 0)) })
    }

    fn handle(&self) -> MutexGuard<'_, (Errhandler, u32)> {
        self.handle.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

static PREDEFINED: LazyLock<[Arc<Handler>; 3]> = LazyLock::new(|| {
    [
        Handler::new(Kind::Fatal, Errhandler::FATAL),
        Handler::new(Kind::Abort, Errhandler::ABORT),
        Handler::new(Kind::Return, Errhandler::RETURN),
    ]
});

/// The handler that new objects have: it ends the job.
pub(crate) fn fatal() -> Arc<Handler> {
    PREDEFINED[0].clone()
}

/// The handler that `MPI_COMM_WORLD` and `MPI_COMM_SELF` begin with, and that counts before (MPI 4.1, section
/// 11.5).
///
/// # Errors
/// The environment names none of the predefined ones.
pub(crate) fn initial() -> Result<Arc<Handler>> {
    named(&std::env::var(VARIABLE).unwrap_or_default())
}

fn named(name: &str) -> Result<Arc<Handler>> {
    let known = NAMES.iter().position(|known| *known == name);
    match known.or(name.is_empty().then_some(0)) {
        Some(index) => Ok(PREDEFINED[index].clone()),
        None => Err(Class::ARG
            .error(format!("{VARIABLE}: '{name}' is no error handler (there are: {})", NAMES.join(", ")))),
    }
}

/// The handler of a handle.
///
/// # Errors
/// There is none.
pub(crate) fn lookup(handle: Errhandler) -> Result<Arc<Handler>> {
    let found = match handle.0 {
        1..=3 => Some(PREDEFINED[handle.0 as usize - 1].clone()),
        index => HANDLERS.share(index),
    };
    found.ok_or_else(|| {
        Class::ERRHANDLER.error(match handle {
            Errhandler::NULL => "the error handler is MPI_ERRHANDLER_NULL".to_string(),
            Errhandler(index) => format!("there is no error handler {index}: it never was, or is freed"),
        })
    })
}

/// A handler of the program's: its handle.
pub(crate) fn create(callback: Callback) -> Errhandler {
    give_out(&Handler::new(Kind::User(callback), Errhandler::NULL))
}

/// A handle for a handler, to be freed like every other.
pub(crate) fn give_out(handler: &Arc<Handler>) -> Errhandler {
    let mut handle = handler.handle();
    if matches!(handler.kind, Kind::User(_)) {
        if handle.1 == 0 {
            handle.0 = Errhandler(HANDLERS.insert(handler.clone()));
        }
        handle.1 += 1;
    }
    handle.0
}

/// Takes a handle back; objects that use the handler keep it.
pub(crate) fn free(errhandler: &mut Errhandler) -> Result<()> {
    let handler = lookup(*errhandler)?;
    let mut handle = handler.handle();
    handle.1 = handle.1.saturating_sub(1);
    if handle.1 == 0 && errhandler.0 >= DYNAMIC {
        HANDLERS.remove(errhandler.0);
    }
    *errhandler = Errhandler::NULL;
    Ok(())
}

/// The words of the latest errors.
static WORDS: Mutex<VecDeque<(u8, String)>> = Mutex::new(VecDeque::new());

/// Most errors whose words are kept.
const WORDS_MAX: usize = 64;
/// Highest number of an error's words.
const DETAIL_MAX: u8 = 127;

fn words() -> MutexGuard<'static, VecDeque<(u8, String)>> {
    WORDS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn keep_words(error: &Error) -> u8 {
    let mut words = words();
    let detail = words.back().map_or(1, |(last, _)| last % DETAIL_MAX + 1);
    if words.len() == WORDS_MAX {
        words.pop_front();
    }
    words.push_back((detail, error.to_string()));
    detail
}

/// The words that belong to a code, if they are still known.
pub(crate) fn text_of(code: Code) -> Option<String> {
    let words = words();
    words.iter().rev().find(|(detail, _)| *detail == code.detail).map(|(_, text)| text.clone())
}

/// Whether the program has set the handlers of `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
static WAS_SET: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// The program has set the handler of a communicator.
pub(crate) fn was_set(comm: Comm) {
    if let Some(place) = [Comm::WORLD, Comm::SELF].iter().position(|known| *known == comm) {
        WAS_SET[place].store(true, Ordering::Relaxed);
    }
}

/// The communicator whose handler hears of errors that belong to no object: `MPI_COMM_SELF` (MPI 4.0, section
/// 9.3). Before MPI 4 it was `MPI_COMM_WORLD`, which is asked if the program has set its handler and not the
/// other's.
fn of_nothing() -> Comm {
    match WAS_SET.each_ref().map(|set| set.load(Ordering::Relaxed)) {
        [true, false] => Comm::WORLD,
        _ => Comm::SELF,
    }
}

/// What a call is about: whose handler hears of its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// Nothing in particular.
    None,
    /// A communicator.
    Comm(Comm),
    /// A session.
    Session(Session),
    /// A group, which has the handler of the session that it was made from.
    Group(Group),
    /// A window.
    Win(Win),
    /// The object that the call makes, with this handler.
    New(Errhandler),
}

/// The handler of an object, and the object's handle for it.
fn handler_of(object: Object) -> Option<(Arc<Handler>, u32)> {
    match object {
        Object::None => None,
        Object::Comm(comm) => Named::of(comm).ok().map(|named| (named.comm.errhandler(), comm.0)),
        Object::Session(handle) => session::lookup(handle).ok().map(|found| (found.errhandler(), handle.0)),
        Object::Win(handle) => window::lookup(handle).ok().map(|found| (found.errhandler(), handle.0)),
        Object::Group(group) => {
            let session = objects::group(group).ok()?.session()?.clone();
            Some((session.errhandler(), session.handle().0))
        }
        Object::New(handle) => lookup(handle).ok().map(|handler| (handler, 0)),
    }
}

/// An error was found in a call on an object: runs its handler, or that of the communicator to which the
/// error belongs.
pub(crate) fn raise(object: Object, error: &Error) -> Code {
    let before = || initial().unwrap_or_else(|_| fatal());
    let owner = error.owner().map(|owner| (owner.comm.errhandler(), owner.handle.0));
    let known = owner.or_else(|| handler_of(object)).or_else(|| handler_of(Object::Comm(of_nothing())));
    let (handler, object) = known.unwrap_or_else(|| (before(), Comm::SELF.0));
    // Codes that programs add have words of their own.
    let detail = if error.class() > Class::LAST { 0 } else { keep_words(error) };
    call(&handler, object, Code { class: error.class(), detail })
}

/// Runs a handler.
pub(crate) fn call(handler: &Handler, object: u32, code: Code) -> Code {
    match &handler.kind {
        Kind::Return => {}
        Kind::User(callback) => callback(object, code),
        Kind::Fatal => abort(code, "MPI_ERRORS_ARE_FATAL"),
        Kind::Abort => abort(code, "MPI_ERRORS_ABORT"),
    }
    code
}

/// Until a launcher knows of a death that its peers have noticed.
const DEATH_TOLD: Duration = Duration::from_millis(200);

fn abort(code: Code, handler: &str) -> ! {
    let text = text_of(code).unwrap_or_else(|| format!("MPI error {}", code.class.0));
    // What ends the job is said where the user looks first.
    tell_user(format_args!("{text}\n{handler} is the error handler: the job ends"));
    if code.class == Class::PROC_ABORTED {
        // The launcher learns from the system how that process ended, and then ends this one.
        std::thread::sleep(DEATH_TOLD);
    }
    match world() {
        Ok(world) => world.session().abort(code.class.0 & 0x7f, &text),
        Err(_) => std::process::exit(code.class.0 & 0x7f),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_predefined_ones_have_names() {
        let handle = |name| named(name).map(|handler| handler.handle().0);
        assert_eq!(handle(""), Ok(Errhandler::FATAL));
        assert_eq!(handle("mpi_errors_abort"), Ok(Errhandler::ABORT));
        assert_eq!(handle("mpi_errors_return"), Ok(Errhandler::RETURN));
        let error = handle("MPI_ERRORS_RETURN").unwrap_err();
        assert_eq!(error.class(), Class::ARG);
        assert!(error.text().contains(VARIABLE) && error.text().contains("mpi_errors_return"), "{error}");
    }
}
