//! Error handlers: what happens with an error that a call has found.

use crate::error::{Class, Code, Error, Result};
use crate::handle::{DYNAMIC, Errhandler};
use crate::table::Table;
use crate::world::world;
use newmadeleine::setting::MPI_INITIAL_ERRHANDLER;
use newmadeleine::tell_user;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

/// Handlers that programs made.
static HANDLERS: Table<Handler> = Table::new(DYNAMIC);

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

/// The handler that answers errors, which files begin with.
pub(crate) fn returning() -> Arc<Handler> {
    PREDEFINED[2].clone()
}

/// The handler that `MPI_COMM_WORLD` and `MPI_COMM_SELF` begin with, and that counts before (MPI 4.1, section
/// 11.5).
///
/// # Errors
/// The environment names none of the predefined ones.
pub(crate) fn initial() -> Result<Arc<Handler>> {
    named(MPI_INITIAL_ERRHANDLER.text())
}

fn named(name: std::result::Result<Option<String>, String>) -> Result<Arc<Handler>> {
    let names = MPI_INITIAL_ERRHANDLER.values.words();
    let name = name.map_err(|why| Class::ARG.error(why))?;
    let index = name.and_then(|name| names.iter().position(|known| *known == name)).unwrap_or(0);
    Ok(PREDEFINED[index].clone())
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

/// The words of an error, by its code.
struct Words {
    code: Code,
    text: String,
}

/// The words of the latest errors.
static WORDS: Mutex<VecDeque<Words>> = Mutex::new(VecDeque::new());

/// Classes that calls return as they are, since programs compare codes with them: those that the standard
/// says are returned (MPI 5.0, section 3.7.5), and those after which programs go on in another way. Their
/// constants stand for the latest words of the class.
const EXACT: [Class; 10] = [
    Class::IN_STATUS,
    Class::PENDING,
    Class::PROC_ABORTED,
    Class::PROC_FAILED,
    Class::PROC_FAILED_PENDING,
    Class::REVOKED,
    Class::NAME,
    Class::NO_SUCH_FILE,
    Class::FILE_EXISTS,
    Class::UNSUPPORTED_OPERATION,
];

/// Most errors whose words are kept.
const WORDS_MAX: usize = 64;
/// Highest number of an error's words.
const DETAIL_MAX: u8 = 127;

fn words() -> MutexGuard<'static, VecDeque<Words>> {
    WORDS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Keeps the words of an error: the code that stands for them.
pub(crate) fn keep_words(error: &Error) -> Code {
    let mut words = words();
    let last = words.iter().rev().map(|words| words.code.detail).find(|&detail| detail > 0);
    let detail = if EXACT.contains(&error.class()) { 0 } else { last.unwrap_or(0) % DETAIL_MAX + 1 };
    if words.len() == WORDS_MAX {
        words.pop_front();
    }
    let code = Code { class: error.class(), detail };
    words.push_back(Words { code, text: error.to_string() });
    code
}

/// The words that belong to a code, if they are still known.
pub(crate) fn text_of(code: Code) -> Option<String> {
    let words = words();
    words.iter().rev().find(|words| words.code == code).map(|words| words.text.clone())
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

/// Until a launcher knows of a death that its peers have noticed, tells it, and ends them.
const DEATH_TOLD: Duration = Duration::from_millis(500);

fn abort(code: Code, handler: &str) -> ! {
    let text = text_of(code).unwrap_or_else(|| format!("MPI error {}", code.class.0));
    if [Class::PROC_ABORTED, Class::PROC_FAILED].contains(&code.class) {
        // The end of that process is the cause, which the launcher learns from the system. It ends this one
        // before it adds to that.
        std::thread::sleep(DEATH_TOLD);
    }
    // What ends the job is said where the user looks first.
    tell_user(format_args!("{text}\n{handler} is the error handler: the job ends"));
    match world() {
        Ok(world) => world.session().abort(code.class.0 & 0x7f, &text),
        Err(_) => {
            // The other ranks may wait for this one, which has not joined the job.
            newmadeleine::launch::refuse(code.class.0 & 0x7f, &text);
            std::process::exit(code.class.0 & 0x7f)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_programs_compare_are_codes_and_have_the_latest_words() {
        let truncated = Class::TRUNCATE.error("8 B for 4 B");
        let code = keep_words(&truncated);
        assert!(code.detail > 0 && code.class == Class::TRUNCATE);
        for text in ["request 0", "request 1"] {
            let code = keep_words(&Class::IN_STATUS.error(text));
            assert_eq!(code, Code { class: Class::IN_STATUS, detail: 0 });
            assert!(text_of(code).is_some_and(|words| words.ends_with(text)));
        }
        let next = keep_words(&truncated);
        assert!(next.detail > 0 && next != code, "codes in between have no number");
        assert_eq!(text_of(Code { class: Class::TRUNCATE, detail: 0 }), None);
    }

    #[test]
    fn the_predefined_ones_have_names() {
        let handle =
            |name: Option<&str>| named(Ok(name.map(str::to_owned))).map(|handler| handler.handle().0);
        assert_eq!(handle(None), Ok(Errhandler::FATAL));
        assert_eq!(handle(Some("mpi_errors_abort")), Ok(Errhandler::ABORT));
        assert_eq!(handle(Some("mpi_errors_return")), Ok(Errhandler::RETURN));
        let wrong = MPI_INITIAL_ERRHANDLER.check("MPI_ERRORS_RETURN").unwrap_err();
        let error = named(Err(wrong)).map(|handler| handler.handle().0).unwrap_err();
        assert_eq!(error.class(), Class::ARG);
        assert!(error.text().contains("mpi_errors_return"), "{error}");
    }
}
