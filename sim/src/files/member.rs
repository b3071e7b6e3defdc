//! A file as one simulated host has it: what the protocol crate `nmad-file` needs of a process.

use super::system::Client;
use crate::canary::Canary;
use crate::network::{Shared, lock as lock_network};
use crate::rng::Rng;
use crate::workload::contexts::{REQUESTS, accesses, meetings};
use crate::workload::files::Stage;
use nmad_engine::packet::PeerId;
use nmad_engine::{Context, Error, Outcome, Segments, Source, Tag, TagMatch, To};
use nmad_file::access::{perform, prefer_owners};
use nmad_file::asking::{self, Asking, Channel, Failed, Owners};
use nmad_file::handover::Together;
use nmad_file::near::Keeping;
use nmad_file::serving::Owned;
use nmad_file::word::Word;
use nmad_file::{Answer, Ask, Backing, Desk, Fault, Kept, Kind, Layout, Near, Owner, Pieces, Reply, Request};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Waking, Poll};

/// Begins the text of an error whose cause is that a host has died.
pub(crate) const LOST: &str = "lost: ";
/// Longest half of a system call, in nanoseconds.
const CALL_NS: u64 = 20_000;

/// A message that the host has to submit, and the number under which its end is told.
pub(super) struct Out {
    pub(super) number: u64,
    pub(super) what: What,
}

/// Send or receive.
pub(super) enum What {
    Send(To, Segments),
    Receive((Source, Context, TagMatch), Segments),
}

/// What the files of a host have for it to submit.
#[derive(Default)]
pub(super) struct Post {
    pub(super) out: VecDeque<Out>,
    pub(super) ended: BTreeMap<u64, Outcome>,
    /// Answers of owners, by file.
    pub(super) answers: Vec<(usize, Vec<(Reply, Answer)>)>,
    next: u64,
}

/// The end of a message.
pub(super) struct Ending {
    post: Arc<Mutex<Post>>,
    number: u64,
}

impl Future for Ending {
    type Output = Result<Outcome, String>;

    fn poll(self: Pin<&mut Self>, _: &mut Waking<'_>) -> Poll<Self::Output> {
        lock(&self.post).ended.remove(&self.number).map_or(Poll::Pending, |outcome| Poll::Ready(Ok(outcome)))
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A word that all hosts see.
struct Shown(Arc<AtomicU64>);

impl Word for Shown {
    fn load(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn change(&self, mut to: impl FnMut(u64) -> u64) -> u64 {
        let change = |was| Some(to(was));
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change).unwrap_or_default()
    }
}

/// A file on a host.
pub(super) struct File {
    pub(super) number: usize,
    me: usize,
    stage: Stage,
    network: Shared,
    post: Arc<Mutex<Post>>,
    pub(super) client: Client,
    pub(super) desk: Desk,
    /// None: a thread has them.
    near: Mutex<Option<Near>>,
    owners: Owners,
    layout: Mutex<Arc<Layout>>,
    /// Accesses of one process go by owners.
    word: Option<Shown>,
    /// Collective steps that were begun.
    met: AtomicU64,
    rng: Mutex<Rng>,
    /// Owners whose end it was told of.
    gone: Mutex<BTreeSet<usize>>,
    /// The owner here knows that a host has died.
    has_lost: AtomicBool,
    pub(super) canary: Option<Canary>,
}

/// What a file on a host is made of, besides its stage.
pub(super) struct Parts {
    pub(super) number: usize,
    pub(super) me: usize,
    pub(super) network: Shared,
    pub(super) post: Arc<Mutex<Post>>,
    pub(super) client: Client,
    pub(super) word: Arc<AtomicU64>,
    pub(super) rng: Rng,
    pub(super) canary: Option<Canary>,
}

impl File {
    pub(super) fn new(stage: &Stage, parts: Parts) -> File {
        let Parts { number, me, network, post, client, word, rng, canary } = parts;
        let layout = stage.layout(false);
        let waiting = stage.hints.waiting();
        File {
            number,
            me,
            network,
            post,
            client,
            desk: Desk::new(Owner::new(layout.regions.unit(), waiting)),
            near: Mutex::new(Some(Near::new(waiting))),
            owners: Owners::default(),
            layout: Mutex::new(Arc::new(layout)),
            word: stage.is_coherent.then_some(Shown(word)),
            met: AtomicU64::new(0),
            rng: Mutex::new(rng),
            gone: Mutex::default(),
            has_lost: AtomicBool::new(false),
            canary,
            stage: stage.clone(),
        }
    }

    /// Puts the layout of a mode in force.
    pub(super) fn lay_out(&self, is_atomic: bool) {
        let layout = self.stage.layout(is_atomic);
        let waiting = self.stage.hints.waiting();
        self.desk.owner().cache.set(layout.regions.unit(), waiting);
        if let Some(near) = &mut *lock(&self.near) {
            near.set(waiting);
        }
        *lock(&self.layout) = Arc::new(layout);
    }

    fn submit(&self, what: What) -> Ending {
        let mut post = lock(&self.post);
        let number = post.next;
        post.next += 1;
        post.out.push_back(Out { number, what });
        Ending { post: self.post.clone(), number }
    }

    /// A canary holds no owner.
    pub(super) fn break_hold(&self, request: &mut Request) {
        if self.canary == Some(Canary::Splits) && request.ask == Ask::Hold {
            request.ask = Ask::End;
        }
    }

    /// A part of a system call passes.
    pub(super) async fn pass(&self) {
        let wait_ns = lock(&self.rng).len(CALL_NS);
        let until = lock_network(&self.network).local_ns(self.me) + wait_ns;
        poll_fn(|_| {
            let mut network = lock_network(&self.network);
            if network.local_ns(self.me) >= until {
                return Poll::Ready(());
            }
            network.wake(self.me, until);
            Poll::Pending
        })
        .await;
    }

    async fn call_system(&self, kind: Kind, (pieces, memory): (&Pieces, &Segments)) -> Result<u64, Fault> {
        self.pass().await;
        let done = match kind {
            Kind::Write => {
                let mut data = Vec::new();
                memory.append_to(&mut data);
                self.client.write(pieces, &data).map(|()| pieces.len())
            }
            Kind::Read => {
                let mut data = vec![0; pieces.len() as usize];
                let read = self.client.read(pieces, &mut data);
                read.inspect(|len| _ = memory.write(0, &data[..*len as usize]))
            }
        };
        self.pass().await;
        done
    }

    fn tell(&self, host: i32, tag: u64, memory: Segments) -> Ending {
        let to = (PeerId(host as u32), Context(meetings(self.number)), Tag(tag));
        self.submit(What::Send(to, memory))
    }

    fn hear(&self, host: i32, tag: u64, memory: Segments) -> Ending {
        let from = Source::Peer(PeerId(host as u32));
        let context = Context(meetings(self.number));
        self.submit(What::Receive((from, context, TagMatch::Exact(Tag(tag))), memory))
    }

    /// Owners whose end it was told of.
    pub(super) fn gone(&self) -> BTreeSet<usize> {
        lock(&self.gone).clone()
    }

    /// The largest number of all hosts.
    async fn gather(&self, mine: u8) -> Result<u8, String> {
        let tag = 2 * self.met.fetch_add(1, Ordering::Relaxed);
        let hosts = self.stage.nodes.len() as i32;
        if self.me == 0 {
            let places: Vec<Kept> = (1..hosts).map(|_| Kept::new(vec![0])).collect();
            let coming: Vec<Ending> =
                (1..hosts).zip(&places).map(|(host, place)| self.hear(host, tag, place.segments())).collect();
            for ending in coming {
                ended(ending).await?;
            }
            let most = places.into_iter().flat_map(Kept::release).fold(mine, u8::max);
            for host in 1..hosts {
                let answer = Kept::new(vec![most]);
                ended(self.tell(host, tag + 1, answer.segments())).await?;
                answer.release();
            }
            return Ok(most);
        }
        let (own, all) = (Kept::new(vec![mine]), Kept::new(vec![0]));
        let answer = self.hear(0, tag + 1, all.segments());
        ended(self.tell(0, tag, own.segments())).await?;
        ended(answer).await?;
        own.release();
        Ok(all.release()[0])
    }
}

async fn ended(ending: Ending) -> Result<(), String> {
    ending.await?.map(drop).map_err(|error| match error {
        Error::PeerLost(_) | Error::Revoked => format!("{LOST}{error}"),
        error => error.to_string(),
    })
}

impl Owned for File {
    fn context(&self) -> Context {
        Context(accesses(self.number))
    }

    fn rank_of(&self, process: u32) -> Option<usize> {
        Some(process as usize).filter(|rank| *rank < self.stage.nodes.len())
    }
}

impl Asking for File {
    type Error = String;
    type Ending = Ending;

    fn rank(&self) -> i32 {
        self.me as i32
    }

    fn layout(&self) -> Arc<Layout> {
        lock(&self.layout).clone()
    }

    fn word(&self) -> Option<&impl Word> {
        self.word.as_ref()
    }

    fn owners(&self) -> &Owners {
        &self.owners
    }

    fn size(&self) -> Result<u64, Fault> {
        self.client.size()
    }

    fn send(&self, to: i32, channel: Channel, memory: Segments) -> Result<Ending, String> {
        let (context, tag) = match channel {
            Channel::Requests => (Context(REQUESTS), self.number as u64),
            Channel::Tag(tag) => (self.context(), tag),
        };
        Ok(self.submit(What::Send((PeerId(to as u32), context, Tag(tag)), memory)))
    }

    fn receive(&self, from: i32, tag: u64, memory: Segments) -> Result<Ending, String> {
        let from = Source::Peer(PeerId(from as u32));
        Ok(self.submit(What::Receive((from, self.context(), TagMatch::Exact(Tag(tag))), memory)))
    }

    fn serve_here(self: &Arc<File>, reply: Reply, mut request: Request) {
        self.break_hold(&mut request);
        let answers = self.desk.ask(&self.client, || self.keeps(), (self.me, reply), request);
        lock(&self.post).answers.push((self.number, answers));
    }

    fn is_gone(&self, owner: i32) {
        if self.canary != Some(Canary::Hushes) {
            lock(&self.gone).insert(owner as usize);
        }
    }

    fn error(&self, why: Failed) -> String {
        match why {
            Failed::Fault(fault) => fault.text,
            Failed::AllGone => format!("{LOST}all owners are gone"),
            why => format!("{why:?}"),
        }
    }
}

/// A file as an access of a thread has it.
pub(super) struct Here<'a>(pub(super) &'a Arc<File>);

/// The short records of a file, while a thread has them.
pub(super) struct Guard<'a> {
    place: &'a Mutex<Option<Near>>,
    near: Option<Near>,
}

impl Deref for Guard<'_> {
    type Target = Near;

    fn deref(&self) -> &Near {
        self.near.as_ref().expect("until it is dropped")
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Near {
        self.near.as_mut().expect("until it is dropped")
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *lock(self.place) = self.near.take();
    }
}

impl Keeping for Here<'_> {
    type Error = String;
    type Guard<'a>
        = Guard<'a>
    where
        Self: 'a;

    async fn near(&self) -> Guard<'_> {
        let place = &self.0.near;
        let near = poll_fn(|_| lock(place).take().map_or(Poll::Pending, Poll::Ready)).await;
        Guard { place, near: Some(near) }
    }

    fn goes_by_owners(&self) -> bool {
        self.0.goes_by_owners()
    }

    fn is_strict(&self) -> bool {
        self.0.layout().is_atomic
    }

    fn is_kept(&self) {}

    fn error(&self, fault: Fault) -> String {
        fault.text
    }

    async fn perform(&self, kind: Kind, data: (&Pieces, &Segments)) -> Result<u64, String> {
        let file = self.0;
        if kind == Kind::Write {
            prefer_owners(&**file, data.0, || file.stage.may_change());
        }
        perform(file, kind, data, || file.call_system(kind, data)).await.map(|(done, _)| done)
    }

    async fn write(&self, pieces: &Pieces, data: &[u8]) -> Result<(), Fault> {
        let kept = Kept::new(data.to_vec());
        let done = self.perform(Kind::Write, (pieces, &kept.segments())).await;
        kept.release();
        done.map(drop).map_err(|text| Fault::worded(nmad_file::Cause::Other, &text))
    }

    async fn read(&self, pieces: &Pieces, data: &mut [u8]) -> Result<u64, Fault> {
        let kept = Kept::new(vec![0; data.len()]);
        let done = self.perform(Kind::Read, (pieces, &kept.segments())).await;
        data.copy_from_slice(&kept.release());
        done.map_err(|text| Fault::worded(nmad_file::Cause::Other, &text))
    }

    async fn end(&self) -> Result<u64, Fault> {
        if !self.0.goes_by_owners() {
            return self.0.client.size();
        }
        asking::end(self.0).await.map_err(|text| Fault::worded(nmad_file::Cause::Other, &text))
    }
}

impl Together for Here<'_> {
    type Error = String;

    fn is_coherent(&self) -> bool {
        self.0.stage.is_coherent
    }

    fn has_owners(&self) -> bool {
        self.0.layout().by_owners
    }

    fn word(&self) -> Option<&impl Word> {
        self.0.word.as_ref()
    }

    fn is_first(&self) -> bool {
        self.0.me == 0
    }

    async fn push_near(&self) -> Result<(), Fault> {
        nmad_file::near::push(self).await
    }

    async fn meet(&self, given: bool) -> Result<bool, String> {
        Ok(self.0.gather(given.into()).await? != 0)
    }

    async fn told(&self, failed: Option<Fault>) -> Result<(), String> {
        match self.0.gather(failed.is_some().into()).await? {
            0 => Ok(()),
            _ => Err(failed.map_or("refused to another host".into(), |fault| fault.text)),
        }
    }

    async fn hand_over_owner(&self) -> Result<(), Fault> {
        let file = self.0;
        file.pass().await;
        let is_last = file.layout().regions.owners().last() == Some(&(file.me as i32));
        if file.canary == Some(Canary::Skips) && is_last {
            return Ok(());
        }
        let handed = file.write_owned();
        file.pass().await;
        handed
    }

    async fn flush(&self) -> Result<(), Fault> {
        self.0.pass().await;
        self.0.client.flush()
    }

    async fn forget(&self) {
        if self.0.canary != Some(Canary::Remembers) {
            self.0.client.forget();
        }
    }
}

impl File {
    /// The owner here writes what waits, and forgets what was read.
    pub(super) fn write_owned(&self) -> Result<(), Fault> {
        if self.canary == Some(Canary::Abandons) && self.has_lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.desk.owner().cache.hand_over(&self.client)
    }

    /// A host has died: the owner here drops its requests.
    pub(super) fn lose(&self, host: usize) -> Vec<(Reply, Answer)> {
        self.has_lost.store(true, Ordering::Relaxed);
        self.desk.owner().lost(&self.client, host)
    }

    /// Sets the length, as the first host alone does it.
    pub(super) fn set_size(&self, size: u64) -> Result<(), Fault> {
        if self.me == 0 {
            self.client.set_size(size);
        }
        Ok(())
    }
}
