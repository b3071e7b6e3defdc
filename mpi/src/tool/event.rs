//! Events: programs register functions, which are called with what has happened. The library notes events
//! where it may not call a program; a thread of its own calls functions that may be called by any thread, and
//! the next call of the tools interface those that may not.

use super::enumeration::Enumeration;
use super::queue::{INSTANCES, Instance, OnDropped, OnEvent, Queue, Safety};
use super::{Verbosity, entry};
use crate::error::{Class, Error, Result};
use crate::handle::Type;
use crate::info::Infos;
use crate::table::Table;
use crate::world::{World, is_running, world};
use newmadeleine::engine::Receipt;
use newmadeleine::progress::{OnReceipt, Purpose};
use newmadeleine::setting::{EXPLAIN, switch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// An event that can happen.
pub struct Event {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// For whom it is.
    pub verbosity: Verbosity,
    /// Types of its elements.
    pub types: &'static [Type],
    elements: Enumeration,
}

/// The number of [`ALL`] that each has.
const MESSAGE: usize = 0;
const NOTICE: usize = 1;

/// All of them.
pub(crate) const ALL: [Event; 2] = [
    Event {
        name: "nmad_message_sent",
        about: "A message was sent: its receiver, a rank of MPI_COMM_WORLD, its bytes, and its time as \
                predicted and as measured, in nanoseconds",
        verbosity: Verbosity::TunerDetail,
        types: &[Type::INT, Type::UNSIGNED_LONG_LONG, Type::UNSIGNED_LONG_LONG, Type::UNSIGNED_LONG_LONG],
        elements: Enumeration::Message,
    },
    Event {
        name: "nmad_notice",
        about: "A rail or a process is gone or is used again: the rank that it is about",
        verbosity: Verbosity::UserDetail,
        types: &[Type::INT],
        elements: Enumeration::Notice,
    },
];

/// Bytes from one element to the next.
const STEP: usize = 8;

impl Event {
    /// Where its elements are, in bytes.
    pub(crate) fn places(&self) -> Vec<i64> {
        (0..self.types.len()).map(|index| (index * STEP) as i64).collect()
    }

    /// The names of its elements.
    pub(crate) fn enumeration(&self) -> Enumeration {
        self.elements
    }
}

/// What a program has registered.
pub(crate) struct Registration {
    pub(crate) event: usize,
    pub(crate) queue: Queue,
    info: Infos,
}

/// Registrations by handle.
static REGISTRATIONS: Table<Registration> = Table::new(crate::handle::DYNAMIC);
/// Handles of those that there are.
static HANDLES: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// Some event waits for a call of the program.
static WAITING: AtomicBool = AtomicBool::new(false);

/// Some registration is for messages, and MPI is in use.
static LISTENS: AtomicBool = AtomicBool::new(false);

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time of the source of events, in nanoseconds.
pub(crate) fn now_ns() -> i64 {
    START.elapsed().as_nanos() as i64
}

fn handles() -> MutexGuard<'static, Vec<u32>> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The registration of a handle.
///
/// # Errors
/// There is none.
pub(crate) fn of(handle: usize) -> Result<Arc<Registration>> {
    let index = u32::try_from(handle).map_err(|_| no_registration())?;
    REGISTRATIONS.share(index).ok_or_else(no_registration)
}

fn no_registration() -> Error {
    Class::T_INVALID_HANDLE.error("there is no such registration of an event, or it is freed")
}

/// The instance that a function of the program was called with.
///
/// # Errors
/// There is none: the function has returned.
pub(crate) fn instance(handle: usize) -> Result<Arc<Instance>> {
    let gone = || Class::T_INVALID_HANDLE.error("an event can be looked at while its function is called");
    u32::try_from(handle).ok().and_then(|index| INSTANCES.share(index)).ok_or_else(gone)
}

/// Whether `NMAD_EXPLAIN` is set, to something else than off.
fn is_explained() -> bool {
    EXPLAIN.value().is_some_and(|value| switch(&value.to_string_lossy()) != Some(false))
}

/// Registers for an event.
///
/// # Errors
/// There is no such event, or `NMAD_EXPLAIN` uses what it is made from.
pub(crate) fn open(index: i32) -> Result<usize> {
    entry("event", &ALL, index)?;
    let event = index as usize;
    if event == MESSAGE && is_explained() {
        let text = "NMAD_EXPLAIN writes the receipts that this event is made from: unset it";
        return Err(Class::T_NOT_ACCESSIBLE.error(text));
    }
    let registration = Registration { event, queue: Queue::default(), info: Infos::default() };
    let handle = REGISTRATIONS.insert(Arc::new(registration));
    handles().push(handle);
    if let (true, Ok(world)) = (is_running(), world()) {
        begin(world);
    }
    Ok(handle as usize)
}

/// MPI is in use from now on: events that programs have registered for are noted.
pub(crate) fn begin(world: &World) {
    let is_wanted = |event| registered().iter().any(|(_, each)| each.event == event);
    if is_wanted(MESSAGE) {
        LISTENS.store(true, Ordering::Relaxed);
        let tell: OnReceipt = Box::new(|receipt, _| {
            let Receipt { envelope, predicted_ns, actual_ns, .. } = receipt;
            note(MESSAGE, vec![u64::from(envelope.peer.0), envelope.len, *predicted_ns, *actual_ns]);
        });
        world.node().on_receipt(Purpose::Told, Some(tell));
    }
    if is_wanted(NOTICE) {
        newmadeleine::on_notice(Some(Box::new(|rank, _| note(NOTICE, vec![u64::from(rank)]))));
    }
}

fn registered() -> Vec<(u32, Arc<Registration>)> {
    let handles = handles().clone();
    handles.into_iter().filter_map(|handle| Some((handle, REGISTRATIONS.share(handle)?))).collect()
}

/// Something has happened. The lock of the node may be held: no function of the program is called.
fn note(event: usize, data: Vec<u64>) {
    let instance = Instance { event, at_ns: now_ns(), data };
    for (handle, registration) in registered().into_iter().filter(|(_, each)| each.event == event) {
        match registration.queue.push(instance.clone()) {
            Some(Safety::ThreadSafe | Safety::SignalSafe) => wake_teller(handle),
            Some(_) => WAITING.store(true, Ordering::Release),
            None => {}
        }
    }
}

/// Calls functions of the program that only its own threads may call. From a call of the program's.
#[inline]
pub(crate) fn tell_waiting() {
    if LISTENS.load(Ordering::Relaxed)
        && let (true, Ok(world)) = (is_running(), world())
    {
        world.node().tell_receipts();
    }
    if WAITING.load(Ordering::Relaxed) && WAITING.swap(false, Ordering::AcqRel) {
        registered().iter().for_each(|(handle, each)| each.queue.tell(*handle as usize, Safety::None));
    }
}

/// The thread that calls functions that any thread may call; it is started with the first such event.
static TELLER: Mutex<Option<Sender<u32>>> = Mutex::new(None);

/// Has the functions of a registration called.
fn wake_teller(handle: u32) {
    let mut teller = TELLER.lock().unwrap_or_else(PoisonError::into_inner);
    let sender = teller.get_or_insert_with(|| {
        let (sender, receiver) = channel::<u32>();
        let tell = move || receiver.iter().for_each(tell_from_teller);
        // Without a thread the events wait until they are too many, and are counted as dropped.
        let _ = std::thread::Builder::new().name("nmad-events".into()).spawn(tell);
        sender
    });
    // It ends with the process.
    let _ = sender.send(handle);
}

/// Calls the functions of a registration that any thread may call.
fn tell_from_teller(handle: u32) {
    if let Some(registration) = REGISTRATIONS.share(handle) {
        registration.queue.tell(handle as usize, Safety::ThreadSafe);
    }
}

/// Registers a function for a level of safety; none takes it away.
///
/// # Errors
/// There is no such registration.
pub(crate) fn set_callback(
    handle: usize,
    safety: Safety,
    callback: Option<OnEvent>,
    user: usize,
) -> Result<()> {
    of(handle)?.queue.set_callback(safety, callback, user);
    Ok(())
}

/// Registers a function for events that had no room.
///
/// # Errors
/// There is no such registration.
pub(crate) fn set_dropped(handle: usize, dropped: Option<OnDropped>) -> Result<()> {
    of(handle)?.queue.set_dropped(dropped);
    Ok(())
}

/// The info keys of a registration.
///
/// # Errors
/// There is none.
pub(crate) fn with_info<R>(handle: usize, look: impl FnOnce(&Infos) -> R) -> Result<R> {
    Ok(look(&of(handle)?.info))
}

/// Frees a registration. None of its functions is called any more when this returns, unless one of them calls
/// it.
///
/// # Errors
/// There is none.
pub(crate) fn close(handle: usize) -> Result<()> {
    let registration = of(handle)?;
    REGISTRATIONS.remove(handle as u32);
    handles().retain(|&each| each as usize != handle);
    registration.queue.end();
    if !registered().iter().any(|(_, each)| each.event == registration.event) {
        end(registration.event);
    }
    Ok(())
}

/// Nobody is registered for an event.
fn end(event: usize) {
    match event {
        MESSAGE => {
            LISTENS.store(false, Ordering::Relaxed);
            if let (true, Ok(world)) = (is_running(), world()) {
                world.node().on_receipt(Purpose::Told, None);
            }
        }
        _ => newmadeleine::on_notice(None),
    }
}

/// Nobody uses the interface any more.
pub(crate) fn forget_all() {
    let all = handles().clone();
    all.into_iter().for_each(|handle| {
        // It may have been freed meanwhile.
        let _ = close(handle as usize);
    });
}
