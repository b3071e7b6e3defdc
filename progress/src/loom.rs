//! Threads that post at the same time, under loom, which tries every order in which they may get the lock.
//! The engine, the pump and the places of the rails are the shipped ones; the lock and the rails belong to
//! these tests.

use crate::apart::Held;
use crate::lock::Release;
use crate::locked::Core;
use crate::share::share;
use crate::standby::Standby;
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Limits, Order, Scope, Sent};
use nmad_engine::{
    Caller, Config, Context, Engine, Hints, Instant, Method, Pair, PeerId, Profile, Provenance, RailId,
    Sample, Tag, pump,
};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const PEER: PeerId = PeerId(1);
const NOW: Instant = Instant::from_ns(1_000);

/// The packet numbers that each rail was given, in order.
type Log = std::sync::Arc<std::sync::Mutex<[Vec<u32>; 2]>>;

/// A rail that accepts everything, and lets other threads run meanwhile.
struct Rail {
    at: usize,
    log: Log,
    is_up: bool,
    orders: Vec<(PeerId, u32)>,
}

impl Rail {
    fn took(&mut self, number: u32) {
        thread::yield_now();
        self.log.lock().unwrap()[self.at].push(number);
    }
}

impl Driver for Rail {
    fn name(&self) -> &str {
        "loom"
    }

    fn limits(&self) -> Limits {
        Limits { packet: 1 << 12, depth: 8, ..Limits::default() }
    }

    fn open(&mut self, _: RegionId, _: PeerId, _: Segments) -> Key {
        Key(1)
    }

    fn close(&mut self, _: RegionId) {}

    fn room(&self) -> usize {
        8
    }

    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { number, .. } => {
                self.took(number);
                Sent::Done
            }
            Departure::Order(Order::Packet { to, number, .. }) => {
                self.took(number);
                self.orders.push((to, number));
                Sent::Posted
            }
            _ => Sent::Retry,
        }
    }

    fn poll(&mut self, _: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if !std::mem::replace(&mut self.is_up, true) {
            report(Event::Up { peer: PEER, remote: self.at as u8 });
        }
        for (to, number) in self.orders.drain(..) {
            report(Event::Sent { to, number, packet: None });
        }
        true
    }
}

/// A guard of loom's mutex that can be released for a while.
struct Guard<'a> {
    lock: &'a Mutex<Core>,
    held: Option<MutexGuard<'a, Core>>,
}

impl<'a> Guard<'a> {
    fn of(lock: &'a Mutex<Core>) -> Guard<'a> {
        Guard { lock, held: Some(lock.lock().unwrap()) }
    }
}

impl Release for Guard<'_> {
    fn is_shared(&self) -> bool {
        true
    }

    fn let_go(&mut self) {
        self.held = None;
    }

    fn take_again(&mut self) {
        self.held.get_or_insert_with(|| self.lock.lock().unwrap());
    }
}

impl Deref for Guard<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.held.as_ref().expect("it is only used while it is held")
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        self.held.as_mut().expect("it is only used while it is held")
    }
}

/// Builds a node whose links are open and whose peer has told its credit.
fn core(rails: usize, log: &Log) -> Core {
    let mut engine = Engine::new(Config::default()).unwrap();
    let mut drivers: Vec<Box<dyn Driver>> = Vec::new();
    for at in 0..rails {
        let rail = Rail { at, log: log.clone(), is_up: false, orders: Vec::new() };
        let id = engine.setup().add_rail(rail.limits());
        engine.setup().add_link(PEER, id);
        drivers.push(Box::new(rail));
    }
    engine.send(PEER, Context(0), Tag(0), Segments::empty(), Hints::default());
    for _ in 0..4 {
        pump::turn(&mut pump::Exclusive(&mut engine, &mut drivers), NOW, &mut || NOW, true);
    }
    log.lock().unwrap().iter_mut().for_each(Vec::clear);
    Core::new(engine, drivers, |_| {})
}

/// Sends one message as a thread of the application that does not wait.
fn send(lock: &Mutex<Core>, tag: u64, caller: Caller) {
    let mut guard = Guard::of(lock);
    let (to, data) = ((PEER, Context(tag as u32), Tag(tag)), Segments::empty());
    let message = (&data, Hints::default());
    let sent = pump::send_at_once(&mut Held(&mut guard), &to, message, caller, &mut || NOW);
    if let Err(refused) = sent {
        guard.engine.send_as(to, data.clone(), Hints::default(), refused);
    }
    pump::feed(&mut Held(&mut guard), NOW, &mut || NOW, true);
}

/// Checks that everything submitted has left once, with the packet numbers of each link in order.
fn all_left(lock: &Mutex<Core>, log: &Log, submitted: usize) {
    let mut guard = Guard::of(lock);
    assert!(guard.rails.iter().all(Option::is_some), "each rail is in its place");
    assert!(!guard.engine.has_orders(NOW), "nothing was left to nobody");
    let packets: u64 =
        (0..guard.rails.len()).map(|rail| guard.engine.inspect().counters(RailId(rail as u8)).entries).sum();
    assert!(packets as usize > submitted, "the first message, and these");
    for numbers in log.lock().unwrap().iter() {
        assert!(numbers.windows(2).all(|pair| pair[0].wrapping_add(1) == pair[1]), "{numbers:?}");
    }
}

fn model(rails: usize, threads: [fn(&Mutex<Core>); 2], submitted: usize) {
    model_of(move |log| core(rails, log), threads, submitted);
}

fn model_of(
    make: impl Fn(&Log) -> Core + Send + Sync + 'static,
    threads: [fn(&Mutex<Core>); 2],
    submitted: usize,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let log = Log::default();
        let lock = Arc::new(Mutex::new(make(&log)));
        let run = |work: fn(&Mutex<Core>)| {
            let lock = lock.clone();
            thread::spawn(move || work(&lock))
        };
        let running = threads.map(run);
        running.into_iter().for_each(|thread| thread.join().unwrap());
        all_left(&lock, &log, submitted);
    });
}

#[test]
fn two_threads_that_wait_send_over_one_rail_and_over_two() {
    for rails in [1, 2] {
        model(rails, [|lock| send(lock, 1, Caller::Waits), |lock| send(lock, 2, Caller::Waits)], 2);
    }
}

#[test]
fn messages_submitted_while_another_thread_uses_the_rail_leave() {
    let [waits, goes_on] =
        [(|lock| send(lock, 1, Caller::Waits)) as fn(&Mutex<Core>), |lock| send(lock, 2, Caller::GoesOn)];
    model(1, [waits, goes_on], 2);
    model(1, [goes_on, goes_on], 2);
}

#[test]
fn messages_submitted_while_another_thread_polls_the_rails_leave() {
    let look = |lock: &Mutex<Core>| {
        let mut guard = Guard::of(lock);
        pump::turn(&mut Held(&mut guard), NOW, &mut || NOW, true);
    };
    model(1, [|lock| send(lock, 1, Caller::GoesOn), look], 1);
}

/// Builds such a node with a core that stands by, to which a hand-off takes a nanosecond.
fn with_a_core(log: &Log) -> Core {
    let mut core = core(2, log);
    let sample = |method, len: u64, ns| (method, Sample::of(len, &mut [ns]).unwrap());
    let samples = [(1, 20), (4096, 41_000)].map(|(len, ns)| sample(Method::Copy, len, ns));
    let samples = samples.into_iter().chain([sample(Method::HandOff(Pair::Unknown), 0, 1)]);
    let profile = std::sync::Arc::new(Profile::new(Provenance::default(), samples).unwrap());
    for rail in 0..2 {
        core.engine.setup().set_profile(RailId(rail), None, profile.clone());
    }
    core
}

/// Sends a message over each rail, with the cores that stand by.
fn send_two(lock: &Mutex<Core>) {
    let mut guard = Guard::of(lock);
    for rail in 0..2 {
        let hints = Hints { rail: Some(RailId(rail)), ..Hints::default() };
        guard.engine.send(PEER, Context(0), Tag(1), Segments::empty(), hints);
    }
    pump::feed(&mut Held(&mut guard), NOW, &mut || NOW, true);
}

/// Cores of the thread that stands by and of the thread that waits.
const OTHER: usize = 1;
const WAITS: usize = 2;

/// Posts handed-off tasks, then puts back the rails that are still out of place.
fn stand_by(lock: &Mutex<Core>) {
    let standby = Guard::of(lock).standby.clone();
    let standing = standby.enter(OTHER);
    for _ in 0..2 {
        thread::yield_now();
        standing.run_one();
    }
    drop(standing);
    thread::yield_now();
    let mut guard = Guard::of(lock);
    guard.reclaim_all();
    pump::feed(&mut Held(&mut guard), NOW, &mut || NOW, true);
}

#[test]
fn a_handed_off_task_leaves_once_and_its_rail_comes_back() {
    model_of(with_a_core, [send_two, stand_by], 2);
}

#[test]
fn a_message_for_a_missing_rail_leaves_when_the_rail_is_put_back() {
    let both = |lock: &Mutex<Core>| {
        send_two(lock);
        thread::yield_now();
        send_two(lock);
    };
    model_of(with_a_core, [both, stand_by], 4);
}

/// Acts as a thread of the application that finds a rail missing while it waits ([`crate::Node::wait`]).
fn wait(lock: &Mutex<Core>) {
    let standby = Guard::of(lock).standby.clone();
    // Another thread stands by but comes too late.
    let _late = standby.enter(OTHER);
    for _ in 0..2 {
        thread::yield_now();
        standby.help(WAITS);
        let mut guard = Guard::of(lock);
        pump::turn(&mut Held(&mut guard), NOW, &mut || NOW, true);
    }
    thread::yield_now();
    Guard::of(lock).reclaim_all();
}

#[test]
fn a_thread_that_waits_posts_tasks_that_no_core_has_begun() {
    model_of(with_a_core, [send_two, wait], 2);
}

/// Threads stop using shared memory before the call that shares it returns.
#[test]
fn shared_work_is_done_once_and_before_its_caller_goes_on() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let standby = std::sync::Arc::new(Standby::new(std::sync::Arc::default()));
        let done = std::sync::Arc::new([const { AtomicU32::new(0) }; 3]);
        let is_over = std::sync::Arc::new(AtomicBool::new(false));
        let (other, units, over) = (standby.clone(), done.clone(), is_over.clone());
        let caller = thread::spawn(move || {
            let work = |range: std::ops::Range<u64>| {
                thread::yield_now();
                assert!(!over.load(Ordering::SeqCst), "the memory would be gone");
                for unit in range {
                    units[unit as usize].fetch_add(1, Ordering::SeqCst);
                }
            };
            thread::yield_now();
            share(&other, (3, 1, 1), &work, |_| thread::yield_now());
            over.store(true, Ordering::SeqCst);
        });
        let helper = thread::spawn(move || {
            let standing = standby.enter(OTHER);
            for _ in 0..2 {
                thread::yield_now();
                standing.run_one();
            }
        });
        caller.join().unwrap();
        helper.join().unwrap();
        assert!(done.iter().all(|unit| unit.load(Ordering::SeqCst) == 1), "{done:?}");
    });
}
