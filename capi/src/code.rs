//! Codes, their texts, and the last error of each thread. No panic passes [`call`].

use newmadeleine::SessionError;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Done.
pub const OK: c_int = 0;
/// Not yet.
pub const PENDING: c_int = 1;
/// Do not sleep.
pub const BUSY: c_int = 2;
pub const ARGUMENT: c_int = -1;
pub const SESSION: c_int = -2;
pub const REQUEST: c_int = -3;
pub const MESSAGE: c_int = -4;
const RANK: c_int = -5;
const CONTEXT: c_int = -6;
const SETTING: c_int = -7;
const LAUNCH: c_int = -8;
const RAIL: c_int = -9;
pub const SYSTEM: c_int = -10;
const TRUNCATED: c_int = -11;
const PEER: c_int = -12;
const CANCELLED: c_int = -13;
const INTERNAL: c_int = -14;

/// Codes and what they mean.
const TEXTS: [(c_int, &CStr); 17] = [
    (OK, c"done"),
    (PENDING, c"not yet"),
    (BUSY, c"something has happened, look at the requests"),
    (ARGUMENT, c"an argument makes no sense"),
    (SESSION, c"no open session"),
    (REQUEST, c"no such request, or its end was returned already"),
    (MESSAGE, c"no such message in pieces, or it is ended"),
    (RANK, c"the job has no such rank"),
    (CONTEXT, c"the context is out of range"),
    (SETTING, c"a setting is unknown or its value makes no sense"),
    (LAUNCH, c"the job cannot be joined, or its launcher is gone"),
    (RAIL, c"a network cannot be used"),
    (SYSTEM, c"the system refused something"),
    (TRUNCATED, c"the message was longer than the buffer"),
    (PEER, c"the other process is gone"),
    (CANCELLED, c"the receive was cancelled"),
    (INTERNAL, c"a bug of the library"),
];

/// Why a call failed.
#[derive(Debug)]
pub struct Failure {
    pub code: c_int,
    pub text: String,
}

/// What the functions behind the interface answer: a code that is not negative, or why they failed.
pub type Answer = Result<c_int, Failure>;

impl Failure {
    #[cold]
    pub fn new(code: c_int, text: impl Display) -> Failure {
        Failure { code, text: text.to_string() }
    }
}

impl From<SessionError> for Failure {
    #[cold]
    fn from(error: SessionError) -> Failure {
        let code = match &error {
            SessionError::Launch(_) => LAUNCH,
            SessionError::Rail(_) => RAIL,
            SessionError::Setting { .. } => SETTING,
            SessionError::Truncated { .. } => TRUNCATED,
            SessionError::PeerLost { .. } => PEER,
            SessionError::Cancelled => CANCELLED,
            SessionError::NoSuchRank { .. } => RANK,
            SessionError::NoSuchContext(_) => CONTEXT,
            SessionError::System { .. } => SYSTEM,
            // The enumeration may grow; who adds to it adds a code here.
            _ => INTERNAL,
        };
        Failure::new(code, error)
    }
}

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Runs one call from C: keeps the text of its failure, and stops panics.
#[inline]
pub fn call(function: &str, work: impl FnOnce() -> Answer) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(code)) => code,
        Ok(Err(Failure { code, text })) => fail(function, code, &text),
        Err(panic) => fail(function, INTERNAL, &format!("a bug of the library: {}", words(&*panic))),
    }
}

#[cold]
fn fail(function: &str, code: c_int, text: &str) -> c_int {
    let text: Vec<u8> = format!("{function}: {text}").into_bytes().into_iter().filter(|&b| b != 0).collect();
    // A thread that ends has nobody left to ask.
    let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(text).ok());
    code
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it says no more")
}

/// The text of the last failure in this thread; it stays until the next one.
pub fn last() -> *const c_char {
    let text = |last: &RefCell<Option<CString>>| last.borrow().as_ref().map(|text| text.as_ptr());
    LAST.try_with(text).ok().flatten().unwrap_or(c"".as_ptr())
}

/// What a code means.
pub fn meaning(code: c_int) -> *const c_char {
    let known = TEXTS.iter().find(|(known, _)| *known == code);
    known.map_or(c"no code of this library", |(_, text)| text).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_as_a_code_with_its_words() {
        let code = call("nmad_test", || panic!("lost {}", 7));
        assert_eq!(code, INTERNAL);
        assert_eq!(crate::raw::text_of(last()), "nmad_test: a bug of the library: lost 7");
        assert_eq!(call("nmad_test", || Ok(PENDING)), PENDING);
    }

    #[test]
    fn every_code_has_a_meaning_of_its_own() {
        let texts: std::collections::BTreeSet<_> = TEXTS.iter().map(|(_, text)| text).collect();
        assert_eq!(texts.len(), TEXTS.len());
        assert!((INTERNAL..=BUSY).all(|code| TEXTS.iter().any(|(known, _)| *known == code)));
        assert_eq!(crate::raw::text_of(meaning(99)), "no code of this library");
    }
}
