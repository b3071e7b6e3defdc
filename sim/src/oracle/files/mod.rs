//! Shared files are consistent as the standard has it (MPI 5.0, section 14.6.1) and as docs/files.md promises
//! beyond it.
//!
//! Every write leaves bytes that name it at each place. A read may find the bytes of a write, unless another
//! write is known to follow that one and to precede the read: on the same host, or across a synchronisation,
//! or, where hosts see each other's writes, across a meeting. In atomic mode there is moreover one order of
//! whole accesses ([`atomic`]). Reads that find a file in the same state find the same. A write that the
//! server has refused is reported, and nothing else is lost. What hosts that die take with them is judged by
//! [`loss`].

mod atomic;
mod judge;
mod loss;

use super::Objection;
use crate::files::system::Server;
use crate::files::{Ended, LOST};
use crate::workload::files::{Access, Number, Script, Stage, Task, What};
use nmad_file::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// A time: the number of tasks that had begun or ended before.
type Stamp = u64;

/// An access, as far as it has come.
#[derive(Debug)]
struct Done {
    number: Number,
    host: usize,
    access: Access,
    begin: Stamp,
    end: Option<Stamp>,
    /// Its bytes may be missing.
    has_failed: bool,
    /// Writes that the server had refused when it began.
    refused: u64,
    /// The mode change of the file that it follows, if that is to atomic mode.
    mode: Option<usize>,
    /// What a read has found.
    found: Vec<u8>,
}

/// What hosts have done together.
#[derive(Debug)]
struct Together {
    what: What,
    /// By host.
    begin: Vec<Option<Stamp>>,
    end: Vec<Option<Stamp>>,
    has_failed: bool,
    /// By host: it has ended there since a host has died, and says nothing about the others.
    lost: Vec<bool>,
    /// What was written before is seen afterwards.
    shows: bool,
    /// Writes that the server had refused when the first host began, and when the last ended.
    refused: (u64, u64),
}

/// What has written a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Writer {
    /// Nobody: the file was new.
    Nobody,
    /// A change of the length.
    Size(usize),
    /// A write.
    Write(usize),
}

/// The books of one file.
#[derive(Debug, Default)]
struct Book {
    accesses: Vec<Done>,
    /// By number of the step.
    together: BTreeMap<usize, Together>,
    /// By number in the bytes: which access.
    writes: BTreeMap<u8, usize>,
    /// Places where a write begins or ends.
    edges: Vec<u64>,
    /// What a place had after this number of writes, when none was under way.
    settled: BTreeMap<(u64, usize), Writer>,
    /// By host: the change to atomic mode in force.
    modes: BTreeMap<usize, usize>,
    stage: Stage,
    /// Hosts that have died.
    died: BTreeMap<usize, Stamp>,
    /// By host: owners of whose end it was told.
    told: BTreeMap<usize, BTreeSet<usize>>,
}

/// Judges accesses to files.
#[derive(Debug, Default)]
pub struct FileOracle {
    books: BTreeMap<usize, Book>,
    now: Stamp,
    count: u64,
    died: BTreeMap<usize, Stamp>,
}

impl FileOracle {
    /// Tasks that have begun.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Tasks that have begun and not ended, for a message.
    pub fn open(&self, script: &Script) -> Vec<String> {
        let mut open: Vec<Number> = Vec::new();
        for (file, book) in &self.books {
            open.extend(book.accesses.iter().filter(|done| done.end.is_none()).map(|done| done.number));
            let waits = |task: &&Task| {
                let step = book.together.get(&task.together).filter(|_| task.file == *file);
                !matches!(task.what, What::Access(_))
                    && step
                        .is_some_and(|step| step.begin[task.host].is_some() && step.end[task.host].is_none())
            };
            let numbers = script.tasks.iter().enumerate().filter(|(_, task)| waits(task));
            open.extend(numbers.map(|(number, _)| number));
        }
        open.into_iter().map(|number| format!("task {number} {}", words(&script.tasks[number]))).collect()
    }

    /// A host has died.
    pub fn died(&mut self, host: usize) {
        self.now += 1;
        self.died.insert(host, self.now);
        self.books.values_mut().for_each(|book| book.died.clone_from(&self.died));
    }

    /// A task begins; the server of the file has refused so many writes up to now.
    pub fn begin(&mut self, script: &Script, number: Number, refused: u64) {
        self.now += 1;
        self.count += 1;
        let task = &script.tasks[number];
        let (now, hosts) = (self.now, script.stage.nodes.len());
        let book = self.books.entry(task.file).or_insert_with(|| Book::new(script, task.file));
        book.died.clone_from(&self.died);
        match &task.what {
            What::Access(access) => {
                if access.kind == Kind::Write {
                    book.writes.insert(access.write, book.accesses.len());
                }
                book.accesses.push(Done {
                    number,
                    host: task.host,
                    access: access.clone(),
                    begin: now,
                    end: None,
                    has_failed: false,
                    refused,
                    mode: book.modes.get(&task.host).copied(),
                    found: Vec::new(),
                });
            }
            what => {
                let shows = match what {
                    What::Barrier => {
                        let is_atomic = book.modes.contains_key(&task.host);
                        script.stage.is_coherent || script.stage.layout(is_atomic).by_owners
                    }
                    _ => true,
                };
                let step = book.together.entry(task.together).or_insert_with(|| Together {
                    what: what.clone(),
                    begin: vec![None; hosts],
                    end: vec![None; hosts],
                    has_failed: false,
                    lost: vec![false; hosts],
                    shows,
                    refused: (refused, refused),
                });
                step.begin[task.host] = Some(now);
            }
        }
    }

    /// A task has ended. The server of the file has refused so many writes up to now, and the host was told
    /// that these owners are gone.
    ///
    /// # Errors
    /// It must not end so.
    pub fn end(
        &mut self,
        script: &Script,
        number: Number,
        ended: Ended,
        (refused, gone): (u64, BTreeSet<usize>),
    ) -> Result<(), Objection> {
        self.now += 1;
        let now = self.now;
        let task = &script.tasks[number];
        let book = self.books.get_mut(&task.file).ok_or("a task ends that has not begun")?;
        let named =
            |objection: Objection| format!("file {}: task {number} {}: {objection}", task.file, words(task));
        book.tell(task.host, gone).map_err(named)?;
        match &task.what {
            What::Access(_) => book.end_access((number, now), ended, refused).map_err(named),
            what => {
                if let What::Atomic(is_atomic) = what {
                    match *is_atomic && !is_lost(&ended) {
                        true => book.modes.insert(task.host, task.together),
                        false => book.modes.remove(&task.host),
                    };
                }
                book.end_together((task, now), ended, refused).map_err(named)
            }
        }
    }

    /// Judges what the server of a file has when all is over.
    ///
    /// # Errors
    /// The first place that is wrong.
    pub fn finish(&self, file: usize, server: &Server) -> Result<(), Objection> {
        let Some(book) = self.books.get(&file) else { return Ok(()) };
        let named = |objection: Objection| format!("file {file}: {objection}");
        let is_open = |done: &&Done| done.end.is_none() && !book.died.contains_key(&done.host);
        if let Some(open) = book.accesses.iter().find(is_open) {
            return Err(named(format!("task {} has not ended", open.number)));
        }
        book.finish(server).map_err(named)?;
        atomic::check(book).map_err(named)
    }
}

fn words(task: &Task) -> String {
    match &task.what {
        What::Access(Access { kind, pieces, write }) => {
            let (count, len) = (pieces.count(), pieces.len());
            let (begin, _) = pieces.hull().unwrap_or_default();
            let kind = match kind {
                Kind::Read => "reads".into(),
                Kind::Write => format!("(write {write}) writes"),
            };
            format!("of h{} {kind} {len} B in {count} pieces from {begin} on", task.host)
        }
        what => format!("of h{} {what:?}", task.host),
    }
}

impl Book {
    fn new(script: &Script, file: usize) -> Book {
        let mut edges = Vec::new();
        for task in script.tasks.iter().filter(|task| task.file == file) {
            match &task.what {
                What::Access(access) if access.kind == Kind::Write => {
                    let pieces = access.pieces.list().iter();
                    edges.extend(pieces.flat_map(|piece| [piece.offset, piece.end()]));
                }
                What::Size(size) => edges.push(*size),
                _ => {}
            }
        }
        edges.sort_unstable();
        edges.dedup();
        Book { edges, stage: script.stage.clone(), ..Book::default() }
    }

    fn end_access(
        &mut self,
        (number, now): (Number, Stamp),
        ended: Ended,
        refused: u64,
    ) -> Result<(), Objection> {
        let place = self.accesses.iter().rposition(|done| done.number == number);
        let place = place.ok_or("it has not begun")?;
        let has_no_owner = self.no_owner_lives();
        let done = &mut self.accesses[place];
        done.end = Some(now);
        match ended {
            Err(_) if done.access.kind == Kind::Write && refused > 0 => {
                done.has_failed = true;
                Ok(())
            }
            Err(_) if has_no_owner => {
                done.has_failed = true;
                Ok(())
            }
            Err(text) => Err(format!("it fails without a cause: {text}")),
            Ok(_) if done.access.kind == Kind::Write => Ok(()),
            Ok(found) => {
                done.found = found;
                self.judge(place, refused)
            }
        }
    }

    fn end_together(
        &mut self,
        (task, now): (&Task, Stamp),
        ended: Ended,
        refused: u64,
    ) -> Result<(), Objection> {
        let step = self.together.get_mut(&task.together).ok_or("it has not begun")?;
        step.end[task.host] = Some(now);
        step.refused.1 = step.refused.1.max(refused);
        if is_lost(&ended) && !self.died.is_empty() {
            step.lost[task.host] = true;
            return Ok(());
        }
        if let Err(text) = ended {
            step.has_failed = true;
            if refused == 0 {
                return Err(format!("it fails without a cause: {text}"));
            }
        }
        Ok(())
    }

    /// Whether a step had ended on a host before a time, in accord with all others.
    fn is_behind(&self, step: usize, host: usize, at: Stamp) -> bool {
        self.together.get(&step).is_some_and(|step| !step.lost[host] && step.has_ended(host, at))
    }

    /// Whether an access was over before a step began on its host.
    fn is_before(done: &Done, step: &Together) -> bool {
        matches!((done.end, step.begin[done.host]), (Some(end), Some(begin)) if end < begin)
    }

    /// Whether a write is known to precede an access.
    fn precedes(&self, writer: Writer, later: &Done) -> bool {
        match writer {
            Writer::Nobody => true,
            Writer::Size(step) => self.is_behind(step, later.host, later.begin),
            Writer::Write(place) => {
                let done = &self.accesses[place];
                let is_same = done.host == later.host || done.mode.is_some() && done.mode == later.mode;
                let shows = |(number, step): (&usize, &Together)| {
                    step.shows
                        && Book::is_before(done, step)
                        && self.is_behind(*number, later.host, later.begin)
                };
                is_same && done.end.is_some_and(|end| end < later.begin) || self.together.iter().any(shows)
            }
        }
    }

    /// Whether one write is known to precede another.
    fn follows(&self, later: Writer, writer: Writer) -> bool {
        match (writer, later) {
            (_, Writer::Nobody) => false,
            (Writer::Nobody, _) => true,
            (_, Writer::Write(place)) => self.precedes(writer, &self.accesses[place]),
            (Writer::Size(first), Writer::Size(second)) => first < second,
            (Writer::Write(place), Writer::Size(step)) => {
                Book::is_before(&self.accesses[place], &self.together[&step])
            }
        }
    }

    /// Whether the byte that a write has left at a place is there if nothing has followed: no write that the
    /// server has refused may be it, and no host that has died had it.
    fn is_sure(&self, writer: Writer, at: u64, refused: u64) -> bool {
        match writer {
            Writer::Write(place) => {
                self.was_accepted(writer, refused) && !self.may_be_lost(&self.accesses[place], at)
            }
            _ => self.was_accepted(writer, refused),
        }
    }

    /// Whether no write that the server has refused may be this one.
    fn was_accepted(&self, writer: Writer, refused: u64) -> bool {
        let place = match writer {
            Writer::Nobody => return true,
            // One that fails changes nothing.
            Writer::Size(step) => {
                let step = &self.together[&step];
                return !step.has_failed && !step.is_torn();
            }
            Writer::Write(place) => place,
        };
        let done = &self.accesses[place];
        if done.has_failed {
            return false;
        }
        // A synchronisation that fails may be about a write that was under way, too.
        for step in self.together.values() {
            if matches!(step.what, What::Barrier) || step.has_ended(done.host, done.begin) {
                continue;
            }
            if step.has_failed {
                return false;
            }
            if Book::is_before(done, step) && step.end.iter().all(Option::is_some) && !step.is_torn() {
                return true;
            }
        }
        done.refused == refused
    }

    /// All that may have written to a place, the writes that have begun.
    fn writers(&self, at: u64) -> Vec<Writer> {
        let mut all = vec![Writer::Nobody];
        for (&number, step) in &self.together {
            if matches!(step.what, What::Size(size) if size <= at) {
                all.push(Writer::Size(number));
            }
        }
        let covers = |done: &Done| {
            done.access.kind == Kind::Write
                && done.access.pieces.list().iter().any(|piece| piece.offset <= at && at < piece.end())
        };
        let places = self.accesses.iter().enumerate().filter(|(_, done)| covers(done));
        all.extend(places.map(|(place, _)| Writer::Write(place)));
        all
    }
}

impl Together {
    /// Whether it had ended on a host before a time.
    fn has_ended(&self, host: usize, at: Stamp) -> bool {
        self.end[host].is_some_and(|end| end < at)
    }

    /// Whether a host has died before it had ended on all.
    fn is_torn(&self) -> bool {
        self.lost.contains(&true)
    }
}

/// Whether something has failed since a host has died.
fn is_lost(ended: &Ended) -> bool {
    ended.as_ref().is_err_and(|text| text.starts_with(LOST))
}
