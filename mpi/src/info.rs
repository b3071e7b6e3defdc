//! Info objects: ordered keys with values, both texts.

use crate::constant::{MAX_INFO_KEY, MAX_INFO_VAL};
use crate::error::{Class, Error, Result};
use crate::handle::{DYNAMIC, Info};
use crate::table::Table;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// The key of the alignment of memory, in bytes.
const ALIGNMENT: &str = "mpi_minimum_memory_alignment";
/// The most that can be asked for, in bytes: the longest pages of processors.
const ALIGNMENT_MAX: usize = 1 << 30;
/// The key that says in what kinds of memory buffers may lie: that of the system, and what MPI has allocated.
/// The value belongs to the library: what a program has set there is not given back.
const KINDS: (&str, &str) = ("mpi_memory_alloc_kinds", "mpi,system");

/// Info objects that programs made.
static INFOS: Table<Infos> = Table::new(DYNAMIC);

/// MPI_INFO_ENV
static ENVIRONMENT: LazyLock<Arc<Infos>> = LazyLock::new(|| Arc::new(environment()));

/// An info object.
#[derive(Debug, Default)]
pub(crate) struct Infos(Mutex<Vec<(String, String)>>);

impl Infos {
    fn entries(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Another one with the same entries.
    pub(crate) fn copy(&self) -> Infos {
        Infos(Mutex::new(self.entries().clone()))
    }

    /// What a program is told when it asks an object for its info: the entries, and the kinds of memory.
    pub(crate) fn told(&self) -> Infos {
        let told = self.copy();
        told.set(KINDS.0, KINDS.1);
        told
    }

    /// Bytes to a multiple of which memory has to be aligned; one: nothing is said.
    ///
    /// # Errors
    /// Class INFO_VALUE if the value is no power of two, or more than [`ALIGNMENT_MAX`].
    pub(crate) fn alignment(&self) -> Result<usize> {
        let Some(value) = self.get(ALIGNMENT) else { return Ok(1) };
        let unit = value.trim().parse().ok();
        unit.filter(|&unit: &usize| unit.is_power_of_two() && unit <= ALIGNMENT_MAX).ok_or_else(|| {
            Class::INFO_VALUE
                .error(format!("{ALIGNMENT}: '{value}' is no power of two from 1 to {ALIGNMENT_MAX}"))
        })
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    /// Sets a key, at its place if it is there.
    pub(crate) fn set(&self, key: &str, value: &str) {
        let mut entries = self.entries();
        match entries.iter_mut().find(|(name, _)| name == key) {
            Some(entry) => entry.1 = value.into(),
            None => entries.push((key.into(), value.into())),
        }
    }

    /// Removes a key; false: it is not there.
    pub(crate) fn delete(&self, key: &str) -> bool {
        let mut entries = self.entries();
        let before = entries.len();
        entries.retain(|(name, _)| name != key);
        entries.len() < before
    }

    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }

    pub(crate) fn key(&self, index: usize) -> Option<String> {
        self.entries().get(index).map(|(key, _)| key.clone())
    }

    /// Takes over all entries of another one.
    pub(crate) fn merge(&self, other: &Infos) {
        let others = other.entries().clone();
        others.iter().for_each(|(key, value)| self.set(key, value));
    }
}

/// How this process was started, as far as the library knows (MPI 5.0, 11.2.1).
fn environment() -> Infos {
    let infos = Infos::default();
    let arguments: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    if let Some((command, rest)) = arguments.split_first() {
        infos.set("command", command);
        infos.set("argv", &rest.join(" "));
    }
    if let Ok(folder) = std::env::current_dir() {
        infos.set("wdir", &folder.to_string_lossy());
    }
    infos.set("arch", std::env::consts::ARCH);
    infos.set(KINDS.0, KINDS.1);
    infos.set("host", &newmadeleine::host_name());
    if let Ok(world) = crate::world::world() {
        infos.set("maxprocs", &world.session().size().to_string());
    }
    if let Ok((level, _)) = crate::world::model() {
        infos.set("thread_level", level.name());
    }
    infos
}

/// A new object: its handle.
pub(crate) fn insert(infos: Infos) -> Info {
    Info(INFOS.insert(Arc::new(infos)))
}

/// The object of a handle.
///
/// # Errors
/// There is none.
pub(crate) fn lookup(info: Info) -> Result<Arc<Infos>> {
    let found = if info == Info::ENV { Some(ENVIRONMENT.clone()) } else { INFOS.share(info.0) };
    found.ok_or_else(|| no_info(info))
}

/// The object of a handle; none for the null handle, which stands for no information.
///
/// # Errors
/// There is none.
pub(crate) fn optional(info: Info) -> Result<Option<Arc<Infos>>> {
    if info.is_null() { Ok(None) } else { lookup(info).map(Some) }
}

/// Removes an object.
///
/// # Errors
/// There is none, or it is predefined.
pub(crate) fn remove(info: &mut Info) -> Result<()> {
    INFOS.remove(info.0).ok_or_else(|| no_info(*info))?;
    *info = Info::NULL;
    Ok(())
}

#[cold]
fn no_info(info: Info) -> Error {
    Class::INFO.error(match info {
        Info::NULL => "the info object is MPI_INFO_NULL".to_string(),
        Info::ENV => "MPI_INFO_ENV can neither be changed nor freed".to_string(),
        Info(index) => format!("there is no info object {index}: it never was, or is freed"),
    })
}

/// Whether a key can be one.
///
/// # Errors
/// It is empty or too long.
pub(crate) fn check_key(key: &str) -> Result<()> {
    if key.is_empty() || key.len() >= MAX_INFO_KEY {
        let most = MAX_INFO_KEY - 1;
        return Err(Class::INFO_KEY.error(format!("a key of {} B: it must have 1 to {most}", key.len())));
    }
    Ok(())
}

/// Whether a value can be one.
///
/// # Errors
/// It is too long.
pub(crate) fn check_value(value: &str) -> Result<()> {
    if value.len() >= MAX_INFO_VAL {
        let most = MAX_INFO_VAL - 1;
        return Err(Class::INFO_VALUE.error(format!("a value of {} B: at most {most}", value.len())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order() {
        let infos = Infos::default();
        for (key, value) in [("b", "1"), ("a", "2"), ("b", "3")] {
            infos.set(key, value);
        }
        let keys: Vec<_> = (0..infos.len()).filter_map(|index| infos.key(index)).collect();
        assert_eq!((keys, infos.get("b")), (vec!["b".to_string(), "a".to_string()], Some("3".to_string())));
        let copy = infos.copy();
        assert!(infos.delete("b") && !infos.delete("b"));
        assert_eq!((infos.get("b"), copy.len(), infos.key(1)), (None, 2, None));
        infos.merge(&copy);
        assert_eq!(infos.len(), 2);
    }

    #[test]
    fn alignments_are_powers_of_two() {
        let infos = Infos::default();
        assert_eq!(infos.alignment(), Ok(1));
        for (value, expected) in [("1", Some(1)), (" 65536 ", Some(1 << 16)), ("1073741824", Some(1 << 30))] {
            infos.set(ALIGNMENT, value);
            assert_eq!(infos.alignment().ok(), expected);
        }
        for value in ["0", "24", "-8", "2147483648", "a page", ""] {
            infos.set(ALIGNMENT, value);
            let error = infos.alignment().unwrap_err();
            assert!(error.class() == Class::INFO_VALUE && error.text().contains(ALIGNMENT), "{error}");
        }
    }

    #[test]
    fn handles_that_are_none_are_named() {
        let mut info = insert(Infos::default());
        lookup(info).unwrap().set("key", "value");
        remove(&mut info).unwrap();
        assert!(info.is_null());
        for (wrong, word) in [(Info::NULL, "MPI_INFO_NULL"), (Info(4711), "4711")] {
            let error = lookup(wrong).unwrap_err();
            assert!(error.class() == Class::INFO && error.text().contains(word), "{error}");
        }
        assert!(remove(&mut { Info::ENV }).is_err() && optional(Info::NULL).unwrap().is_none());
        assert!(check_key("").is_err() && check_key(&"k".repeat(256)).is_err() && check_key("k").is_ok());
        assert!(check_value("").is_ok() && check_value(&"v".repeat(1024)).is_err());
    }
}
