//! The owner's side of accesses of one rank, on the node. The node calls it from any thread that polls the
//! rails: one that waits in MPI, or the helper thread while the program computes. It runs with the node's
//! lock held, so a thread of its own makes the calls of the file system.

use super::{File, background, lock};
use crate::comm::FILES;
use crate::world::{World, world};
use newmadeleine::engine::{Context, Engine, PeerId};
use newmadeleine::progress::{Served, Service};
use nmad_file::Asking;
use nmad_file::serving::{Asked, Name, Owned};
use nmad_file::{Answer, Reply, Request, Serving};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// The name of the service.
const NAME: &str = "files";

static ALL: Mutex<Serving<File>> = Mutex::new(Serving::new(FILES));

impl Owned for File {
    fn context(&self) -> Context {
        self.on.comm.context()
    }

    fn rank_of(&self, process: u32) -> Option<usize> {
        self.on.comm.local().rank_of(process).map(|rank| rank as usize)
    }
}

/// The number of a file in a process: the context of its communicator.
pub(super) fn name(file: &File) -> Name {
    file.on.comm.context().0.into()
}

/// Serves what other ranks ask of this one from now on.
pub(super) fn begin(world: &World, file: &Arc<File>) {
    let mut twins = Vec::new();
    let is_first = {
        let mut all = lock(&ALL);
        for other in all.files().filter(|other| other.disk.is_same(&file.disk)) {
            // A handle does not see data that another handle keeps in memory.
            for each in [other, file] {
                each.is_twice.store(true, Ordering::Relaxed);
            }
            twins.push(other.clone());
        }
        all.begin(name(file), file.clone());
        all.files().count() == 1
    };
    twins.iter().for_each(File::settle);
    if is_first {
        world.node().set_service(NAME, Some(Box::new(All::default())));
    }
}

/// Serves a file no more; nobody asks any more.
pub(super) fn end(world: &World, file: &File) {
    let is_last = lock(&ALL).end(name(file));
    if is_last {
        world.node().set_service(NAME, None);
    }
}

/// Does what a thread of this process asks of the owner here.
pub(super) fn serve_here(file: &File, reply: Reply, request: Request) {
    let from = file.rank() as usize;
    let answers = file.desk.ask(&file.disk, || file.keeps(), (from, reply), request);
    deliver(file, answers);
}

/// Sends answers from a thread that does not have the engine.
fn deliver(file: &File, answers: Vec<(Reply, Answer)>) {
    let Ok(world) = world() else { return };
    let is_far = |(reply, _): &(Reply, Answer)| matches!(reply, Reply::There { .. });
    if answers.iter().any(is_far) {
        world.node().submit(|engine| answer(engine, file, answers));
    } else {
        answers.iter().for_each(|(reply, answer)| _ = reply.give(answer));
    }
    world.node().rouse();
}

fn answer(engine: &mut Engine, file: &File, answers: Vec<(Reply, Answer)>) {
    lock(&ALL).answer(engine, file.on.comm.context(), answers);
}

/// Serves all files.
#[derive(Default)]
struct All {
    /// Messages were not complete at the last look.
    is_due: bool,
    /// Failed processes that owners know of.
    failed: usize,
}

impl Service for All {
    fn serve(&mut self, engine: &mut Engine) -> Served {
        let failed = engine.inspect().failed();
        // Most looks find nothing to do; they take no lock.
        if engine.inspect().unexpected() == 0 && !self.is_due && self.failed == failed.len() {
            return Served::default();
        }
        let mut all = lock(&ALL);
        let lost = with_each(&all, failed.get(self.failed..).unwrap_or_default());
        self.failed = failed.len();
        let worked = all.receive(engine);
        let complete = all.complete(engine);
        let served = Served { worked: worked || !complete.is_empty(), ..Served::default() };
        self.is_due = all.is_due();
        // Answers are kept in the list.
        drop(all);
        for (file, process) in lost {
            forget(&file, process);
        }
        for asked in complete {
            serve_there(engine, asked);
        }
        served
    }
}

/// All files, with each of these processes.
fn with_each(all: &Serving<File>, failed: &[PeerId]) -> Vec<(Arc<File>, u32)> {
    let of = |peer: &PeerId| {
        let process = peer.0;
        all.files().map(move |file| (file.clone(), process))
    };
    failed.iter().flat_map(of).collect()
}

/// Does what another process asks of the owner here: at once, if that takes no call of the file system.
fn serve_there(engine: &mut Engine, asked: Asked<File>) {
    let Asked { file, from, reply, request } = asked;
    match file.desk.at_once(&file.disk, || file.keeps(), (from, reply), request) {
        Ok(answers) => answer(engine, &file, answers),
        Err((reply, request)) => {
            by_thread(&file, move |file| file.desk.ask(&file.disk, || file.keeps(), (from, reply), request));
        }
    }
}

/// Drops the requests of a process that has died.
fn forget(file: &Arc<File>, process: u32) {
    if let Some(rank) = file.rank_of(process) {
        by_thread(file, move |file| file.desk.owner().lost(&file.disk, rank));
    }
}

/// Has the thread that calls the file system do something, in order.
fn by_thread(file: &Arc<File>, work: impl FnOnce(&File) -> Vec<(Reply, Answer)> + Send + 'static) {
    let file = file.clone();
    file.desk.enter();
    background::run(move || {
        let answers = work(&file);
        file.desk.leave();
        deliver(&file, answers);
    });
}
