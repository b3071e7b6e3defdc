//! Errors of files: a cause that the standard has a class for, and words that name the file, the system's
//! error and the remedy.

use rustix::io::Errno;
use std::path::Path;

/// Why an access failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// There is no such file.
    NoSuchFile,
    /// The file exists already.
    Exists,
    /// The user may not.
    Access,
    /// The file system, or the file as it was opened, is read-only.
    ReadOnly,
    /// The file system is full.
    NoSpace,
    /// The user's quota is used up.
    Quota,
    /// This is no name of a file.
    BadFile,
    /// Something else uses the file.
    InUse,
    /// Anything else.
    Other,
}

impl Cause {
    const ALL: [Cause; 9] = [
        Cause::NoSuchFile,
        Cause::Exists,
        Cause::Access,
        Cause::ReadOnly,
        Cause::NoSpace,
        Cause::Quota,
        Cause::BadFile,
        Cause::InUse,
        Cause::Other,
    ];

    /// The cause with the number that a message carries (`cause as u8`).
    pub(crate) fn numbered(number: u8) -> Cause {
        Cause::ALL.get(usize::from(number)).copied().unwrap_or(Cause::Other)
    }
}

/// An access that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Why.
    pub cause: Cause,
    /// Words for the user.
    pub text: String,
}

impl Fault {
    /// The system has refused something: "cannot {what} {path}".
    #[cold]
    pub fn of(errno: Errno, what: &str, path: &Path) -> Fault {
        let (cause, remedy) = meaning(errno);
        let number = errno.raw_os_error();
        let separator = if remedy.is_empty() { "" } else { ": " };
        let text = format!(
            "cannot {what} {}: {} (errno {number}){separator}{remedy}",
            path.display(),
            words(errno),
        );
        Fault { cause, text }
    }

    /// What a lower layer has worded already.
    pub fn worded(cause: Cause, text: &str) -> Fault {
        Fault { cause, text: text.to_string() }
    }

    /// A file that is shorter than it was, or a disk that takes nothing without saying why.
    #[cold]
    pub(crate) fn nothing_written(path: &Path) -> Fault {
        let text =
            format!("cannot write to {}: the system has taken no bytes and names no reason", path.display());
        Fault { cause: Cause::Other, text }
    }
}

/// The system's own words.
fn words(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    // "No such file or directory (os error 2)"
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

fn meaning(errno: Errno) -> (Cause, &'static str) {
    match errno {
        Errno::NOENT => (Cause::NoSuchFile, "create it first, or open it with MPI_MODE_CREATE"),
        Errno::EXIST => (Cause::Exists, "remove it, or open it without MPI_MODE_EXCL"),
        Errno::ACCESS | Errno::PERM => (Cause::Access, "look at its permissions and those of its directory"),
        Errno::ROFS => (Cause::ReadOnly, "the file system is mounted read-only: use another one"),
        Errno::NOSPC => (Cause::NoSpace, "remove files there, or use another file system"),
        Errno::DQUOT => (Cause::Quota, "remove files of yours, or ask for a higher quota"),
        Errno::ISDIR => (Cause::BadFile, "it is a directory: name a file"),
        Errno::NOTDIR => (Cause::BadFile, "a part of the path is a file and no directory"),
        Errno::NAMETOOLONG => (Cause::BadFile, "use a shorter name"),
        Errno::LOOP => (Cause::BadFile, "symbolic links lead in a circle"),
        Errno::INVAL => (Cause::Other, "the file system does not support it, or the range is none"),
        Errno::TXTBSY => (Cause::InUse, "a program runs from it: end that first"),
        Errno::BUSY => (Cause::InUse, "something else uses it: end that first"),
        Errno::MFILE => {
            (Cause::Other, "this process has too many files open: close some, or raise `ulimit -n`")
        }
        Errno::NFILE => (Cause::Other, "the system has too many files open: close some"),
        Errno::FBIG => (Cause::Other, "longer than the file system or `ulimit -f` allows"),
        Errno::STALE => (Cause::NoSuchFile, "its server has removed it: open it again"),
        Errno::OPNOTSUPP => (Cause::Other, "the file system does not support it"),
        Errno::IO => (Cause::Other, "the device has failed: ask the system's log"),
        Errno::SPIPE => (Cause::BadFile, "it is a pipe or a terminal, which has no offsets: name a file"),
        _ => (Cause::Other, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_path_reason_and_remedy() {
        let fault = Fault::of(Errno::NOSPC, "write to", Path::new("/data/x"));
        assert_eq!(fault.cause, Cause::NoSpace);
        for word in ["/data/x", "no space left", "errno 28", "another file system"] {
            assert!(fault.text.contains(word), "{}", fault.text);
        }
        let other = Fault::of(Errno::NODEV, "open", Path::new("x"));
        assert!(other.cause == Cause::Other && other.text.ends_with("(errno 19)"), "{}", other.text);
    }
}
