//! Files that simulated hosts share: the protocol of owners and regions that MAD-MPI runs (`nmad-file`), over
//! engines, with a simulated file system below. A thread of an application does one task after the other;
//! each is a future that the host looks at whenever it has its core.

mod member;
pub mod system;

use crate::canary::Canary;
use crate::messages::{Inside, Requests};
use crate::network::{Shared, lock as lock_network};
use crate::rng::Rng;
use crate::workload::contexts::REQUESTS;
use crate::workload::files::{Access, Number, Script, Task, What};
pub(crate) use member::LOST;
use member::{File, Here, Parts, Post, lock};
use nmad_engine::packet::RequestId;
use nmad_engine::{Completion, Engine, Port};
use nmad_file::Asking;
use nmad_file::serving::Asked;
use nmad_file::{Answer, Ask, Backing, Fault, Kept, Kind, Reply, Serving, handover, near};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use system::{Client, Server};

/// Longest time that the thread for system calls needs for a request, in nanoseconds.
const REQUEST_NS: u64 = 40_000;

/// How a task has ended: what a read has found, as many bytes as it says that it has read.
pub type Ended = Result<Vec<u8>, String>;

/// A task that goes on.
type Doing = Pin<Box<dyn Future<Output = Ended>>>;

/// What all hosts share of the files of a run.
#[derive(Clone, Default)]
pub struct Volumes(Vec<(Arc<Mutex<Server>>, Arc<AtomicU64>)>);

impl Volumes {
    /// The empty files of a run.
    pub fn new(script: &Script) -> Volumes {
        let volume = |full: &Option<(u64, u64)>| {
            (Arc::new(Mutex::new(Server::new(*full))), Arc::new(AtomicU64::new(0)))
        };
        Volumes(script.full.iter().map(volume).collect())
    }

    /// Number of files.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// What the server of a file has.
    pub fn with<R>(&self, file: usize, look: impl FnOnce(&Server) -> R) -> R {
        look(&lock(&self.0[file].0))
    }
}

/// Something for the thread that makes the system calls of an owner.
enum Job {
    Ask(Asked<File>),
    /// A host has died: its requests are dropped.
    Lost(Arc<File>, usize),
}

/// The files of a host.
pub struct Files {
    me: usize,
    network: Shared,
    rng: Rng,
    requests: Requests,
    post: Arc<Mutex<Post>>,
    /// Under which numbers the files know requests of the engine.
    numbers: BTreeMap<RequestId, u64>,
    serving: Serving<File>,
    files: Vec<Arc<File>>,
    volumes: Volumes,
    jobs: VecDeque<Job>,
    /// When the first job is done.
    done_at: u64,
    /// By thread: its task.
    doing: BTreeMap<usize, (Number, Doing)>,
    /// Failed hosts that owners know of.
    failed: usize,
}

impl Files {
    /// Those of a host, all open.
    pub fn new(
        (me, seed): (usize, u64),
        script: &Script,
        (volumes, network): (&Volumes, &Shared),
        canary: Option<Canary>,
    ) -> Files {
        let post: Arc<Mutex<Post>> = Arc::default();
        let mut serving = Serving::new(nmad_engine::Context(REQUESTS));
        let stream = |file: usize, kind: u64| Rng::of(seed, 400 + 100 * kind + 10 * me as u64 + file as u64);
        let file = |(number, (server, word)): (usize, &(Arc<Mutex<Server>>, Arc<AtomicU64>))| {
            let pages = (!script.stage.is_coherent).then(|| stream(number, 0));
            let client = Client::new(server.clone(), pages);
            let (network, post, word) = (network.clone(), post.clone(), word.clone());
            let rng = stream(number, 1);
            Arc::new(File::new(&script.stage, Parts { number, me, network, post, client, word, rng, canary }))
        };
        let files: Vec<Arc<File>> = volumes.0.iter().enumerate().map(file).collect();
        for (number, file) in files.iter().enumerate() {
            serving.begin(number as u64, file.clone());
        }
        Files {
            me,
            network: network.clone(),
            rng: stream(9, 2),
            requests: Requests::new(me, network.clone()),
            post,
            numbers: BTreeMap::new(),
            serving,
            files,
            volumes: volumes.clone(),
            jobs: VecDeque::new(),
            done_at: 0,
            doing: BTreeMap::new(),
            failed: 0,
        }
    }

    /// Owners of a file whose end this host was told of.
    pub fn gone(&self, file: usize) -> BTreeSet<usize> {
        self.files[file].gone()
    }

    /// Closes all files after the death of a host, when nobody accesses them any more: owners write what they
    /// have.
    ///
    /// # Errors
    /// A server has no space.
    pub fn close(&self) -> Result<(), Fault> {
        let of = |file: &Arc<File>| file.write_owned().and(file.client.flush());
        self.files.iter().map(of).fold(Ok(()), Result::and)
    }

    /// Writes that the server of a file has refused up to now.
    pub fn refused(&self, file: usize) -> u64 {
        self.volumes.with(file, Server::refused)
    }

    /// A thread begins a task.
    pub fn begin(&mut self, thread: usize, number: Number, task: &Task) {
        let file = self.files[task.file].clone();
        let doing: Doing = match &task.what {
            What::Access(access) => Box::pin(access_file(file, access.clone())),
            what => Box::pin(act_together(file, what.clone())),
        };
        self.doing.insert(thread, (number, doing));
    }

    /// Goes on with the task of a thread; how it has ended.
    pub fn advance(&mut self, thread: usize, engine: &mut Engine) -> Option<(Number, Ended)> {
        let (number, doing) = self.doing.get_mut(&thread)?;
        let ended = doing.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let number = *number;
        self.submit(engine);
        let Poll::Ready(ended) = ended else { return None };
        self.doing.remove(&thread);
        Some((number, ended))
    }

    /// Submits what the files have for other hosts.
    fn submit(&mut self, engine: &mut Engine) {
        let (out, answers) = {
            let mut post = lock(&self.post);
            (std::mem::take(&mut post.out), std::mem::take(&mut post.answers))
        };
        let mut port = Inside { engine, requests: &mut self.requests };
        for member::Out { number, what } in out {
            let request = match what {
                member::What::Send(to, memory) => port.send(&to, &memory),
                member::What::Receive(from, memory) => Some(port.receive(from, memory)),
            };
            if let Some(request) = request {
                self.numbers.insert(request, number);
            }
        }
        for (file, answers) in answers {
            self.answer(file, answers, engine);
        }
    }

    fn answer(&mut self, file: usize, answers: Vec<(Reply, Answer)>, engine: &mut Engine) {
        use nmad_file::serving::Owned;
        let context = self.files[file].context();
        let mut port = Inside { engine, requests: &mut self.requests };
        self.serving.answer(&mut port, context, answers);
    }

    /// Takes note of a request that has ended; false: it is not about files.
    pub fn ended(&mut self, completion: &Completion) -> bool {
        if !self.requests.ended(completion) {
            return false;
        }
        self.tell();
        true
    }

    /// Tells files which of their messages have ended.
    fn tell(&mut self) {
        let ended: Vec<RequestId> =
            self.numbers.keys().copied().filter(|request| self.requests.has_ended(*request)).collect();
        for request in ended {
            if let (Some(number), Some(outcome)) =
                (self.numbers.remove(&request), self.requests.take_ended(request))
            {
                lock(&self.post).ended.insert(number, outcome);
            }
        }
    }

    /// Does what others have asked of the owners here, and what the thread for system calls has to do; true:
    /// there was something.
    pub fn serve(&mut self, engine: &mut Engine) -> bool {
        self.drop_failed(engine);
        let mut port = Inside { engine, requests: &mut self.requests };
        let mut worked = self.serving.receive(&mut port);
        let complete = self.serving.complete(&mut port);
        self.tell();
        for Asked { file, from, reply, mut request } in complete {
            worked = true;
            file.break_hold(&mut request);
            match file.desk.at_once(&file.client, || file.keeps(), (from, reply), request) {
                Ok(answers) => self.answer(file.number, answers, engine),
                Err((reply, request)) => {
                    file.desk.enter();
                    self.add_job(Job::Ask(Asked { file, from, reply, request }));
                }
            }
        }
        self.work(engine) || worked
    }

    /// Has owners drop the requests of hosts that have died.
    fn drop_failed(&mut self, engine: &Engine) {
        let failed = engine.inspect().failed();
        let new: Vec<usize> = failed[self.failed..].iter().map(|peer| peer.0 as usize).collect();
        self.failed = failed.len();
        for host in new {
            for file in self.files.clone() {
                file.desk.enter();
                self.add_job(Job::Lost(file, host));
            }
        }
    }

    fn add_job(&mut self, job: Job) {
        if self.jobs.is_empty() {
            self.start_job();
        }
        self.jobs.push_back(job);
    }

    fn start_job(&mut self) {
        let needs_ns = self.rng.len(REQUEST_NS);
        self.done_at = lock_network(&self.network).local_ns(self.me) + needs_ns;
    }

    /// The thread for system calls goes on; true: something was done.
    fn work(&mut self, engine: &mut Engine) -> bool {
        if self.jobs.is_empty() {
            return false;
        }
        {
            let mut network = lock_network(&self.network);
            if network.local_ns(self.me) < self.done_at {
                network.wake(self.me, self.done_at);
                return false;
            }
        }
        let Some(job) = self.jobs.pop_front() else { return false };
        let Asked { file, from, reply, request } = match job {
            Job::Ask(asked) => asked,
            Job::Lost(file, host) => {
                let answers = file.lose(host);
                self.done(&file, answers, engine);
                return true;
            }
        };
        let answers = match request.ask {
            // The last request of an access has to release the owner.
            Ask::Read(ref pieces) if file.canary == Some(Canary::Overlooks) && !request.part.releases => {
                let mut data = vec![0; pieces.len() as usize];
                let read = file.client.read(pieces, &mut data);
                let answer = Answer::Done { end: read.unwrap_or(0), data };
                vec![(reply, answer)]
            }
            _ => file.desk.ask(&file.client, || file.keeps(), (from, reply), request),
        };
        self.done(&file, answers, engine);
        true
    }

    /// A job is done.
    fn done(&mut self, file: &File, answers: Vec<(Reply, Answer)>, engine: &mut Engine) {
        file.desk.leave();
        self.answer(file.number, answers, engine);
        self.start_job();
    }
}

/// What a process does before and after it communicates.
async fn release(file: &Arc<File>) {
    if file.canary != Some(Canary::Remembers) {
        near::release(&Here(file)).await;
    }
}

/// What all processes do, in a call that communicates.
async fn act_together(file: Arc<File>, what: What) -> Ended {
    release(&file).await;
    let here = Here(&file);
    let done = match what {
        What::Access(_) => Ok(()),
        What::Barrier => handover::Together::meet(&here, false).await.map(drop),
        What::Sync => handover::hand_over(&here).await,
        What::Atomic(is_atomic) => handover::change(&here, || file.lay_out(is_atomic)).await,
        What::Size(size) => handover::by_one(&here, || file.set_size(size)).await,
    };
    release(&file).await;
    done.map(|()| Vec::new())
}

async fn access_file(file: Arc<File>, access: Access) -> Ended {
    let Access { kind, pieces, .. } = &access;
    let data = match kind {
        Kind::Write => access.data(),
        Kind::Read => vec![0; pieces.len() as usize],
    };
    let memory = Kept::new(data);
    let done = near::access(&Here(&file), *kind, (pieces, &memory.segments())).await;
    let mut data = memory.release();
    data.truncate(done? as usize);
    Ok(if *kind == Kind::Read { data } else { Vec::new() })
}
