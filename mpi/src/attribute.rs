//! Attributes: values that programs attach to objects, with functions to copy and delete them.

use crate::error::{Class, Error, Result};
use crate::handle::{KEYVALS, Keyval};
use crate::table::Table;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Keys that programs made.
static KEYS: Table<Key> = Table::new(KEYVALS);

/// What kind of object a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Communicators.
    Comm,
    /// Datatypes.
    Type,
    /// Windows.
    Win,
}

impl Owner {
    fn name(self) -> &'static str {
        match self {
            Owner::Comm => "communicators",
            Owner::Type => "datatypes",
            Owner::Win => "windows",
        }
    }
}

/// What becomes of an attribute when its object is duplicated.
pub enum Copy {
    /// It is not copied (`MPI_NULL_COPY_FN` and its kin).
    Null,
    /// Its value is (`MPI_DUP_FN` and its kin).
    Dup,
    /// As the function says, which is given the handle of the old object (the core's), the key, and the
    /// value: the new value, or none.
    User(Box<CopyFunction>),
}

/// A copy function of the program's.
pub type CopyFunction = dyn Fn(u32, Keyval, usize) -> Result<Option<usize>> + Send + Sync;

/// The callback that runs when an attribute is deleted.
pub enum Delete {
    /// Nothing (`MPI_NULL_DELETE_FN` and its kin).
    Null,
    /// What the function does, which is given the handle of the object (the core's), the key, and the value.
    User(Box<DeleteFunction>),
}

/// A delete function of the program's.
pub type DeleteFunction = dyn Fn(u32, Keyval, usize) -> Result<()> + Send + Sync;

/// A key. Attributes that use it keep it, and its number with it, when the program has freed it.
pub(crate) struct Key {
    number: u32,
    owner: Owner,
    copy: Copy,
    delete: Delete,
}

/// A new key.
pub(crate) fn create(owner: Owner, copy: Copy, delete: Delete) -> Keyval {
    let number = KEYS.reserve();
    KEYS.set(number, Arc::new(Key { number, owner, copy, delete }));
    Keyval(number)
}

/// Keys that the program has freed while attributes use them, by number.
static FREED: Mutex<BTreeMap<u32, Owner>> = Mutex::new(BTreeMap::new());

fn freed() -> MutexGuard<'static, BTreeMap<u32, Owner>> {
    FREED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Drop for Key {
    fn drop(&mut self) {
        freed().remove(&self.number);
        KEYS.release(self.number);
    }
}

/// Takes a key back. Attributes that use it stay, and are got and deleted by its number, which is no other
/// key's before the last of them is gone (MPI 5.0, section 7.7.2); nothing more is set by it. Until then a
/// copy of its handle may be freed again, in a delete function say, since the key is still there.
///
/// # Errors
/// There is no such key for this kind of object, or it is predefined.
pub(crate) fn free(owner: Owner, keyval: &mut Keyval) -> Result<()> {
    if freed().get(&keyval.0) != Some(&owner) {
        let key = lookup(owner, *keyval)?;
        freed().insert(keyval.0, owner);
        // If no attribute uses it, this is its end, which takes it off the list.
        KEYS.hide(keyval.0);
        drop(key);
    }
    *keyval = Keyval::NULL;
    Ok(())
}

fn lookup(owner: Owner, keyval: Keyval) -> Result<Arc<Key>> {
    let found = KEYS.share(keyval.0).filter(|key| key.owner == owner);
    found.ok_or_else(|| no_key(owner, keyval))
}

#[cold]
fn no_key(owner: Owner, keyval: Keyval) -> Error {
    Class::KEYVAL.error(match (keyval, keyval.name()) {
        (Keyval::NULL, _) => "the attribute key is MPI_KEYVAL_INVALID".to_string(),
        (_, Some(name)) if owner == Owner::Comm => format!("the attribute {name} cannot be changed"),
        (_, Some(name)) => format!("{name} is an attribute of communicators, not of {}", owner.name()),
        (Keyval(index), _) if index < KEYVALS => match owner {
            Owner::Win => "this attribute of the window cannot be changed".to_string(),
            _ => format!("the attribute key is one of windows, not of {}", owner.name()),
        },
        (Keyval(index), _) => {
            format!("there is no key {index} of {}: it never was, is freed, or is for others", owner.name())
        }
    })
}

/// The attributes of one object, in the order in which they were set.
#[derive(Default)]
pub(crate) struct Attributes(Mutex<Vec<Attribute>>);

#[derive(Clone)]
struct Attribute {
    keyval: Keyval,
    key: Arc<Key>,
    value: usize,
}

impl Attributes {
    fn list(&self) -> MutexGuard<'_, Vec<Attribute>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The value of a key.
    ///
    /// # Errors
    /// There is no such key.
    pub(crate) fn get(&self, owner: Owner, keyval: Keyval) -> Result<Option<usize>> {
        let found = self.list().iter().find(|attribute| attribute.keyval == keyval).map(|found| found.value);
        // A key that was freed still finds what was set before.
        if found.is_none() {
            lookup(owner, keyval)?;
        }
        Ok(found)
    }

    /// Sets an attribute of the object `object`; the one that was there is deleted first.
    ///
    /// # Errors
    /// There is no such key, or the delete function fails.
    pub(crate) fn set(&self, owner: Owner, object: u32, keyval: Keyval, value: usize) -> Result<()> {
        let key = lookup(owner, keyval)?;
        let old = self.list().iter().find(|attribute| attribute.keyval == keyval).cloned();
        if let Some(old) = old {
            old.delete(object)?;
        }
        let mut list = self.list();
        match list.iter_mut().find(|attribute| attribute.keyval == keyval) {
            Some(attribute) => attribute.value = value,
            None => list.push(Attribute { keyval, key, value }),
        }
        Ok(())
    }

    /// Deletes an attribute.
    ///
    /// # Errors
    /// There is no such key or attribute, or the delete function fails: then it stays.
    pub(crate) fn delete(&self, owner: Owner, object: u32, keyval: Keyval) -> Result<()> {
        let old = self.list().iter().find(|attribute| attribute.keyval == keyval).cloned();
        let Some(old) = old else {
            lookup(owner, keyval)?;
            return Err(Class::KEYVAL.error(format!("the object has no attribute of key {}", keyval.0)));
        };
        old.delete(object)?;
        self.list().retain(|attribute| attribute.keyval != keyval);
        Ok(())
    }

    /// Deletes all attributes, the last one first.
    ///
    /// # Errors
    /// A delete function fails; its attribute and those set before it stay.
    pub(crate) fn delete_all(&self, object: u32) -> Result<()> {
        loop {
            let Some(last) = self.list().last().cloned() else { return Ok(()) };
            last.delete(object)?;
            self.list().retain(|attribute| attribute.keyval != last.keyval);
        }
    }

    /// Copies those of the object `object` to its duplicate, which has none yet: its attributes and its name.
    ///
    /// # Errors
    /// A copy function fails; the attributes copied before are deleted, the last one first.
    pub(crate) fn copy(&self, object: u32, (new, duplicate): (&Attributes, u32)) -> Result<()> {
        let old = self.list().clone();
        for Attribute { keyval, key, value } in old {
            let value = match &key.copy {
                Copy::Null => None,
                Copy::Dup => Some(value),
                Copy::User(copy) => copy(object, keyval, value).inspect_err(|_| new.discard(duplicate))?,
            };
            new.list().extend(value.map(|value| Attribute { keyval, key, value }));
        }
        Ok(())
    }

    /// Deletes all attributes, the last one first, whatever their delete functions answer.
    fn discard(&self, object: u32) {
        while let Some(last) = { self.list().pop() } {
            let _ = last.delete(object);
        }
    }
}

impl Attribute {
    fn delete(&self, object: u32) -> Result<()> {
        match &self.key.delete {
            Delete::Null => Ok(()),
            Delete::User(delete) => delete(object, self.keyval, self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn attributes_are_copied_and_deleted_as_their_keys_say() {
        static DELETED: AtomicUsize = AtomicUsize::new(0);
        let count = || {
            Delete::User(Box::new(|_, _, value| {
                DELETED.fetch_add(value, Ordering::Relaxed);
                Ok(())
            }))
        };
        let twice = Copy::User(Box::new(|_, _, value| Ok(Some(value * 2))));
        let keys = [Copy::Null, Copy::Dup, twice].map(|copy| create(Owner::Comm, copy, count()));
        let attributes = Attributes::default();
        keys.iter().for_each(|&key| attributes.set(Owner::Comm, 300, key, 10).unwrap());
        attributes.set(Owner::Comm, 300, keys[1], 11).unwrap();
        assert_eq!(DELETED.load(Ordering::Relaxed), 10, "the value that was replaced is deleted");
        let copy = Attributes::default();
        attributes.copy(300, (&copy, 301)).unwrap();
        let values = keys.map(|key| copy.get(Owner::Comm, key).unwrap());
        assert_eq!(values, [None, Some(11), Some(20)]);
        attributes.delete(Owner::Comm, 300, keys[0]).unwrap();
        assert!(attributes.delete(Owner::Comm, 300, keys[0]).is_err());
        attributes.delete_all(300).unwrap();
        assert_eq!(DELETED.load(Ordering::Relaxed), 10 + 10 + 11 + 10);
    }

    #[test]
    fn a_key_is_for_one_kind_of_object_and_ends_with_its_last_attribute() {
        let mut key = create(Owner::Type, Copy::Dup, Delete::Null);
        let attributes = Attributes::default();
        assert!(attributes.set(Owner::Comm, 0, key, 1).is_err());
        attributes.set(Owner::Type, 0, key, 1).unwrap();
        let number = key;
        free(Owner::Type, &mut key).unwrap();
        assert!(key.is_null() && free(Owner::Comm, &mut { number }).is_err());
        assert_eq!(attributes.get(Owner::Type, number), Ok(Some(1)));
        assert!(attributes.set(Owner::Type, 0, number, 2).is_err());
        let mut copy = number;
        free(Owner::Type, &mut copy).unwrap();
        assert!(copy.is_null(), "an attribute uses it, so it is there");
        attributes.delete(Owner::Type, 0, number).unwrap();
        assert!(free(Owner::Type, &mut { number }).is_err() && attributes.get(Owner::Type, number).is_err());
    }

    #[test]
    fn a_copy_that_fails_is_undone_in_reverse() {
        static DELETED: Mutex<Vec<(u32, usize)>> = Mutex::new(Vec::new());
        let deleted = || std::mem::take(&mut *DELETED.lock().unwrap());
        let key = |copy: Copy| {
            let delete = |object, _, value| {
                DELETED.lock().unwrap().push((object, value));
                if value == 2 { Err(Class::OTHER.error("this one stays")) } else { Ok(()) }
            };
            create(Owner::Comm, copy, Delete::User(Box::new(delete)))
        };
        let twice = Copy::User(Box::new(|_, _, value| Ok(Some(value * 2))));
        let never = Copy::User(Box::new(|_, _, _| Err(Class::RANK.error("no copy"))));
        let (attributes, copy) = (Attributes::default(), Attributes::default());
        for (value, how) in [(1, Copy::Dup), (7, Copy::Null), (1, twice), (3, Copy::Dup), (4, never)] {
            attributes.set(Owner::Comm, 300, key(how), value).unwrap();
        }
        assert_eq!(attributes.copy(300, (&copy, 301)).unwrap_err().class(), Class::RANK);
        assert_eq!(deleted(), [(301, 3), (301, 2), (301, 1)]);
        copy.delete_all(301).unwrap();
        assert_eq!(deleted(), [], "nothing is left");
        let last = attributes.list().last().unwrap().keyval;
        attributes.delete(Owner::Comm, 300, last).unwrap();
        attributes.copy(300, (&copy, 301)).unwrap();
        assert_eq!((deleted(), copy.list().len()), (vec![(300, 4)], 3));
    }
}
