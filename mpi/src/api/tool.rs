//! The tools interface. Its errors have classes of their own, and no error handler is asked.

use crate::constant::ThreadLevel;
use crate::error::{Class, Result};
use crate::handle::{Comm, Info, Type};
use crate::info::{self, Infos};
use crate::tool::category::ALL as CATEGORIES;
use crate::tool::enumeration::Enumeration;
use crate::tool::event::ALL as EVENTS;
use crate::tool::performance::ALL as VARIABLES;
use crate::tool::{control, enter, entry, event, index_of, session};
use newmadeleine::setting::{ALL, Setting};

pub use crate::tool::Binding;
pub use crate::tool::category::Category;
pub use crate::tool::control::{TEXT_MAX, scope_of, verbosity_of};
pub use crate::tool::event::Event;
pub use crate::tool::performance::{Performance, Values};
pub use crate::tool::queue::{LEVELS, OnDropped, OnEvent, Safety};
pub use crate::tool::session::ALL_HANDLES;

macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident: $of:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// There is no such category.
        pub fn $name(index: i32) -> Result<Vec<i32>> {
            Ok(t_category(index)?.$of())
        }
    )*};
}

lists! {
    /// `MPI_T_category_get_cvars`
    t_category_get_cvars: controls;
    /// `MPI_T_category_get_pvars`
    t_category_get_pvars: performances;
    /// `MPI_T_category_get_categories`
    t_category_get_categories: categories;
    /// `MPI_T_category_get_events`
    t_category_get_events: events;
}

/// `MPI_T_init_thread`: all threads may use it; the level that was asked for is provided.
///
/// # Errors
/// None.
pub fn t_init_thread(required: ThreadLevel) -> Result<ThreadLevel> {
    crate::tool::open();
    Ok(required)
}

/// `MPI_T_finalize`
///
/// # Errors
/// The interface is not initialised.
pub fn t_finalize() -> Result<()> {
    crate::tool::close()
}

/// `MPI_T_category_changed`: categories never change.
///
/// # Errors
/// The interface is not initialised.
pub fn t_category_changed() -> Result<i32> {
    enter()?;
    Ok(0)
}

/// `MPI_T_category_get_num`
///
/// # Errors
/// The interface is not initialised.
pub fn t_category_get_num() -> Result<i32> {
    enter()?;
    Ok(CATEGORIES.len() as i32)
}

/// `MPI_T_category_get_num_events`
///
/// # Errors
/// There is no such category.
pub fn t_category_get_num_events(index: i32) -> Result<i32> {
    Ok(t_category(index)?.events().len() as i32)
}

/// `MPI_T_category_get_index`
///
/// # Errors
/// There is no category of this name.
pub fn t_category_get_index(name: &str) -> Result<i32> {
    enter()?;
    index_of("category", CATEGORIES.iter().map(|each| each.name), name)
}

/// What `MPI_T_category_get_info` says.
///
/// # Errors
/// There is no such category.
pub fn t_category(index: i32) -> Result<&'static Category> {
    enter()?;
    entry("category", &CATEGORIES, index)
}

/// `MPI_T_cvar_get_num`
///
/// # Errors
/// The interface is not initialised.
pub fn t_cvar_get_num() -> Result<i32> {
    enter()?;
    Ok(ALL.len() as i32)
}

/// `MPI_T_cvar_get_index`
///
/// # Errors
/// There is no variable of this name.
pub fn t_cvar_get_index(name: &str) -> Result<i32> {
    enter()?;
    index_of("control variable", ALL.iter().map(|setting| setting.name), name)
}

/// The variable that `MPI_T_cvar_get_info` describes.
///
/// # Errors
/// There is no such variable.
pub fn t_cvar(index: i32) -> Result<&'static Setting> {
    enter()?;
    control::control(index)
}

/// `MPI_T_cvar_handle_alloc`: the handle, and the characters of a value.
///
/// # Errors
/// There is no such variable.
pub fn t_cvar_handle_alloc(index: i32) -> Result<(usize, i32)> {
    enter()?;
    Ok((control::open(index)?, TEXT_MAX as i32))
}

/// `MPI_T_cvar_handle_free`
///
/// # Errors
/// There is no such handle.
pub fn t_cvar_handle_free(handle: &mut usize) -> Result<()> {
    enter()?;
    control::close(*handle)?;
    *handle = 0;
    Ok(())
}

/// `MPI_T_cvar_read`
///
/// # Errors
/// There is no such handle.
pub fn t_cvar_read(handle: usize) -> Result<String> {
    enter()?;
    control::read(handle)
}

/// `MPI_T_cvar_write`
///
/// # Errors
/// The variable cannot be set, or not any more, or not to this value.
pub fn t_cvar_write(handle: usize, value: &str) -> Result<()> {
    enter()?;
    control::write(handle, value)
}

/// What `MPI_T_enum_get_info` and `MPI_T_enum_get_item` say: the name, and those of the items.
///
/// # Errors
/// There is no such enumeration.
pub fn t_enum(handle: usize) -> Result<(&'static str, Vec<String>)> {
    enter()?;
    let found = Enumeration::of(handle)?;
    Ok((found.name(), found.items()))
}

/// `MPI_T_pvar_get_num`
///
/// # Errors
/// The interface is not initialised.
pub fn t_pvar_get_num() -> Result<i32> {
    enter()?;
    Ok(VARIABLES.len() as i32)
}

/// `MPI_T_pvar_get_index`
///
/// # Errors
/// There is no variable of this name and class.
pub fn t_pvar_get_index(name: &str, class: i32) -> Result<i32> {
    enter()?;
    let index = index_of("performance variable", VARIABLES.iter().map(|each| each.name), name)?;
    let kind = VARIABLES[index as usize].kind;
    if kind as i32 != class {
        return Err(Class::T_INVALID_NAME.error(format!("{name} is of another class: {kind:?}")));
    }
    Ok(index)
}

/// What `MPI_T_pvar_get_info` says.
///
/// # Errors
/// There is no such variable.
pub fn t_pvar(index: i32) -> Result<&'static Performance> {
    enter()?;
    entry("performance variable", &VARIABLES, index)
}

/// The enumeration of a variable's values, zero if it has none.
pub fn t_pvar_enum(variable: &Performance) -> usize {
    variable.enumeration().map_or(0, Enumeration::handle)
}

/// `MPI_T_pvar_session_create`
///
/// # Errors
/// The interface is not initialised.
pub fn t_pvar_session_create() -> Result<usize> {
    enter()?;
    Ok(session::create())
}

/// `MPI_T_pvar_session_free`
///
/// # Errors
/// There is no such session.
pub fn t_pvar_session_free(opened: &mut usize) -> Result<()> {
    enter()?;
    session::free(*opened)?;
    *opened = 0;
    Ok(())
}

/// `MPI_T_pvar_handle_alloc`: the handle, and how many values there are.
///
/// # Errors
/// There is no such session, variable or communicator, or MPI is not in use.
pub fn t_pvar_handle_alloc(opened: usize, index: i32, comm: Option<Comm>) -> Result<(usize, i32)> {
    enter()?;
    session::open(opened, index, comm)
}

/// `MPI_T_pvar_handle_free`
///
/// # Errors
/// There is no such session or handle.
pub fn t_pvar_handle_free(opened: usize, handle: &mut usize) -> Result<()> {
    enter()?;
    session::close(opened, *handle)?;
    *handle = 0;
    Ok(())
}

/// `MPI_T_pvar_read`
///
/// # Errors
/// There is no such session or handle, or MPI is not in use.
pub fn t_pvar_read(opened: usize, handle: usize) -> Result<Values> {
    enter()?;
    session::read(opened, handle)
}

macro_rules! refused {
    ($($(#[$doc:meta])* $name:ident: $class:ident, $what:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// All variables count all the time and are read-only; none for all handles at once.
        pub fn $name(opened: usize, handle: usize) -> Result<()> {
            enter()?;
            session::unchangeable(opened, handle, Class::$class, $what)
        }
    )*};
}

refused! {
    /// `MPI_T_pvar_start`
    t_pvar_start: T_PVAR_NO_STARTSTOP, "started";
    /// `MPI_T_pvar_stop`
    t_pvar_stop: T_PVAR_NO_STARTSTOP, "stopped";
    /// `MPI_T_pvar_reset`
    t_pvar_reset: T_PVAR_NO_WRITE, "reset";
    /// `MPI_T_pvar_write`
    t_pvar_write: T_PVAR_NO_WRITE, "written";
    /// `MPI_T_pvar_readreset`
    t_pvar_readreset: T_PVAR_NO_ATOMIC, "read and reset";
}

/// `MPI_T_source_get_num`
///
/// # Errors
/// The interface is not initialised.
pub fn t_source_get_num() -> Result<i32> {
    enter()?;
    Ok(1)
}

/// Checks the index of a source of events.
///
/// # Errors
/// There is none.
pub fn t_source(index: i32) -> Result<()> {
    enter()?;
    entry("source of events", &[()], index).copied()
}

/// `MPI_T_source_get_timestamp`: nanoseconds.
///
/// # Errors
/// There is no such source.
pub fn t_source_get_timestamp(index: i32) -> Result<i64> {
    t_source(index)?;
    Ok(event::now_ns())
}

/// `MPI_T_event_get_num`
///
/// # Errors
/// The interface is not initialised.
pub fn t_event_get_num() -> Result<i32> {
    enter()?;
    Ok(EVENTS.len() as i32)
}

/// `MPI_T_event_get_index`
///
/// # Errors
/// There is no event of this name.
pub fn t_event_get_index(name: &str) -> Result<i32> {
    enter()?;
    index_of("event", EVENTS.iter().map(|each| each.name), name)
}

/// What `MPI_T_event_get_info` says: the event, where its elements are, and the enumeration of their names.
///
/// # Errors
/// There is no such event.
pub fn t_event(index: i32) -> Result<(&'static Event, Vec<i64>, usize)> {
    enter()?;
    let found = entry("event", &EVENTS, index)?;
    Ok((found, found.places(), found.enumeration().handle()))
}

/// `MPI_T_event_handle_alloc`
///
/// # Errors
/// There is no such event or info object, or `NMAD_EXPLAIN` takes what it is made from.
pub fn t_event_handle_alloc(index: i32, wishes: Info) -> Result<usize> {
    enter()?;
    let wishes = info::optional(wishes)?;
    let handle = event::open(index)?;
    event::with_info(handle, |infos| wishes.iter().for_each(|wishes| infos.merge(wishes)))?;
    Ok(handle)
}

/// `MPI_T_event_handle_free`
///
/// # Errors
/// There is no such registration.
pub fn t_event_handle_free(handle: usize) -> Result<()> {
    enter()?;
    event::close(handle)
}

/// `MPI_T_event_handle_get_info`
///
/// # Errors
/// There is no such registration.
pub fn t_event_handle_get_info(handle: usize) -> Result<Info> {
    enter()?;
    event::with_info(handle, |infos| info::insert(infos.copy()))
}

/// `MPI_T_event_handle_set_info`
///
/// # Errors
/// There is no such registration or info object.
pub fn t_event_handle_set_info(handle: usize, wishes: Info) -> Result<()> {
    enter()?;
    let wishes = info::optional(wishes)?;
    event::with_info(handle, |infos| wishes.iter().for_each(|wishes| infos.merge(wishes)))
}

/// `MPI_T_event_register_callback`
///
/// # Errors
/// There is no such registration.
pub fn t_event_register_callback(
    handle: usize,
    safety: Safety,
    callback: Option<OnEvent>,
    user: usize,
) -> Result<()> {
    enter()?;
    event::set_callback(handle, safety, callback, user)
}

/// `MPI_T_event_callback_get_info`: functions have no info keys.
///
/// # Errors
/// There is no such registration.
pub fn t_event_callback_get_info(handle: usize) -> Result<Info> {
    enter()?;
    event::of(handle)?;
    Ok(info::insert(Infos::default()))
}

/// `MPI_T_event_callback_set_info`: functions have no info keys.
///
/// # Errors
/// There is no such registration or info object.
pub fn t_event_callback_set_info(handle: usize, wishes: Info) -> Result<()> {
    enter()?;
    info::optional(wishes)?;
    event::of(handle).map(drop)
}

/// `MPI_T_event_set_dropped_handler`
///
/// # Errors
/// There is no such registration.
pub fn t_event_set_dropped_handler(handle: usize, dropped: Option<OnDropped>) -> Result<()> {
    enter()?;
    event::set_dropped(handle, dropped)
}

/// `MPI_T_event_get_source`: there is one.
///
/// # Errors
/// There is no such instance any more.
pub fn t_event_get_source(instance: usize) -> Result<i32> {
    enter()?;
    event::instance(instance).map(|_| 0)
}

/// `MPI_T_event_get_timestamp`
///
/// # Errors
/// There is no such instance any more.
pub fn t_event_get_timestamp(instance: usize) -> Result<i64> {
    enter()?;
    Ok(event::instance(instance)?.at_ns)
}

/// `MPI_T_event_read`: the bytes of an element.
///
/// # Errors
/// There is no such instance any more, or no such element.
pub fn t_event_read(instance: usize, element: i32) -> Result<Vec<u8>> {
    enter()?;
    let instance = event::instance(instance)?;
    let value = *entry("element", &instance.data, element)?;
    Ok(match EVENTS[instance.event].types[element as usize] {
        Type::INT => (value as u32).to_ne_bytes().to_vec(),
        _ => value.to_ne_bytes().to_vec(),
    })
}

/// `MPI_T_event_copy`: all elements.
///
/// # Errors
/// There is no such instance any more.
pub fn t_event_copy(instance: usize) -> Result<Vec<u8>> {
    enter()?;
    Ok(event::instance(instance)?.data.iter().flat_map(|value| value.to_ne_bytes()).collect())
}
