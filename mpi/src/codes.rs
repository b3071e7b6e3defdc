//! Error classes, codes and texts that programs add.

use crate::error::{Class, Error, Result};
use crate::shown;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard};

/// What programs have added, by number.
static ADDED: Mutex<BTreeMap<i32, Added>> = Mutex::new(BTreeMap::new());
/// The highest number ever used: the attribute MPI_LASTUSEDCODE.
pub(crate) static LAST_USED: AtomicI32 = AtomicI32::new(Class::LAST.0);

struct Added {
    class: Class,
    text: Option<String>,
}

fn added() -> MutexGuard<'static, BTreeMap<i32, Added>> {
    ADDED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn unknown(class: Class) -> Error {
    let number = shown::class(class);
    Class::ARG.error(format!("{number} is no error class or code that this program has added"))
}

fn add(class: impl FnOnce(Class) -> Class) -> Class {
    let mut added = added();
    let number = LAST_USED.fetch_add(1, Ordering::Relaxed) + 1;
    added.insert(number, Added { class: class(Class(number)), text: None });
    Class(number)
}

/// A new class.
pub(crate) fn add_class() -> Class {
    add(|own| own)
}

/// A new code of a class.
pub(crate) fn add_code(class: Class) -> Result<Class> {
    if class.name().is_none() && !is_class(class) {
        return Err(unknown(class));
    }
    Ok(add(|_| class))
}

fn is_class(class: Class) -> bool {
    added().get(&class.0).is_some_and(|entry| entry.class == class)
}

/// Gives a class or code its text.
pub(crate) fn set_text(number: Class, text: Option<&str>) -> Result<()> {
    let mut added = added();
    let entry = added.get_mut(&number.0).ok_or_else(|| unknown(number))?;
    entry.text = text.map(String::from);
    Ok(())
}

/// Takes a class back, of which there are no codes any more, and no text.
pub(crate) fn remove_class(class: Class) -> Result<()> {
    if !is_class(class) {
        return Err(unknown(class));
    }
    let mut added = added();
    if added.iter().any(|(&number, entry)| number != class.0 && entry.class == class) {
        return Err(
            Class::OTHER.error(format!("error class {} has codes: remove them first", shown::class(class)))
        );
    }
    remove(&mut added, class)
}

/// Takes a code back, of which there is no text any more.
pub(crate) fn remove_code(code: Class) -> Result<()> {
    if is_class(code) {
        return Err(Class::ARG.error(format!("{} is an error class, not a code", shown::class(code))));
    }
    remove(&mut added(), code)
}

fn remove(added: &mut BTreeMap<i32, Added>, number: Class) -> Result<()> {
    if added.get(&number.0).is_some_and(|entry| entry.text.is_some()) {
        return Err(Class::OTHER.error(format!("{} has a text: remove it first", shown::class(number))));
    }
    added.remove(&number.0).map(drop).ok_or_else(|| unknown(number))?;
    let last = added.keys().last().copied().unwrap_or(Class::LAST.0);
    LAST_USED.store(last, Ordering::Relaxed);
    Ok(())
}

/// The class of a class or code above [`Class::LAST`].
pub(crate) fn class_of(number: Class) -> Result<Class> {
    added().get(&number.0).map(|entry| entry.class).ok_or_else(|| unknown(number))
}

/// The text of a class or code above [`Class::LAST`]; empty if it has none.
pub(crate) fn text(number: Class) -> Result<String> {
    let added = added();
    let entry = added.get(&number.0).ok_or_else(|| unknown(number))?;
    Ok(entry.text.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_codes_come_and_go() {
        let class = add_class();
        assert!(class > Class::LAST);
        let code = add_code(class).unwrap();
        assert_eq!((class_of(class), class_of(code)), (Ok(class), Ok(class)));
        assert_eq!(text(code).unwrap(), "");
        set_text(code, Some("too hot")).unwrap();
        assert_eq!(text(code).unwrap(), "too hot");
        assert_eq!(remove_class(class).unwrap_err().class(), Class::OTHER);
        assert!(remove_code(class).is_err());
        assert_eq!(remove_code(code).unwrap_err().class(), Class::OTHER, "it has a text");
        set_text(code, None).unwrap();
        assert_eq!(text(code).unwrap(), "");
        remove_code(code).unwrap();
        remove_class(class).unwrap();
        assert!(class_of(code).is_err() && remove_class(class).is_err());
        assert!(add_code(Class(99)).is_err() && add_code(Class::RANK).is_ok());
    }
}
