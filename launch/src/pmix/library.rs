//! The PMIx client library: its functions, its structures, and safe calls.
//!
//! Numbers and layouts are those of the PMIx standard, version 4 (chapters 3 and 5; `pmix_common.h`), which
//! libraries from 3 to 6 share as far as they are used here.

use crate::pmi::spawn::Wanted;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

const SUCCESS: c_int = 0;
/// No process has put this key.
const ERR_NOT_FOUND: c_int = -46;
const ERR_TIMEOUT: c_int = -24;
/// The launcher is gone: `PMIX_ERR_UNREACH`, `PMIX_ERR_COMM_FAILURE`, `PMIX_ERR_LOST_CONNECTION`.
const GONE: [c_int; 3] = [-25, -49, -61];

const BOOL: u16 = 1;
const STRING: u16 = 3;
const INT: u16 = 6;
const UINT32: u16 = 14;
const PROC: u16 = 22;
/// Visible to all ranks.
const GLOBAL: u8 = 3;
/// Pseudo rank for information about the job.
pub const WHOLE_JOB: u32 = u32::MAX - 1;

const KEY_SIZE: usize = 512;
const NAME_SIZE: usize = 256;

#[repr(C)]
struct Proc {
    name: [c_char; NAME_SIZE],
    rank: u32,
}

#[repr(C)]
union Data {
    flag: bool,
    int: c_int,
    uint32: u32,
    string: *mut c_char,
    process: *mut Proc,
    /// The longest member of the standard's union (an environment variable).
    _longest: [*mut c_void; 3],
}

#[repr(C)]
struct Value {
    kind: u16,
    data: Data,
}

#[repr(C)]
struct Info {
    key: [c_char; KEY_SIZE],
    flags: u32,
    value: Value,
}

/// A program to spawn; lists end with a null pointer.
#[repr(C)]
struct App {
    program: *const c_char,
    args: *const *const c_char,
    variables: *const *const c_char,
    folder: *const c_char,
    count: c_int,
    infos: *const Info,
    info_count: usize,
}

/// The functions in use.
struct Functions {
    init: unsafe extern "C" fn(*mut Proc, *const Info, usize) -> c_int,
    finalize: unsafe extern "C" fn(*const Info, usize) -> c_int,
    get: unsafe extern "C" fn(*const Proc, *const c_char, *const Info, usize, *mut *mut Value) -> c_int,
    put: unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int,
    commit: unsafe extern "C" fn() -> c_int,
    fence: unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> c_int,
    abort: unsafe extern "C" fn(c_int, *const c_char, *const Proc, usize) -> c_int,
    spawn: unsafe extern "C" fn(*const Info, usize, *const App, usize, *mut c_char) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// Why a call failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The launcher is gone.
    Gone,
    /// The time limit is over.
    Timeout,
    /// Anything else, in the library's words.
    Refused(String),
}

/// The value of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Held {
    /// A number.
    Number(u32),
    /// Text.
    Text(String),
    /// The job of a process.
    Job(String),
}

/// A rank's connection to its launcher.
pub struct Client {
    functions: Functions,
    me: Proc,
}

impl Client {
    /// Loads the first loadable file of `files`, and joins the job.
    ///
    /// # Errors
    /// The reason for each file that cannot be loaded; or the reason why the launcher refuses this rank.
    pub fn join(files: &[PathBuf]) -> Result<Result<Client, Failure>, String> {
        let mut tried = Vec::new();
        for file in files {
            match load(file) {
                Ok(functions) => return Ok(Client::init(functions)),
                Err(why) => tried.push(why),
            }
        }
        Err(tried.join("; "))
    }

    fn init(functions: Functions) -> Result<Client, Failure> {
        let mut me = Proc { name: [0; NAME_SIZE], rank: 0 };
        // SAFETY: `me` has the standard's layout, and no directives are given.
        let status = unsafe { (functions.init)(&raw mut me, ptr::null(), 0) };
        // The library terminates the name with a zero; a broken one must not make us read on.
        me.name[NAME_SIZE - 1] = 0;
        check(&functions, status)?;
        Ok(Client { functions, me })
    }

    /// Our rank.
    pub fn rank(&self) -> u32 {
        self.me.rank
    }

    /// The job's name.
    pub fn job(&self) -> String {
        // SAFETY: its last byte is zero, see `init`.
        unsafe { CStr::from_ptr(self.me.name.as_ptr()) }.to_string_lossy().into_owned()
    }

    /// Returns the value that `rank` (or [`WHOLE_JOB`]) has under `key`, if it is a number, text or a
    /// process.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn get(&self, rank: u32, key: &str, limit_s: Option<u32>) -> Result<Option<Held>, Failure> {
        let from = Proc { name: self.me.name, rank };
        let key = c_string(key)?;
        let infos: Vec<Info> = limit_s.map(timeout).into_iter().collect();
        let mut value = ptr::null_mut();
        // SAFETY: all arguments live until the call returns; `value` is written if it succeeds.
        let status = unsafe {
            (self.functions.get)(&raw const from, key.as_ptr(), infos.as_ptr(), infos.len(), &raw mut value)
        };
        if status == ERR_NOT_FOUND {
            return Ok(None);
        }
        check(&self.functions, status)?;
        // SAFETY: the call succeeded, so the value is ours.
        Ok(unsafe { take(value) })
    }

    /// Puts `text` under `key` for all ranks, visible after [`Client::fence`]; without zero bytes.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn put(&self, key: &str, text: &str) -> Result<(), Failure> {
        let (key, text) = (c_string(key)?, c_string(text)?);
        // The library copies the text, and does not write to it.
        let mut value = Value { kind: STRING, data: Data { string: text.as_ptr().cast_mut() } };
        // SAFETY: all arguments live until the call returns.
        check(&self.functions, unsafe { (self.functions.put)(GLOBAL, key.as_ptr(), &raw mut value) })
    }

    /// Waits for all ranks, and collects the values that they put.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn fence(&self, limit_s: Option<u32>) -> Result<(), Failure> {
        // SAFETY: it takes no arguments.
        check(&self.functions, unsafe { (self.functions.commit)() })?;
        let mut infos = vec![info("pmix.collect", BOOL, Data { flag: true })];
        infos.extend(limit_s.map(timeout));
        // SAFETY: all arguments live until the call returns; no processes means all of the job.
        let status = unsafe { (self.functions.fence)(ptr::null(), 0, infos.as_ptr(), infos.len()) };
        check(&self.functions, status)
    }

    /// Asks the launcher to end all ranks.
    pub fn abort(&self, code: i32, why: &str) {
        let why = c_string(why).unwrap_or_default();
        // SAFETY: all arguments live until the call returns; no processes means all of the job.
        // If the launcher is gone, the job is ending anyway.
        let _ = unsafe { (self.functions.abort)(code, why.as_ptr(), ptr::null(), 0) };
    }

    /// Asks the launcher to start programs as a job of their own, with one additional environment variable.
    /// Programs without a folder run in the folder of this process.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn spawn(&self, programs: &[Wanted], variable: &str) -> Result<(), Failure> {
        let here = std::env::current_dir().unwrap_or_default();
        let variables = List::new([variable])?;
        let texts = programs.iter().map(|wanted| {
            let words = std::iter::once(&wanted.program).chain(&wanted.args);
            let folder = wanted.folder().unwrap_or_else(|| here.clone());
            Ok((List::new(words.map(String::as_str))?, c_string(&folder.to_string_lossy())?, wanted.count))
        });
        let texts = texts.collect::<Result<Vec<_>, Failure>>()?;
        let apps: Vec<App> = texts
            .iter()
            .map(|(words, folder, count)| App {
                program: words.pointers[0],
                args: words.pointers.as_ptr(),
                variables: variables.pointers.as_ptr(),
                folder: folder.as_ptr(),
                count: (*count).try_into().unwrap_or(c_int::MAX),
                infos: ptr::null(),
                info_count: 0,
            })
            .collect();
        let mut job = [0; NAME_SIZE];
        // SAFETY: texts and lists live until the call returns, which copies them; `job` has room for a
        // name.
        let status =
            unsafe { (self.functions.spawn)(ptr::null(), 0, apps.as_ptr(), apps.len(), job.as_mut_ptr()) };
        check(&self.functions, status)
    }

    /// Finalizes.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn finish(self) -> Result<(), Failure> {
        // SAFETY: no directives are given.
        check(&self.functions, unsafe { (self.functions.finalize)(ptr::null(), 0) })
    }
}

/// A null-terminated list of C strings.
struct List {
    /// Pointers to the texts, and a null pointer.
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
}

impl List {
    fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<List, Failure> {
        let texts = texts.into_iter().map(c_string).collect::<Result<Vec<_>, _>>()?;
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Ok(List { pointers, _texts: texts })
    }
}

fn load(file: &Path) -> Result<Functions, String> {
    let name = CString::new(file.as_os_str().as_bytes()).map_err(|_| "a name with a zero byte".to_owned())?;
    // SAFETY: loading runs the library's initialisers, as intended. The library stays loaded, since its
    // thread outlives our uses.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: an error has just happened, so the text exists; it is copied before the next call.
        let why = unsafe { CStr::from_ptr(libc::dlerror()) };
        return Err(why.to_string_lossy().into_owned());
    }
    // SAFETY: the library was loaded, and is PMIx if it has these names.
    unsafe { functions(library) }.map_err(|missing| format!("{} has no {missing}", file.display()))
}

/// Looks up all functions; returns the name of a missing one.
///
/// # Safety
/// `library` is loaded, and its functions of these names have the standard's types.
unsafe fn functions(library: *mut c_void) -> Result<Functions, String> {
    // SAFETY: by the contract.
    unsafe {
        Ok(Functions {
            init: function(library, c"PMIx_Init")?,
            finalize: function(library, c"PMIx_Finalize")?,
            get: function(library, c"PMIx_Get")?,
            put: function(library, c"PMIx_Put")?,
            commit: function(library, c"PMIx_Commit")?,
            fence: function(library, c"PMIx_Fence")?,
            abort: function(library, c"PMIx_Abort")?,
            spawn: function(library, c"PMIx_Spawn")?,
            error_string: function(library, c"PMIx_Error_string")?,
        })
    }
}

/// Looks up a function; returns its name if it is missing.
///
/// # Safety
/// `library` is loaded, and the function has the type `F`, a pointer to a function.
unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: by the contract.
    let at = unsafe { libc::dlsym(library, name.as_ptr()) };
    if at.is_null() {
        return Err(name.to_string_lossy().into_owned());
    }
    // SAFETY: by the contract; it is not null.
    Ok(unsafe { std::mem::transmute_copy(&at) })
}

fn check(functions: &Functions, status: c_int) -> Result<(), Failure> {
    match status {
        SUCCESS => Ok(()),
        ERR_TIMEOUT => Err(Failure::Timeout),
        _ if GONE.contains(&status) => Err(Failure::Gone),
        _ => {
            // SAFETY: the function takes a number and returns null or text that lives as long as the
            // library.
            let text = unsafe { (functions.error_string)(status).as_ref().map(|at| CStr::from_ptr(at)) };
            let text = text.map_or_else(Default::default, CStr::to_string_lossy);
            Err(Failure::Refused(format!("{text} ({status})")))
        }
    }
}

/// Takes over a value that the library allocated with C's allocator.
///
/// # Safety
/// `value` is such a value, and has no other owner.
unsafe fn take(value: *mut Value) -> Option<Held> {
    // SAFETY: by the contract; the member of `data` is the one that `kind` names.
    unsafe {
        let held = match (*value).kind {
            UINT32 => Some(Held::Number((*value).data.uint32)),
            STRING => {
                let text = (*value).data.string;
                let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
                libc::free(text.cast());
                Some(Held::Text(copy))
            }
            PROC => {
                let process = (*value).data.process;
                (*process).name[NAME_SIZE - 1] = 0;
                let job = CStr::from_ptr((*process).name.as_ptr()).to_string_lossy().into_owned();
                libc::free(process.cast());
                Some(Held::Job(job))
            }
            _ => None,
        };
        libc::free(value.cast());
        held
    }
}

fn timeout(limit_s: u32) -> Info {
    info("pmix.timeout", INT, Data { int: limit_s.try_into().unwrap_or(c_int::MAX) })
}

fn info(name: &str, kind: u16, data: Data) -> Info {
    let mut key = [0; KEY_SIZE];
    for (to, from) in key.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    Info { key, flags: 0, value: Value { kind, data } }
}

fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Failure::Refused("a text with a zero byte".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_the_standard_says() {
        assert_eq!((size_of::<Proc>(), size_of::<Value>(), size_of::<Info>()), (260, 32, 552));
        assert_eq!(size_of::<App>(), 7 * size_of::<usize>());
    }

    #[test]
    fn libraries_that_cannot_be_loaded_are_named() {
        let files = ["/nowhere/libpmix.so.2".into(), "libc.so.6".into()];
        let Err(why) = Client::join(&files) else { panic!("the C library is not PMIx") };
        assert!(why.contains("/nowhere/libpmix.so.2") && why.contains("has no PMIx_Init"), "{why}");
    }
}
