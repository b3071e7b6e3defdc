//! Control variables: every setting, under the name of its variable of the environment. Its value is a text,
//! empty while the setting is not set.

use super::{Verbosity, entry};
use crate::error::{Class, Error, Result};
use crate::table::Table;
use crate::world::{is_finalized, is_running, world};
use newmadeleine::{Options, Progress, variables};
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

/// Those that this process does not read any more, or that nobody should read.
const OF_OTHERS: [&str; 10] = [
    "NMAD_CC",
    "NMAD_CXX",
    "NMAD_FC",
    "NMAD_LOCAL_RANK",
    "NMAD_LOCAL_SIZE",
    "NMAD_MPI_ABI",
    SECRET,
    "NMAD_SINGLETON",
    PARENT,
    "NMAD_TESTBED",
];
/// Their values open connections to the job: they are not shown.
const SECRET: &str = "NMAD_SECRET";
const PARENT: &str = "NMAD_STARTED_BY";
const STRATEGY: &str = "NMAD_STRATEGY";
const PROGRESS: &str = "NMAD_PROGRESS";

/// Values that were set after MPI was initialised.
static CHANGED: Mutex<BTreeMap<&str, String>> = Mutex::new(BTreeMap::new());
/// Variables whose handles the program has.
static HANDLES: Table<&str> = Table::new(crate::handle::DYNAMIC);

/// A control variable.
#[derive(Debug, Clone, Copy)]
pub struct Control {
    /// Its name.
    pub name: &'static str,
    /// Its effect.
    pub about: &'static str,
    /// For whom it is.
    pub verbosity: Verbosity,
    /// When it can be set.
    pub scope: Scope,
}

/// How many there are.
pub(crate) const COUNT: usize = variables::ALL.len();

/// The variable of an index.
///
/// # Errors
/// There is none.
pub(crate) fn control(index: i32) -> Result<Control> {
    let name = *entry("control variable", &variables::ALL, index)?;
    let scope = match name {
        STRATEGY | PROGRESS => Scope::Local,
        _ if OF_OTHERS.contains(&name) => Scope::Constant,
        _ => Scope::AllEqual,
    };
    let verbosity = match name {
        "NMAD_DRIVER" | "NMAD_EXPLAIN" | "NMAD_LOG" | "NMAD_RAILS" | "NMAD_STATS" | STRATEGY => {
            Verbosity::UserBasic
        }
        _ if scope == Scope::Constant => Verbosity::UserDetail,
        _ => Verbosity::TunerBasic,
    };
    Ok(Control { name, about: variables::meaning(name), verbosity, scope })
}

/// Makes a handle.
///
/// # Errors
/// There is no such variable.
pub(crate) fn open(index: i32) -> Result<usize> {
    Ok(HANDLES.insert(Arc::new(control(index)?.name)) as usize)
}

/// Forgets a handle.
///
/// # Errors
/// There is none.
pub(crate) fn close(handle: usize) -> Result<()> {
    let index = u32::try_from(handle).map_err(|_| no_handle())?;
    HANDLES.remove(index).map(drop).ok_or_else(no_handle)
}

fn of(handle: usize) -> Result<&'static str> {
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
    let name = of(handle)?;
    if name == SECRET {
        return Ok("(not shown)".into());
    }
    if let Some(value) = changed().get(name) {
        return Ok(value.clone());
    }
    Ok(std::env::var_os(name).unwrap_or_default().to_string_lossy().into_owned())
}

/// Sets a variable.
///
/// # Errors
/// It cannot be set, or not any more, or not to this value.
pub(crate) fn write(handle: usize, value: &str) -> Result<()> {
    let name = of(handle)?;
    let index = variables::ALL.iter().position(|each| *each == name).unwrap_or_default();
    match control(index as i32)?.scope {
        Scope::Constant => {
            let text = format!("{name} is read by the launcher or the compiler: set it in the environment");
            return Err(Class::T_CVAR_SET_NEVER.error(text));
        }
        Scope::Local if is_running() => {
            change(name, value)?;
            changed().insert(name, value.into());
            return Ok(());
        }
        Scope::Local | Scope::AllEqual => {}
    }
    if is_running() || is_finalized() {
        let text = format!("{name} is read when MPI is initialised: set it before");
        return Err(Class::T_CVAR_SET_NOT_NOW.error(text));
    }
    check(name, value)?;
    set(name, value);
    Ok(())
}

/// Has a value hold from now on; an empty one is the default.
fn change(name: &str, value: &str) -> Result<()> {
    let session = world()?.session();
    let changed = match name {
        PROGRESS if value.is_empty() => session.set_progress(Progress::default()),
        PROGRESS => session.set_progress(value.parse().map_err(|why: String| wrong(&why))?),
        _ => session.set_strategy(None, value),
    };
    changed.map_err(|why| wrong(&why.to_string()))
}

/// Reports a wrong value now, and not when MPI is initialised.
fn check(name: &str, value: &str) -> Result<()> {
    if value.len() >= TEXT_MAX {
        return Err(wrong(&format!("the value of {name} is longer than {} B", TEXT_MAX - 1)));
    }
    let key = name.trim_start_matches(variables::PREFIX).to_lowercase();
    if value.is_empty() || !Options::KEYS.contains(&&*key) {
        return Ok(());
    }
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
