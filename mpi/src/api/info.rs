//! Info objects.

use crate::error::{Class, Result};
use crate::handle::Info;
use crate::info::{self, Infos, check_key, check_value, lookup};

/// `MPI_Info_create`
pub fn info_create() -> Info {
    info::insert(Infos::default())
}

/// `MPI_Info_create_env`: how this process was started, as far as the library knows.
///
/// # Errors
/// None.
pub fn info_create_env() -> Result<Info> {
    Ok(info::insert(lookup(Info::ENV)?.copy()))
}

/// `MPI_Info_dup`
///
/// # Errors
/// There is no such object.
pub fn info_dup(info: Info) -> Result<Info> {
    Ok(info::insert(lookup(info)?.copy()))
}

/// `MPI_Info_free`
///
/// # Errors
/// There is no such object, or it is predefined.
pub fn info_free(info: &mut Info) -> Result<()> {
    info::remove(info)
}

/// `MPI_Info_set`
///
/// # Errors
/// There is no such object, it is predefined, or key or value are too long.
pub fn info_set(info: Info, key: &str, value: &str) -> Result<()> {
    check_key(key)?;
    check_value(value)?;
    changeable(info)?;
    lookup(info)?.set(key, value);
    Ok(())
}

/// `MPI_Info_delete`
///
/// # Errors
/// There is no such object or key, or it is predefined.
pub fn info_delete(info: Info, key: &str) -> Result<()> {
    check_key(key)?;
    changeable(info)?;
    if lookup(info)?.delete(key) {
        return Ok(());
    }
    Err(Class::INFO_NOKEY.error(format!("the info object has no key '{key}'")))
}

fn changeable(info: Info) -> Result<()> {
    if info == Info::ENV {
        return Err(Class::INFO.error("MPI_INFO_ENV can neither be changed nor freed"));
    }
    Ok(())
}

/// `MPI_Info_get_string`, and the older `MPI_Info_get` and `MPI_Info_get_valuelen`: the value, if there is
/// one.
///
/// # Errors
/// There is no such object.
pub fn info_get_string(info: Info, key: &str) -> Result<Option<String>> {
    check_key(key)?;
    Ok(lookup(info)?.get(key))
}

/// `MPI_Info_get_nkeys`
///
/// # Errors
/// There is no such object.
pub fn info_get_nkeys(info: Info) -> Result<i32> {
    Ok(lookup(info)?.len() as i32)
}

/// `MPI_Info_get_nthkey`
///
/// # Errors
/// There is no such object, or it has fewer keys.
pub fn info_get_nthkey(info: Info, n: i32) -> Result<String> {
    let infos = lookup(info)?;
    let key = usize::try_from(n).ok().and_then(|index| infos.key(index));
    key.ok_or_else(|| Class::ARG.error(format!("there is no key {n}: the info object has {}", infos.len())))
}
