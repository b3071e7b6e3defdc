//! Processes of other jobs: most arguments count at the root, and may be anything elsewhere.

use crate::abi::Kind;
use crate::{Abi, give, take};
use nmad_mpi::api::{self, Spawn, Wanted};
use nmad_mpi::error::{Class, Result};
use nmad_mpi::handle::{Comm, Info};
use std::ffi::{c_char, c_void};

/// Writes the intercommunicator, or the null handle if there is none.
fn given<A: Abi>(to: *mut A::Handle, made: Result<Comm>) -> Result<()> {
    match made {
        Ok(comm) => give::value(to, give::comm::<A>(comm)),
        Err(_) => give::null::<A>(to, Kind::Comm),
    }
    made.map(drop)
}

/// `MPI_Comm_accept` or `MPI_Comm_connect`: name and hints at the root, its rank, the communicator.
type AtPort = fn(Option<(&str, Info)>, i32, Comm) -> Result<Comm>;

/// Has the root read the name of a port and the hints, and everybody call `call`.
fn at_port<A: Abi>(
    (name, info): (*const c_char, A::Handle),
    (root, comm): (i32, Comm),
    new: *mut A::Handle,
    call: AtPort,
) -> Result<()> {
    take::place("newcomm", new)?;
    let called = || -> Result<Comm> {
        if !api::is_root(comm, root)? {
            return call(None, root, comm);
        }
        let (name, info) = (take::string("port_name", name)?, take::info::<A>("info", info)?);
        call(Some((&name, info)), root, comm)
    };
    given::<A>(new, called())
}

pub(crate) fn comm_accept<A: Abi>(
    name: *const c_char,
    info: A::Handle,
    root: i32,
    comm: Comm,
    new: *mut A::Handle,
) -> Result<()> {
    at_port::<A>((name, info), (root, comm), new, api::comm_accept)
}

pub(crate) fn comm_connect<A: Abi>(
    name: *const c_char,
    info: A::Handle,
    root: i32,
    comm: Comm,
    new: *mut A::Handle,
) -> Result<()> {
    at_port::<A>((name, info), (root, comm), new, api::comm_connect)
}

/// Strings up to the NULL behind the last one; NULL instead of a list: none.
fn strings(name: &str, list: *const *mut c_char) -> Result<Vec<String>> {
    let mut strings = Vec::new();
    if list.is_null() {
        return Ok(strings);
    }
    loop {
        let each = take::read(name, list.wrapping_add(strings.len()))?;
        if each.is_null() {
            return Ok(strings);
        }
        strings.push(take::string(name, each)?.into_owned());
    }
}

fn wanted<A: Abi>(command: *const c_char, args: Vec<String>, count: i32, info: A::Handle) -> Result<Wanted> {
    let wrong = || Class::ARG.error(format!("argument maxprocs is {count}: it must be positive"));
    let count = u32::try_from(count).ok().filter(|&count| count > 0).ok_or_else(wrong)?;
    let info = api::spawn_hints(take::info::<A>("info", info)?)?;
    Ok(Wanted { program: take::string("command", command)?.into_owned(), args, count, info })
}

/// Starts what `wanted` says, and writes a code for each process.
fn spawn<A: Abi>(
    wanted: impl Fn() -> Result<Vec<Wanted>>,
    (root, comm): (i32, Comm),
    new: *mut A::Handle,
    codes: *mut i32,
) -> Result<()> {
    take::place("intercomm", new)?;
    // An error at the root goes to the others too: they wait for the root.
    let at_root = if api::is_root(comm, root)? { Some(wanted()) } else { None };
    let count = match &at_root {
        Some(Ok(all)) => all.iter().map(|wanted| wanted.count as usize).sum(),
        _ => 0,
    };
    let request = || -> Result<Spawn> {
        let programs = at_root.unwrap_or_else(|| Ok(Vec::new()))?;
        Ok(Spawn { programs, preput: Vec::new() })
    };
    let made = api::comm_spawn(request, root, comm);
    let code = made.as_ref().err().map_or(0, |error| crate::codes::class_out::<A>(error.class()));
    let started = match &made {
        // Everybody gets them, and knows by now how many there are.
        Ok(comm) => api::comm_remote_size(*comm)? as usize,
        Err(_) => count,
    };
    give::list(codes, started, std::iter::repeat_n(code, started), |code| code);
    given::<A>(new, made)
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn comm_spawn<A: Abi>(
    command: *const c_char,
    argv: *const *mut c_void,
    count: i32,
    info: A::Handle,
    root: i32,
    comm: Comm,
    new: *mut A::Handle,
    codes: *mut i32,
) -> Result<()> {
    let all = || Ok(vec![wanted::<A>(command, strings("argv", argv.cast())?, count, info)?]);
    spawn::<A>(all, (root, comm), new, codes)
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn comm_spawn_multiple<A: Abi>(
    len: i32,
    commands: *const *mut c_void,
    argvs: *const *mut c_void,
    counts: *const i32,
    infos: *const A::Handle,
    root: i32,
    comm: Comm,
    new: *mut A::Handle,
    codes: *mut i32,
) -> Result<()> {
    let all = || -> Result<Vec<Wanted>> {
        let len = take::length("count", i64::from(len))?;
        let one = |place: usize| {
            let command = take::read("array_of_commands", commands.wrapping_add(place))?;
            let args = match argvs.is_null() {
                true => Vec::new(),
                false => {
                    let argv = take::read("array_of_argv", argvs.wrapping_add(place))?;
                    strings("array_of_argv", argv.cast_const().cast())?
                }
            };
            let count = take::read("array_of_maxprocs", counts.wrapping_add(place))?;
            let info = take::read("array_of_info", infos.wrapping_add(place))?;
            wanted::<A>(command.cast_const().cast(), args, count, info)
        };
        (0..len).map(one).collect()
    };
    spawn::<A>(all, (root, comm), new, codes)
}
