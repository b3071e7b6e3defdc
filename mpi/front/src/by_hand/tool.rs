//! The tools interface: texts with the room for them in one argument, values of several types, functions of
//! the program.

use super::{Word, function};
use crate::abi::Numbers;
use crate::{Abi, give, take};
use nmad_mpi::api::{self, Binding, OnDropped, OnEvent, Safety, TEXT_MAX, Values};
use nmad_mpi::error::{Class, Result};
use nmad_mpi::handle::{Info, Type};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// Writes a text, as far as there is room. `len` says how much room there is, and gets how much was used; if
/// there is none, how much is needed.
fn text(to: *mut c_char, len: *mut i32, text: &str) {
    let Ok(room) = take::read("length", len) else { return };
    let needed = text.len() as i32 + 1;
    if to.is_null() || room <= 0 {
        return give::value(len, needed);
    }
    give::string(to, room as usize, text, std::ptr::null_mut());
    give::value(len, needed.min(room));
}

fn number<A: Abi>(to: *mut i32, group: Numbers, number: i32) {
    give::value(to, give::number::<A>(group, number));
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn t_category_get_info<A: Abi>(
    index: i32,
    name: *mut c_char,
    name_len: *mut i32,
    about: *mut c_char,
    about_len: *mut i32,
    controls: *mut i32,
    performances: *mut i32,
    categories: *mut i32,
) -> Result<()> {
    let category = api::t_category(index)?;
    text(name, name_len, category.name);
    text(about, about_len, category.about);
    give::value(controls, api::t_category_get_cvars(index)?.len() as i32);
    give::value(performances, api::t_category_get_pvars(index)?.len() as i32);
    give::value(categories, api::t_category_get_categories(index)?.len() as i32);
    Ok(())
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn t_cvar_get_info<A: Abi>(
    index: i32,
    name: *mut c_char,
    name_len: *mut i32,
    verbosity: *mut i32,
    datatype: *mut A::Handle,
    enumeration: *mut *mut c_void,
    about: *mut c_char,
    about_len: *mut i32,
    bind: *mut i32,
    scope: *mut i32,
) -> Result<()> {
    let setting = api::t_cvar(index)?;
    text(name, name_len, setting.name);
    text(about, about_len, setting.meaning);
    number::<A>(verbosity, Numbers::Verbosity, api::verbosity_of(setting) as i32);
    number::<A>(bind, Numbers::Binding, Binding::Nothing as i32);
    number::<A>(scope, Numbers::Scope, api::scope_of(setting) as i32);
    give::value(datatype, give::datatype::<A>(Type::CHAR));
    give::value(enumeration, std::ptr::null_mut());
    Ok(())
}

pub(crate) fn t_cvar_handle_alloc<A: Abi>(
    index: i32,
    _object: *mut c_void,
    handle: *mut *mut c_void,
    count: *mut i32,
) -> Result<()> {
    take::place("handle", handle)?;
    let (opened, room) = api::t_cvar_handle_alloc(index)?;
    give::value(handle, give::tool::<A>(opened));
    give::value(count, room);
    Ok(())
}

pub(crate) fn t_cvar_read<A: Abi>(handle: usize, to: *mut c_void) -> Result<()> {
    take::place("buf", to)?;
    give::string(to.cast(), TEXT_MAX, &api::t_cvar_read(handle)?, std::ptr::null_mut());
    Ok(())
}

pub(crate) fn t_cvar_write<A: Abi>(handle: usize, from: *const c_void) -> Result<()> {
    api::t_cvar_write(handle, &take::string("buf", from.cast())?)
}

pub(crate) fn t_enum_get_info<A: Abi>(
    handle: usize,
    count: *mut i32,
    name: *mut c_char,
    name_len: *mut i32,
) -> Result<()> {
    let (found, items) = api::t_enum(handle)?;
    text(name, name_len, found);
    give::value(count, items.len() as i32);
    Ok(())
}

pub(crate) fn t_enum_get_item<A: Abi>(
    handle: usize,
    index: i32,
    value: *mut i32,
    name: *mut c_char,
    name_len: *mut i32,
) -> Result<()> {
    let (_, items) = api::t_enum(handle)?;
    let item = usize::try_from(index).ok().and_then(|index| items.get(index));
    let none = || Class::T_INVALID_ITEM.error(format!("there is no item {index}: there are {}", items.len()));
    text(name, name_len, item.ok_or_else(none)?);
    give::value(value, index);
    Ok(())
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn t_pvar_get_info<A: Abi>(
    index: i32,
    name: *mut c_char,
    name_len: *mut i32,
    verbosity: *mut i32,
    kind: *mut i32,
    datatype: *mut A::Handle,
    enumeration: *mut *mut c_void,
    about: *mut c_char,
    about_len: *mut i32,
    bind: *mut i32,
    is_read_only: *mut i32,
    is_continuous: *mut i32,
    is_atomic: *mut i32,
) -> Result<()> {
    let variable = api::t_pvar(index)?;
    text(name, name_len, variable.name);
    text(about, about_len, variable.about);
    number::<A>(verbosity, Numbers::Verbosity, variable.verbosity as i32);
    number::<A>(kind, Numbers::Variable, variable.kind as i32);
    number::<A>(bind, Numbers::Binding, variable.binding() as i32);
    give::value(datatype, give::datatype::<A>(variable.datatype()));
    give::value(enumeration, give::tool::<A>(api::t_pvar_enum(variable)));
    give::value(is_read_only, 1);
    give::value(is_continuous, 1);
    give::value(is_atomic, 0);
    Ok(())
}

pub(crate) fn t_pvar_handle_alloc<A: Abi>(
    session: usize,
    index: i32,
    object: *mut c_void,
    handle: *mut *mut c_void,
    count: *mut i32,
) -> Result<()> {
    take::place("handle", handle)?;
    let comm = match api::t_pvar(index)?.binding() {
        Binding::Nothing => None,
        Binding::Comm => {
            let comm = take::read("obj_handle", object.cast::<A::Handle>())?;
            Some(take::comm::<A>("obj_handle", comm)?)
        }
    };
    let (opened, values) = api::t_pvar_handle_alloc(session, index, comm)?;
    give::value(handle, give::pvar_handle::<A>(opened));
    give::value(count, values);
    Ok(())
}

pub(crate) fn t_pvar_read<A: Abi>(session: usize, handle: usize, to: *mut c_void) -> Result<()> {
    take::place("buf", to)?;
    match api::t_pvar_read(session, handle)? {
        Values::States(values) => give::list(to.cast::<i32>(), values.len(), values, |value| value),
        Values::Whole(values) => give::list(to.cast::<u64>(), values.len(), values, |value| value),
        Values::Real(values) => give::list(to.cast::<f64>(), values.len(), values, |value| value),
    }
    Ok(())
}

pub(crate) fn t_pvar_readreset<A: Abi>(session: usize, handle: usize, _to: *mut c_void) -> Result<()> {
    api::t_pvar_readreset(session, handle)
}

pub(crate) fn t_pvar_write<A: Abi>(session: usize, handle: usize, _from: *const c_void) -> Result<()> {
    api::t_pvar_write(session, handle)
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn t_source_get_info<A: Abi>(
    index: i32,
    name: *mut c_char,
    name_len: *mut i32,
    about: *mut c_char,
    about_len: *mut i32,
    ordering: *mut i32,
    ticks_per_second: *mut i64,
    max_ticks: *mut i64,
    info: *mut A::Handle,
) -> Result<()> {
    api::t_source(index)?;
    text(name, name_len, "nmad_process");
    text(about, about_len, "What happens in this process, by its monotonic clock");
    // The standard's number of sources that keep the order.
    number::<A>(ordering, Numbers::Source, 1);
    give::value(ticks_per_second, 1_000_000_000);
    give::value(max_ticks, i64::MAX);
    if !info.is_null() {
        give::value(info, give::info::<A>(api::info_create()));
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn t_event_get_info<A: Abi>(
    index: i32,
    name: *mut c_char,
    name_len: *mut i32,
    verbosity: *mut i32,
    datatypes: *mut A::Handle,
    displacements: *mut i64,
    elements: *mut i32,
    enumeration: *mut *mut c_void,
    info: *mut A::Handle,
    about: *mut c_char,
    about_len: *mut i32,
    bind: *mut i32,
) -> Result<()> {
    let (event, places, names) = api::t_event(index)?;
    text(name, name_len, event.name);
    text(about, about_len, event.about);
    number::<A>(verbosity, Numbers::Verbosity, event.verbosity as i32);
    number::<A>(bind, Numbers::Binding, Binding::Nothing as i32);
    let room = take::read("num_elements", elements).map_or(0, |room| usize::try_from(room).unwrap_or(0));
    give::list(datatypes, room, event.types, |&each| give::datatype::<A>(each));
    give::list(displacements, room, &places, |&each| each);
    give::value(elements, places.len() as i32);
    give::value(enumeration, give::tool::<A>(names));
    if !info.is_null() {
        give::value(info, give::info::<A>(api::info_create()));
    }
    Ok(())
}

pub(crate) fn t_event_handle_alloc<A: Abi>(
    index: i32,
    _object: *mut c_void,
    wishes: Info,
    registration: *mut *mut c_void,
) -> Result<()> {
    take::place("event_registration", registration)?;
    let opened = api::t_event_handle_alloc(index, wishes)?;
    give::value(registration, give::tool::<A>(opened));
    Ok(())
}

type EventFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, i32, *mut c_void);
type FreeFunction = unsafe extern "C" fn(*mut c_void, i32, *mut c_void);
type DroppedFunction = unsafe extern "C" fn(i64, *mut c_void, i32, i32, *mut c_void);

fn level<A: Abi>(safety: Safety) -> i32 {
    give::number::<A>(Numbers::Safety, safety as i32)
}

pub(crate) fn t_event_register_callback<A: Abi>(
    registration: usize,
    safety: Safety,
    _wishes: Info,
    user: usize,
    called: *const c_void,
) -> Result<()> {
    // SAFETY: the program passes a function of this type, or NULL.
    let called: Option<EventFunction> = unsafe { function(called) };
    let word = Word(user);
    let callback = called.map(|called| -> OnEvent {
        Arc::new(move |instance, registration, safety| {
            let (instance, registration) = (give::tool::<A>(instance), give::tool::<A>(registration));
            // SAFETY: the program's function, with what it gave for it.
            unsafe { called(instance, registration, level::<A>(safety), word.get()) }
        })
    });
    api::t_event_register_callback(registration, safety, callback, user)
}

pub(crate) fn t_event_callback_get_info<A: Abi>(
    registration: usize,
    _safety: Safety,
    info: *mut A::Handle,
) -> Result<()> {
    take::place("info_used", info)?;
    give::value(info, give::info::<A>(api::t_event_callback_get_info(registration)?));
    Ok(())
}

pub(crate) fn t_event_callback_set_info<A: Abi>(
    registration: usize,
    _safety: Safety,
    wishes: Info,
) -> Result<()> {
    api::t_event_callback_set_info(registration, wishes)
}

pub(crate) fn t_event_set_dropped_handler<A: Abi>(registration: usize, called: *const c_void) -> Result<()> {
    // SAFETY: the program passes a function of this type, or NULL.
    let called: Option<DroppedFunction> = unsafe { function(called) };
    let dropped = called.map(|called| -> OnDropped {
        Arc::new(move |count, registration, safety, user| {
            let registration = give::tool::<A>(registration);
            // SAFETY: the program's function, with what it gave for those of events.
            unsafe { called(count, registration, 0, level::<A>(safety), Word(user).get()) }
        })
    });
    api::t_event_set_dropped_handler(registration, dropped)
}

pub(crate) fn t_event_handle_free<A: Abi>(
    registration: usize,
    user: usize,
    called: *const c_void,
) -> Result<()> {
    // SAFETY: the program passes a function of this type, or NULL.
    let called: Option<FreeFunction> = unsafe { function(called) };
    api::t_event_handle_free(registration)?;
    if let Some(called) = called {
        // SAFETY: the program's function, with what it gave for it.
        unsafe { called(give::tool::<A>(registration), level::<A>(Safety::None), Word(user).get()) }
    }
    Ok(())
}

pub(crate) fn t_event_read<A: Abi>(instance: usize, element: i32, to: *mut c_void) -> Result<()> {
    take::place("buffer", to)?;
    let bytes = api::t_event_read(instance, element)?;
    give::list(to.cast::<u8>(), bytes.len(), bytes, |byte| byte);
    Ok(())
}

pub(crate) fn t_event_copy<A: Abi>(instance: usize, to: *mut c_void) -> Result<()> {
    take::place("buffer", to)?;
    let bytes = api::t_event_copy(instance)?;
    give::list(to.cast::<u8>(), bytes.len(), bytes, |byte| byte);
    Ok(())
}
