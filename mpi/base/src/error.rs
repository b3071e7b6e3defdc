//! Errors: an error class of the standard, and the message for the user.

use crate::handle::Comm;
use std::fmt;
use std::sync::Arc;

/// An error class. Those of the standard have names here; programs may add others above [`Class::LAST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Class(pub i32);

/// What every function of [`crate::api`] answers.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed: boxed, since it is rare and answers should be small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Cause>);

#[derive(Debug, Clone)]
struct Cause {
    class: Class,
    text: String,
    owner: Option<Arc<dyn Owner>>,
}

impl PartialEq for Cause {
    fn eq(&self, other: &Cause) -> bool {
        let owner = |cause: &Cause| cause.owner.as_ref().map(|owner| owner.handle());
        (self.class, &self.text, owner(self)) == (other.class, &other.text, owner(other))
    }
}

impl Eq for Cause {}

/// What a front gives back to its caller: the class, and where the words are that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// Class, or code above [`Class::LAST`] that the program has added.
    pub class: Class,
    /// 1 to 127: for the words that [`crate::api`] keeps; 0: nothing is known but the class.
    pub detail: u8,
}

/// What an operation belongs to that failed when another call looked: it is kept until its error handler has
/// been called.
pub trait Owner: fmt::Debug + Send + Sync {
    /// Its handle.
    fn handle(&self) -> Comm;

    /// Its error handler hears of the error.
    fn answer(&self, code: Code) -> Code;
}

impl Error {
    /// An error of this class; the text names the argument or the cause, and the remedy.
    #[cold]
    pub fn new(class: Class, text: impl Into<String>) -> Error {
        Error(Box::new(Cause { class, text: text.into(), owner: None }))
    }

    /// Its class.
    pub fn class(&self) -> Class {
        self.0.class
    }

    /// It belongs to an operation on this communicator, which is not an argument of the call that finds it.
    #[must_use]
    pub fn on(mut self, owner: Option<impl Owner + 'static>) -> Error {
        self.0.owner = owner.map(|owner| Arc::new(owner) as _);
        self
    }

    /// It was found in a call of this name.
    #[must_use]
    pub fn found_in(mut self, call: &str) -> Error {
        self.0.text = format!("{call}: {}", self.0.text);
        self
    }

    /// The communicator of the operation that failed, where another call than the operation's own found it.
    pub fn comm(&self) -> Option<Comm> {
        self.owner().map(|owner| owner.handle())
    }

    /// The owner of the operation that failed.
    pub fn owner(&self) -> Option<&dyn Owner> {
        self.0.owner.as_deref()
    }

    /// It belongs to what another error belongs to.
    #[must_use]
    pub fn beside(mut self, other: &Error) -> Error {
        self.0.owner.clone_from(&other.0.owner);
        self
    }

    /// The words for the user.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class().name().unwrap_or("MPI error"), self.text())
    }
}

impl std::error::Error for Error {}

macro_rules! classes {
    ($($name:ident = $number:literal, $mpi:literal, $text:literal;)*) => {
        impl Class {
            $(#[doc = $text] pub const $name: Class = Class($number);)*

            /// The name in the standard, if it is one of the standard's.
            pub fn name(self) -> Option<&'static str> {
                match self.0 { $($number => Some($mpi),)* _ => None }
            }

            /// What the class means in general, if it is one of the standard's.
            pub fn meaning(self) -> Option<&'static str> {
                match self.0 { $($number => Some($text),)* _ => None }
            }
        }
    };
}

classes! {
    SUCCESS = 0, "MPI_SUCCESS", "no error";
    BUFFER = 1, "MPI_ERR_BUFFER", "invalid buffer";
    COUNT = 2, "MPI_ERR_COUNT", "invalid count";
    TYPE = 3, "MPI_ERR_TYPE", "invalid datatype";
    TAG = 4, "MPI_ERR_TAG", "invalid tag";
    COMM = 5, "MPI_ERR_COMM", "invalid communicator";
    RANK = 6, "MPI_ERR_RANK", "invalid rank";
    REQUEST = 7, "MPI_ERR_REQUEST", "invalid request";
    ROOT = 8, "MPI_ERR_ROOT", "invalid root";
    GROUP = 9, "MPI_ERR_GROUP", "invalid group";
    OP = 10, "MPI_ERR_OP", "invalid operator";
    TOPOLOGY = 11, "MPI_ERR_TOPOLOGY", "invalid topology";
    DIMS = 12, "MPI_ERR_DIMS", "invalid dimensions";
    ARG = 13, "MPI_ERR_ARG", "invalid argument";
    UNKNOWN = 14, "MPI_ERR_UNKNOWN", "unknown error";
    TRUNCATE = 15, "MPI_ERR_TRUNCATE", "message truncated";
    OTHER = 16, "MPI_ERR_OTHER", "error of another kind";
    INTERN = 17, "MPI_ERR_INTERN", "internal error";
    PENDING = 18, "MPI_ERR_PENDING", "request neither failed nor complete";
    IN_STATUS = 19, "MPI_ERR_IN_STATUS", "the error is in the status";
    ACCESS = 20, "MPI_ERR_ACCESS", "permission denied";
    AMODE = 21, "MPI_ERR_AMODE", "invalid access mode";
    ASSERT = 22, "MPI_ERR_ASSERT", "invalid assertion";
    BAD_FILE = 23, "MPI_ERR_BAD_FILE", "invalid file name";
    BASE = 24, "MPI_ERR_BASE", "invalid base address";
    CONVERSION = 25, "MPI_ERR_CONVERSION", "error in data conversion";
    DISP = 26, "MPI_ERR_DISP", "invalid displacement";
    DUP_DATAREP = 27, "MPI_ERR_DUP_DATAREP", "data representation already registered";
    FILE_EXISTS = 28, "MPI_ERR_FILE_EXISTS", "file exists";
    FILE_IN_USE = 29, "MPI_ERR_FILE_IN_USE", "file in use";
    FILE = 30, "MPI_ERR_FILE", "invalid file handle";
    INFO_KEY = 31, "MPI_ERR_INFO_KEY", "invalid info key";
    INFO_NOKEY = 32, "MPI_ERR_INFO_NOKEY", "no such info key";
    INFO_VALUE = 33, "MPI_ERR_INFO_VALUE", "invalid info value";
    INFO = 34, "MPI_ERR_INFO", "invalid info object";
    IO = 35, "MPI_ERR_IO", "input or output error";
    KEYVAL = 36, "MPI_ERR_KEYVAL", "invalid attribute key";
    LOCKTYPE = 37, "MPI_ERR_LOCKTYPE", "invalid lock type";
    NAME = 38, "MPI_ERR_NAME", "service name not published";
    NO_MEM = 39, "MPI_ERR_NO_MEM", "out of memory";
    NOT_SAME = 40, "MPI_ERR_NOT_SAME", "collective argument not the same on all processes";
    NO_SPACE = 41, "MPI_ERR_NO_SPACE", "no space left";
    NO_SUCH_FILE = 42, "MPI_ERR_NO_SUCH_FILE", "no such file";
    PORT = 43, "MPI_ERR_PORT", "invalid port name";
    QUOTA = 44, "MPI_ERR_QUOTA", "quota exceeded";
    READ_ONLY = 45, "MPI_ERR_READ_ONLY", "read-only file or file system";
    RMA_ATTACH = 46, "MPI_ERR_RMA_ATTACH", "memory cannot be attached";
    RMA_CONFLICT = 47, "MPI_ERR_RMA_CONFLICT", "conflicting accesses to a window";
    RMA_RANGE = 48, "MPI_ERR_RMA_RANGE", "target memory is not part of the window";
    RMA_SHARED = 49, "MPI_ERR_RMA_SHARED", "memory cannot be shared";
    RMA_SYNC = 50, "MPI_ERR_RMA_SYNC", "wrong synchronisation of accesses to a window";
    SERVICE = 51, "MPI_ERR_SERVICE", "invalid service name";
    SIZE = 52, "MPI_ERR_SIZE", "invalid size";
    SPAWN = 53, "MPI_ERR_SPAWN", "processes could not be started";
    UNSUPPORTED_DATAREP = 54, "MPI_ERR_UNSUPPORTED_DATAREP", "unsupported data representation";
    UNSUPPORTED_OPERATION = 55, "MPI_ERR_UNSUPPORTED_OPERATION", "unsupported operation";
    WIN = 56, "MPI_ERR_WIN", "invalid window";
    RMA_FLAVOR = 57, "MPI_ERR_RMA_FLAVOR", "wrong flavour of window";
    PROC_ABORTED = 58, "MPI_ERR_PROC_ABORTED", "a process that is needed is gone";
    VALUE_TOO_LARGE = 59, "MPI_ERR_VALUE_TOO_LARGE", "value too large for its type";
    SESSION = 60, "MPI_ERR_SESSION", "invalid session";
    ERRHANDLER = 61, "MPI_ERR_ERRHANDLER", "invalid error handler";
    ABI = 62, "MPI_ERR_ABI", "binary interface not supported";
    PROC_FAILED = 16301, "MPIX_ERR_PROC_FAILED", "a process that is needed has failed";
    PROC_FAILED_PENDING = 16302, "MPIX_ERR_PROC_FAILED_PENDING", "a process that may be needed has failed";
    REVOKED = 16303, "MPIX_ERR_REVOKED", "the communicator was revoked";
    T_CANNOT_INIT = 1001, "MPI_T_ERR_CANNOT_INIT", "the tools interface cannot be initialized now";
    T_NOT_ACCESSIBLE = 1002, "MPI_T_ERR_NOT_ACCESSIBLE", "not accessible now";
    T_NOT_INITIALIZED = 1003, "MPI_T_ERR_NOT_INITIALIZED", "the tools interface is not initialized";
    T_NOT_SUPPORTED = 1004, "MPI_T_ERR_NOT_SUPPORTED", "not supported by the tools interface";
    T_MEMORY = 1005, "MPI_T_ERR_MEMORY", "out of memory for tools";
    T_INVALID = 1006, "MPI_T_ERR_INVALID", "invalid argument of the tools interface";
    T_INVALID_INDEX = 1007, "MPI_T_ERR_INVALID_INDEX", "invalid index";
    T_INVALID_ITEM = 1008, "MPI_T_ERR_INVALID_ITEM", "invalid index of an item";
    T_INVALID_SESSION = 1009, "MPI_T_ERR_INVALID_SESSION", "invalid session of the tools interface";
    T_INVALID_HANDLE = 1010, "MPI_T_ERR_INVALID_HANDLE", "invalid handle of the tools interface";
    T_INVALID_NAME = 1011, "MPI_T_ERR_INVALID_NAME", "invalid name";
    T_OUT_OF_HANDLES = 1012, "MPI_T_ERR_OUT_OF_HANDLES", "no more handles";
    T_OUT_OF_SESSIONS = 1013, "MPI_T_ERR_OUT_OF_SESSIONS", "no more sessions of the tools interface";
    T_CVAR_SET_NOT_NOW = 1014, "MPI_T_ERR_CVAR_SET_NOT_NOW", "the variable cannot be set now";
    T_CVAR_SET_NEVER = 1015, "MPI_T_ERR_CVAR_SET_NEVER", "the variable cannot be set";
    T_PVAR_NO_WRITE = 1016, "MPI_T_ERR_PVAR_NO_WRITE", "the variable cannot be written or reset";
    T_PVAR_NO_STARTSTOP = 1017, "MPI_T_ERR_PVAR_NO_STARTSTOP", "the variable cannot be started or stopped";
    T_PVAR_NO_ATOMIC = 1018, "MPI_T_ERR_PVAR_NO_ATOMIC", "the variable cannot be read and reset in one step";
}

impl Class {
    /// MPI_ERR_LASTCODE of the standard's binary interface: classes that programs add are above it.
    pub const LAST: Class = Class(0x3fff);

    /// An error of this class.
    #[cold]
    pub fn error(self, text: impl Into<String>) -> Error {
        Error::new(self, text)
    }
}
