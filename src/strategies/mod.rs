//! Strategies that are not part of the library: registered by the program in Rust or C, or loaded from
//! plug-ins.
//!
//! They are foreign code that runs while the lock of the engine is held, so a fault would stop all
//! messages. Therefore they are supervised ([`watched`], [`watchdog`]). Strategies of the engine are not
//! supervised.

mod foreign;
#[allow(unsafe_code)]
mod loading;
mod plug_in;
mod watchdog;
mod watched;

pub use plug_in::PlugIn;

use foreign::Foreign;
use nmad_engine::Strategy;
use nmad_plugin::Table;
use plug_in::Named;
use watched::Watched;

/// Wraps a maker of strategies: each strategy that it makes is supervised.
pub(crate) fn supervised(
    make: impl Fn() -> Box<dyn Strategy> + Send + Sync + 'static,
) -> impl Fn() -> Box<dyn Strategy> + Send + Sync + 'static {
    move || Box::new(Watched::new(make()))
}

/// Returns a maker of supervised strategies that call the functions of a table; `name` selects them.
pub(crate) fn of_table(name: String, table: Table) -> impl Fn() -> Box<dyn Strategy> + Send + Sync + 'static {
    supervised(move || Box::new(Foreign::new(name.clone(), table.clone())))
}

/// Returns whether the name of a strategy names a plug-in.
pub(crate) fn is_plug_in(name: &str) -> bool {
    Named::parse(name).is_some()
}

/// Loads the plug-in that the name of a strategy contains; `None`: it contains none.
///
/// # Errors
/// The file cannot be loaded; the text states cause and remedy.
pub(crate) fn plug_in(name: &str) -> Result<Option<PlugIn>, String> {
    Named::parse(name).map(|named| PlugIn::load(&named)).transpose()
}

/// Returns a maker of the strategy with the name `FILE.so:NAME`; `None`: `name` does not have this form.
///
/// # Errors
/// The file cannot be loaded, or has no such strategy; the text states cause and remedy.
pub(crate) fn of_plug_in(
    name: &str,
) -> Result<Option<impl Fn() -> Box<dyn Strategy> + Send + Sync + 'static + use<>>, String> {
    let Some(named) = Named::parse(name) else { return Ok(None) };
    let table = PlugIn::load(&named)?.table(&named)?.clone();
    Ok(Some(of_table(name.into(), table)))
}
