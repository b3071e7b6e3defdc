//! Strategies written in C, which programs register, and what else they set while a session is open.

use crate::code::{Answer, OK};
use crate::live::SessionPointer;
use crate::raw::{In, Out, Text};
use newmadeleine::Options;
use newmadeleine::plugin::{RawStrategy, Table};
use std::sync::{Mutex, PoisonError};

/// The registered tables, for the sessions that are opened from now on.
static REGISTERED: Mutex<Vec<Table>> = Mutex::new(Vec::new());

pub fn register(strategy: In<RawStrategy>) -> Answer {
    let table = strategy.table()?;
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|other| other.name() != table.name());
    registered.push(table);
    Ok(OK)
}

/// Gives a session what was registered.
pub fn add_registered(options: &mut Options) {
    for table in REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        options.register_table(table.clone());
    }
}

pub fn number(session: SessionPointer, name: Text, strategy: Out<u32>) -> Answer {
    let (handle, strategy) = (session.get()?, strategy.required("strategy")?);
    let id = handle.session.strategy(&name.required("name")?)?;
    strategy.set(id.place() as u32 + 1);
    Ok(OK)
}

pub fn set_feed(session: SessionPointer, feed: Text) -> Answer {
    let handle = session.get()?;
    let mut options = Options::default();
    options.set("feed", &feed.required("feed")?)?;
    handle.session.set_feed(options.feed.unwrap_or_default());
    Ok(OK)
}

pub fn set_progress(session: SessionPointer, progress: Text) -> Answer {
    let handle = session.get()?;
    let mut options = Options::default();
    options.set("progress", &progress.required("progress")?)?;
    handle.session.set_progress(options.progress.unwrap_or_default())?;
    Ok(OK)
}
