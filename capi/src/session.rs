//! A session as C sees it: open and close, rank and size.

use crate::code::{Answer, OK};
use crate::handle::Handle;
use crate::live::{self, SessionPointer};
use crate::raw::{In, Out, Text};
use crate::strategy;
use crate::table::Table;
use newmadeleine::{Options, Session, SessionError};
use std::ffi::c_int;

/// `nmad_option_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Setting {
    key: Text,
    value: Text,
}

pub fn open(options: In<Setting>, count: usize, session: Out<SessionPointer>) -> Answer {
    let session = session.required("session")?;
    let mut settings = Options::load().inspect_err(SessionError::end_job)?;
    strategy::add_registered(&mut settings);
    for option in options.list("options", count)? {
        settings
            .set(&option.key.required("key of an option")?, &option.value.required("value of an option")?)?;
    }
    let opened = Session::open_with(&settings)?;
    let rails = opened.rails().len() as u32;
    let strategies = opened.strategies().len() as u32;
    let (packings, unpackings) = (Table::default(), Table::default());
    let handle = Handle { session: opened, rails, strategies, packings, unpackings };
    live::keep(handle, session)?;
    Ok(OK)
}

pub fn close(session: SessionPointer) -> Answer {
    session.take()?.session.close()?;
    Ok(OK)
}

pub fn abort(session: SessionPointer, code: c_int, why: Text) -> Answer {
    let handle = session.get()?;
    handle.session.abort(code, &why.get().unwrap_or_default())
}

pub fn rank(session: SessionPointer, rank: Out<u32>) -> Answer {
    rank.required("rank")?.set(session.get()?.session.rank());
    Ok(OK)
}

pub fn size(session: SessionPointer, size: Out<u32>) -> Answer {
    size.required("size")?.set(session.get()?.session.size());
    Ok(OK)
}

pub fn version(major: Out<c_int>, minor: Out<c_int>, patch: Out<c_int>) -> Answer {
    let number = |text: &str| text.parse().unwrap_or_default();
    major.set(number(env!("CARGO_PKG_VERSION_MAJOR")));
    minor.set(number(env!("CARGO_PKG_VERSION_MINOR")));
    patch.set(number(env!("CARGO_PKG_VERSION_PATCH")));
    Ok(OK)
}
