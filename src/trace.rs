//! The trace of a rank, written to a file when it ends (`NMAD_TRACE`): calls of the layer above, the
//! packets and chunks of each rail, and the course of each message of at least some length.
//!
//! The file is created when the session opens, so that an invalid path is reported before the run. The
//! number of records in memory is bounded. If writing fails, for example on a full disk, only the trace is
//! lost.

use crate::error::SessionError;
use crate::latest::Latest;
use crate::written;
use nmad_drivers::around::ticks::Ticks;
use nmad_drivers::around::trace::{TraceHandle, quote};
use nmad_engine::Receipt;
use nmad_progress::{Node, OnReceipt, Purpose};
use rustix::thread::{sched_getaffinity, sched_getcpu};
use rustix::time::{ClockId, clock_getres};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most calls and most messages in memory; the latest replace the oldest. As many as there are records of a
/// rail.
const MOST: usize = 1 << 18;

/// Shorter messages have no receipt: the records of rails contain them, and a receipt costs some 200 ns.
const RECEIPT_MIN: u64 = 4 << 10;

/// The trace of a rank.
#[derive(Debug)]
pub(crate) struct Trace {
    path: PathBuf,
    file: Mutex<Option<File>>,
    ticks: Ticks,
    calls: Mutex<Latest<Call>>,
    accesses: Mutex<Latest<FileAccess>>,
    messages: Arc<Mutex<Latest<Receipt>>>,
    rails: Vec<TraceHandle>,
    /// Other ranks may run on our cores: each call is recorded with its core and the delay of its thread.
    shares_cores: bool,
}

/// A call of the layer above.
#[derive(Debug, Clone, Copy)]
struct Call {
    name: &'static str,
    /// Begin and end.
    ticks: [u64; 2],
    /// The core at the end, and for how long the thread had been ready without one at begin and end, in
    /// nanoseconds.
    core: Option<(usize, [u64; 2])>,
    /// The sender that a receive names.
    from: Option<u32>,
    thread: u32,
}

/// An access of a file, for a trace.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct FileAccess {
    /// When it began ([`Trace::now`]).
    pub began: u64,
    /// The path of the file.
    pub file: String,
    /// `read` or `write`.
    pub kind: &'static str,
    /// How it went.
    pub way: &'static str,
    /// The ranks that called the file system for it.
    pub owners: Vec<u32>,
    /// Pieces of the file.
    pub pieces: u64,
    /// Bytes.
    pub len: u64,
    /// Its predicted time.
    pub predicted_ns: u64,
    /// When it ended.
    pub ended: u64,
}

/// This program with its arguments.
fn command() -> String {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// Returns the file of a rank: FILE.RANK, or trace.RANK in a folder.
fn file_of(path: &Path, job: &str, rank: u32) -> PathBuf {
    let base = if path.is_dir() { path.join("trace") } else { path.to_owned() };
    written::name(&base, job, rank)
}

/// Locks, whether or not a thread has panicked with the lock held.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of this thread, from zero.
fn thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local! { static MINE: u32 = NEXT.fetch_add(1, Ordering::Relaxed); }
    MINE.with(|mine| *mine)
}

thread_local! {
    /// When the latest call of this thread began, and for how long the thread had been ready without a core
    /// by then.
    static DELAYED: Cell<(u64, Option<u64>)> = const { Cell::new((0, None)) };
    /// `/proc/thread-self/schedstat` of this thread.
    static DELAYS: Option<File> = File::open("/proc/thread-self/schedstat").ok();
}

/// Returns for how long this thread has been ready without a core. The processor time of the thread would
/// show the same, but reading it makes the scheduler check the thread's slice, which changes the run.
/// `None`: the system hides it.
fn delayed_ns() -> Option<u64> {
    let mut text = [0; 64];
    let read = DELAYS.try_with(|file| file.as_ref()?.read_at(&mut text, 0).ok()).ok().flatten();
    std::str::from_utf8(&text[..read?]).ok()?.split(' ').nth(1)?.parse().ok()
}

/// The fields of the first line that ranks with shared cores write: the boot id of the machine, the number of
/// cores that this process may use, and the period of the scheduler tick.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let cores = sched_getaffinity(None).map_or(0, |mask| mask.count());
    // The coarse clock goes on with the ticks of the system.
    let tick = clock_getres(ClockId::MonotonicCoarse);
    let tick_ns = tick.tv_sec as u64 * 1_000_000_000 + tick.tv_nsec as u64;
    format!(",\"machine\":{},\"cores\":{cores},\"tick_ns\":{tick_ns}", quote(boot.trim()))
}

impl Trace {
    /// Creates the file, and starts recording.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn begin(
        path: &Path,
        (job, rank, size): (&str, u32, u32),
        node: &Node,
        rails: Vec<TraceHandle>,
    ) -> Result<Trace, SessionError> {
        let path = file_of(path, job, rank);
        let wrong = |error| SessionError::Setting {
            setting: nmad_words::setting::TRACE.name.into(),
            why: format!("cannot write {}: {error}", path.display()),
        };
        let mut file = written::create(nmad_words::setting::TRACE.name, &path, rank).map_err(wrong)?;
        let command = quote(&command());
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let shares_cores = node.shares_cores();
        let machine = if shares_cores { machine() } else { String::new() };
        writeln!(
            file,
            "{{\"trace\":2,\"rank\":{rank},\"size\":{size},\"command\":{command},\"began\":{began}{machine}}}"
        )
        .map_err(wrong)?;
        // The traffic so far was the measurement of the rails.
        rails.iter().for_each(TraceHandle::forget_traffic);
        let messages = Arc::new(Mutex::new(Latest::of(MOST)));
        let noted = messages.clone();
        let note: OnReceipt = Box::new(move |receipt, _| lock(&noted).push(receipt.clone()));
        node.on_receipt(Purpose::Traced(RECEIPT_MIN), Some(note));
        let (file, ticks) = (Mutex::new(Some(file)), Ticks::start());
        let (calls, accesses) = (Mutex::new(Latest::of(MOST)), Mutex::new(Latest::of(MOST)));
        Ok(Trace { path, file, ticks, calls, accesses, messages, rails, shares_cores })
    }

    /// Returns the time for [`Trace::call`].
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.ticks.now()
    }

    /// Returns the time for [`Trace::call`] at the begin of a call.
    pub(crate) fn call_begins(&self) -> u64 {
        if !self.shares_cores {
            return self.ticks.now();
        }
        let delayed_ns = delayed_ns();
        let now = self.ticks.now();
        DELAYED.set((now, delayed_ns));
        now
    }

    /// Records a call that began at `began` and ends now; `from` is the rank that it receives from.
    pub(crate) fn call(&self, name: &'static str, began: u64, from: Option<u32>) {
        let ended = self.ticks.now();
        // None for what was not begun by [`Trace::call_begins`], and where no rank needs our cores.
        let (of, before) = DELAYED.get();
        let before = before.filter(|_| of == began);
        let delays = before.and_then(|before| Some([before, delayed_ns()?]));
        let core = delays.map(|delays| (sched_getcpu(), delays));
        let call = Call { name, ticks: [began, ended], core, from, thread: thread() };
        lock(&self.calls).push(call);
    }

    /// Records an access of a file.
    pub(crate) fn access(&self, access: FileAccess) {
        lock(&self.accesses).push(access);
    }

    /// Writes everything; logs an error if that fails.
    pub(crate) fn write(&self, node: &Node) {
        let Some(file) = lock(&self.file).take() else { return };
        node.tell_receipts();
        node.on_receipt(Purpose::Traced(0), None);
        let mut out = BufWriter::new(file);
        if let Err(error) = self.write_to(&mut out, node).and_then(|()| out.flush()) {
            log::warn!(
                "the trace {} is cut short: {error}; the run itself has lost nothing",
                self.path.display()
            );
            // The rest in memory is dropped, since it would fail in the same way.
            let _ = out.into_parts();
        }
    }

    fn write_to(&self, out: &mut impl Write, node: &Node) -> io::Result<()> {
        let mut lines = 0;
        for rail in &self.rails {
            let text = rail.json_lines();
            lines += text.lines().count();
            out.write_all(text.as_bytes())?;
        }
        let scale = self.ticks.scale();
        let calls = lock(&self.calls);
        for Call { name, ticks: [began, ended], core, from, thread } in calls.iter() {
            write!(out, "{{\"at_ns\":{},\"call\":\"{name}\",\"until_ns\":{}", scale(*began), scale(*ended))?;
            if let Some(from) = from {
                write!(out, ",\"from\":{from}")?;
            }
            if let Some((core, [before, until])) = core {
                write!(out, ",\"core\":{core},\"delayed_ns\":[{before},{until}]")?;
            }
            writeln!(out, ",\"thread\":{thread}}}")?;
        }
        let accesses = lock(&self.accesses);
        accesses.iter().try_for_each(|access| write_access(out, access, &scale))?;
        let messages = lock(&self.messages);
        let names = |place: usize| self.rails.get(place).map_or("self", TraceHandle::rail);
        for receipt in messages.iter() {
            write_message(out, receipt, node.origin_ns(), names)?;
        }
        lines += calls.iter().len() + accesses.iter().len() + messages.iter().len();
        let dropped = calls.dropped() + accesses.dropped() + messages.dropped();
        writeln!(out, "{{\"end\":{lines},\"dropped\":{dropped}}}")
    }
}

fn write_access(out: &mut impl Write, access: &FileAccess, scale: impl Fn(u64) -> u64) -> io::Result<()> {
    let FileAccess { began, file, kind, way, owners, pieces, len, predicted_ns, ended } = access;
    writeln!(
        out,
        "{{\"at_ns\":{},\"access\":\"{kind}\",\"file\":{},\"way\":\"{way}\",\"owners\":{owners:?},\
         \"pieces\":{pieces},\"len\":{len},\"predicted_ns\":{predicted_ns},\"until_ns\":{}}}",
        scale(*began),
        quote(file),
        scale(*ended),
    )
}

fn write_message<'a>(
    out: &mut impl Write,
    receipt: &Receipt,
    origin_ns: u64,
    name: impl Fn(usize) -> &'a str,
) -> io::Result<()> {
    let Receipt { envelope, protocol, eager_max, began, carried, predicted_ns, actual_ns, .. } = receipt;
    let Receipt { blocks, blocks_bytes, .. } = receipt;
    write!(
        out,
        "{{\"at_ns\":{},\"message\":\"{}\",\"to\":{},\"context\":{},\"tag\":{},\"seq\":{},\"len\":{},\
         \"eager_max\":{eager_max},\"predicted_ns\":{predicted_ns},\"actual_ns\":{actual_ns},\
         \"blocks\":{blocks},\"blocks_bytes\":{blocks_bytes},\"carried\":[",
        origin_ns + began.as_ns(),
        protocol.name(),
        envelope.peer.0,
        envelope.context.0,
        envelope.tag.0,
        envelope.seq,
        envelope.len,
    )?;
    for (index, (rail, bytes)) in carried.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}[{},{bytes}]", quote(name(rail.index())))?;
    }
    writeln!(out, "]}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gets_a_file_for_each_rank() {
        let folder = std::env::temp_dir();
        assert_eq!(file_of(&folder, "job", 3), folder.join("trace.3"));
        assert_eq!(file_of(&folder.join("no-such-t"), "job", 3), folder.join("no-such-t.3"));
    }
}
