//! Control variables: every setting, under the name of its variable of the environment. Its value is a text,
//! empty while the setting is not set.

use super::{Verbosity, entry};
use crate::error::{Class, Error, Result};
use crate::table::Table;
use crate::world::{is_finalized, is_running, world};
use newmadeleine::setting::{ALL, PROGRESS, Reader, SECRET, STARTED_BY, Setting, Values};
use newmadeleine::{Options, Progress};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Longest value, its end included, in bytes.
pub const TEXT_MAX: usize = 1024;

/// When a variable can be set, in the words of the standard (`MPI_T_SCOPE_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Scope {
    /// Never: it is for the launcher, for compilers or for tests.
    Constant = 1,
    /// At any time, in this process alone.
    Local = 3,
    /// Before MPI is initialised, in all processes to the same value.
    AllEqual = 7,
}

/// Values that were set after MPI was initialised.
static CHANGED: Mutex<BTreeMap<&str, String>> = Mutex::new(BTreeMap::new());
/// Variables whose handles the program has.
static HANDLES: Table<&Setting> = Table::new(crate::handle::DYNAMIC);

/// The variable of an index.
///
/// # Errors
/// There is none.
pub(crate) fn control(index: i32) -> Result<&'static Setting> {
    Ok(*entry("control variable", ALL, index)?)
}

/// When a variable can be set.
pub fn scope_of(setting: &Setting) -> Scope {
    match setting.reader {
        Reader::Running => Scope::Local,
        Reader::Session | Reader::Mpi | Reader::Launcher => Scope::AllEqual,
        Reader::Compiler | Reader::Internal => Scope::Constant,
    }
}

/// For whom a variable is.
pub fn verbosity_of(setting: &Setting) -> Verbosity {
    match (setting.reader, setting.values) {
        (Reader::Compiler | Reader::Internal, _) => Verbosity::UserDetail,
        (Reader::Mpi, _) | (_, Values::Size { .. } | Values::Seconds) => Verbosity::TunerBasic,
        _ => Verbosity::UserBasic,
    }
}

/// Makes a handle.
///
/// # Errors
/// There is no such variable.
pub(crate) fn open(index: i32) -> Result<usize> {
    Ok(HANDLES.insert(Arc::new(control(index)?)) as usize)
}

/// Forgets a handle.
///
/// # Errors
/// There is none.
pub(crate) fn close(handle: usize) -> Result<()> {
    let index = u32::try_from(handle).map_err(|_| no_handle())?;
    HANDLES.remove(index).map(drop).ok_or_else(no_handle)
}

fn of(handle: usize) -> Result<&'static Setting> {
    let index = u32::try_from(handle).map_err(|_| no_handle())?;
    HANDLES.get(index).copied().ok_or_else(no_handle)
}

fn no_handle() -> Error {
    Class::T_INVALID_HANDLE.error("there is no such handle of a control variable, or it is freed")
}

fn changed() -> MutexGuard<'static, BTreeMap<&'static str, String>> {
    CHANGED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The value of a variable.
///
/// # Errors
/// There is no such handle.
pub(crate) fn read(handle: usize) -> Result<String> {
    let setting = of(handle)?;
    let name = setting.name;
    // Their values open connections to the job.
    if [SECRET.name, STARTED_BY.name].contains(&name) {
        return Ok("(not shown)".into());
    }
    if let Some(value) = changed().get(name) {
        return Ok(value.clone());
    }
    Ok(setting.value().unwrap_or_default().to_string_lossy().into_owned())
}

/// Sets a variable.
///
/// # Errors
/// It cannot be set, or not any more, or not to this value.
pub(crate) fn write(handle: usize, value: &str) -> Result<()> {
    let setting = of(handle)?;
    let name = setting.name;
    match scope_of(setting) {
        Scope::Constant => {
            let text = format!("{name} is read by the launcher or the compiler: set it in the environment");
            return Err(Class::T_CVAR_SET_NEVER.error(text));
        }
        Scope::Local if is_running() => {
            change(setting, value)?;
            changed().insert(name, value.into());
            return Ok(());
        }
        Scope::Local | Scope::AllEqual => {}
    }
    if is_running() || is_finalized() {
        let text = format!("{name} is read when MPI is initialised: set it before");
        return Err(Class::T_CVAR_SET_NOT_NOW.error(text));
    }
    check(setting, value)?;
    set(name, value);
    Ok(())
}

/// Has a value hold from now on; an empty one is the default.
fn change(setting: &Setting, value: &str) -> Result<()> {
    let session = world()?.session();
    let is_progress = setting.name == PROGRESS.name;
    let changed = match is_progress {
        true if value.is_empty() => session.set_progress(Progress::default()),
        true => session.set_progress(value.parse().map_err(|why: String| wrong(&why))?),
        false => session.set_strategy(None, value),
    };
    changed.map_err(|why| wrong(&why.to_string()))
}

/// Reports a wrong value now, and not when MPI is initialised.
fn check(setting: &Setting, value: &str) -> Result<()> {
    if value.len() >= TEXT_MAX {
        return Err(wrong(&format!("the value of {} is longer than {} B", setting.name, TEXT_MAX - 1)));
    }
    if value.is_empty() {
        return Ok(());
    }
    setting.check(value).map_err(|why| wrong(&why))?;
    let Some(key) = setting.key() else { return Ok(()) };
    let mut options = Options::default();
    options.set(&key, value).and_then(|()| options.check()).map_err(|why| wrong(&why.to_string()))
}

fn wrong(why: &str) -> Error {
    Class::T_INVALID.error(why)
}

fn set(name: &str, value: &str) {
    // SAFETY: readers in Rust take the lock of the standard library; a program in C that reads the
    // environment in another thread at the same time has to wait for this call, as for setenv.
    unsafe {
        match value {
            "" => std::env::remove_var(name),
            value => std::env::set_var(name, value),
        }
    }
}
