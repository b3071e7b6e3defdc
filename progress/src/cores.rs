//! Finds idle cores, and measures for how long the application's threads waited for a core.
//!
//! Three sources tell: the masks of the ranks of this node (cores of the job), `/proc/stat` (load of each
//! core), and `/proc/self/task` (cores on which threads of this process run, and for how long they were
//! ready without a core). Where the system hides one of these (containers, other systems) no core counts as
//! idle. Reading them takes some 20 us and 5 us more for each thread, so they are read ten times a second
//! at most.

use crate::setting::own_cores;
use nmad_engine::Duration;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Instant;

/// Share of its time for which an idle core must be idle. A thread that waits for messages polls for up to
/// 500 us before it sleeps ([`crate::core_sharing`]): with messages every few milliseconds its core is idle
/// for less than half of the time, and still counts. At half of the value the noise of a few system
/// services decides, since the system counts in steps of 10 ms.
const IDLE: f64 = 0.15;
/// Most threads whose delays are read; the first ones of a larger process are enough.
const THREADS_MAX: usize = 64;

/// The cores that a process may use.
pub(crate) struct Cores {
    /// Mask of the process when this was made. The helper narrows its own later.
    mask: Option<CpuSet>,
    /// Mask that the helper has last asked for.
    wanted: Option<CpuSet>,
    loads: Vec<Load>,
    read_at: Instant,
}

/// Time of one core since the system started, in units of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    core: usize,
    idle: u64,
    all: u64,
}

/// The application's threads at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Threads {
    /// Cores on which a thread runs, or waits to run.
    pub(crate) on: Vec<usize>,
    /// Total time for which threads were ready to run and had no core.
    pub(crate) delayed: Duration,
}

impl Cores {
    /// Makes the cores of this process, measured from now on.
    pub(crate) fn new() -> Cores {
        let mask = sched_getaffinity(None).ok();
        Cores { mask, wanted: mask, loads: read_loads(), read_at: Instant::now() }
    }

    /// Adds cores that the helper may use besides those of the process.
    pub(crate) fn add(&mut self, more: &[usize]) {
        if let Some(mask) = &mut self.mask {
            more.iter().filter(|&&core| core < CpuSet::MAX_CPU).for_each(|&core| mask.set(core));
        }
    }

    /// Returns the cores that the process may use now, since the system may have taken some away or given
    /// some back. The calling thread is the helper's; it may run on all of them after this.
    ///
    /// A shrunk cpuset removes cores from whatever mask is asked for, and they may come back. A user who
    /// moves all threads (`taskset -a`) forbids no core, so the only sign is that the helper is not on the
    /// mask that it asked for; from then on it stays where it was moved.
    pub(crate) fn allowed(&mut self) -> Vec<usize> {
        let Some(mask) = self.mask else { return Vec::new() };
        let (found, wanted) = (sched_getaffinity(None).ok(), self.wanted);
        // The system drops cores that the process lost. If none is left, its choice stands.
        let _ = sched_setaffinity(None, &mask);
        if found != wanted && sched_getaffinity(None).ok() == Some(mask) {
            self.mask = found;
            found.map(|found| sched_setaffinity(None, &found));
        }
        self.wanted = sched_getaffinity(None).ok();
        own_cores()
    }

    /// Moves the helper, whose thread calls, to these cores; returns whether it worked.
    pub(crate) fn go_to(&mut self, cores: &[usize]) -> bool {
        let goes = go_to(cores);
        self.wanted = sched_getaffinity(None).ok();
        goes
    }

    /// Returns the cores of `allowed` that were idle since the last call, without those in `taken`. `ran`
    /// lists threads of the helper with their cores and running times, which count as idle time.
    pub(crate) fn idle(
        &mut self,
        allowed: &[usize],
        taken: &[usize],
        ran: &[(usize, Duration)],
    ) -> Vec<usize> {
        let (loads, now) = (read_loads(), Instant::now());
        let span = now.duration_since(self.read_at).as_nanos().max(1) as f64;
        let own: Vec<(usize, f64)> =
            ran.iter().map(|&(core, time)| (core, time.as_ns() as f64 / span)).collect();
        let found = idle(&self.loads, &loads, &own);
        (self.loads, self.read_at) = (loads, now);
        found.into_iter().filter(|core| allowed.contains(core) && !taken.contains(core)).collect()
    }
}

/// Returns the core on which the calling thread runs now.
pub(crate) fn here() -> usize {
    sched_getcpu()
}

/// Returns the processor time of the calling thread.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_ns(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Moves the calling thread to these cores; returns whether it worked.
pub fn go_to(cores: &[usize]) -> bool {
    let mut set = CpuSet::new();
    cores.iter().filter(|&&core| core < CpuSet::MAX_CPU).for_each(|&core| set.set(core));
    set.count() > 0 && sched_setaffinity(None, &set).is_ok()
}

/// Returns the cores whose idle share is at least [`IDLE`], with the shares of our own threads added.
fn idle(before: &[Load], after: &[Load], own: &[(usize, f64)]) -> Vec<usize> {
    let is_idle = |now: &&Load| {
        let Some(then) = before.iter().find(|load| load.core == now.core) else { return false };
        let all = now.all.saturating_sub(then.all);
        let idle = now.idle.saturating_sub(then.idle) as f64 / all.max(1) as f64;
        let own: f64 = own.iter().filter(|(core, _)| *core == now.core).map(|(_, share)| share).sum();
        all > 0 && idle + own >= IDLE
    };
    after.iter().filter(is_idle).map(|load| load.core).collect()
}

fn read_loads() -> Vec<Load> {
    loads(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// Parses the lines `cpuN user nice system idle iowait irq softirq steal ...` of `/proc/stat`
/// (proc_stat(5)).
fn loads(text: &str) -> Vec<Load> {
    let load = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let core = words.next().filter(|_| !line.starts_with("cpu "))?.parse().ok()?;
        // The time of guests is included in the first two.
        let times = words.take(8).map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
        Some(Load { core, idle: *times.get(3)? + times.get(4).unwrap_or(&0), all: times.iter().sum() })
    };
    text.lines().filter_map(load).collect()
}

/// Returns the threads of this process except those named `helper`.
pub(crate) fn threads(helper: &str) -> Threads {
    let mut found = Threads::default();
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for task in tasks.take(THREADS_MAX) {
        let read = |what: &str| fs::read_to_string(task.path().join(what)).unwrap_or_default();
        let Some((name, runs_on)) = stat(&read("stat")) else { continue };
        if name == helper {
            continue;
        }
        found.on.extend(runs_on);
        found.delayed = Duration::from_ns(found.delayed.as_ns() + delay(&read("schedstat")));
    }
    found
}

/// Parses the name of a thread, and its core if it runs or is ready to (proc_pid_stat(5), fields 2, 3 and
/// 39).
fn stat(text: &str) -> Option<(String, Option<usize>)> {
    // The name may contain anything.
    let (head, rest) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut words = rest.split_ascii_whitespace();
    let is_ready = words.next()? == "R";
    let core = words.nth(35)?.parse().ok()?;
    Some((name.into(), is_ready.then_some(core)))
}

/// Parses the nanoseconds for which a thread was ready and did not run: the second number of its
/// `schedstat`.
fn delay(text: &str) -> u64 {
    text.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  500 0 100 1300 100 0 0 0 0 0\n\
                        cpu0 300 0 50 600 50 0 0 0 0 0\n\
                        cpu12 200 0 50 700 50 0 0 0 7 0\n\
                        intr 1 2 3\n";

    #[test]
    fn each_core_has_its_load() {
        let expected = [Load { core: 0, idle: 650, all: 1000 }, Load { core: 12, idle: 750, all: 1000 }];
        assert_eq!(loads(STAT), expected);
        assert_eq!(loads(""), []);
        assert_eq!(loads("cpu0 1 2 x 4"), [], "what cannot be read is no core");
    }

    fn load(core: usize, idle: u64) -> Load {
        Load { core, idle, all: 100 }
    }

    #[test]
    fn a_core_that_the_helper_itself_keeps_busy_stays_idle() {
        let before = [Load { core: 0, idle: 0, all: 0 }, Load { core: 1, idle: 0, all: 0 }];
        let after = [load(0, 5), load(1, 90), load(2, 90)];
        assert_eq!(idle(&before, &after, &[(7, 0.9)]), [1], "nothing is known of core 2");
        assert_eq!(idle(&before, &after, &[(0, 0.04), (0, 0.06)]), [0, 1], "two of ours");
        assert_eq!(idle(&before, &before, &[]), [], "no time has passed");
        assert_eq!(idle(&[], &[], &[]), [], "the system tells nothing");
    }

    #[test]
    fn threads_are_told_apart_by_name_and_state() {
        let numbers = (4..53).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        let line = |name: &str, state: &str| format!("17 ({name}) {state} {numbers}");
        assert_eq!(stat(&line("a b) R", "R")), Some(("a b) R".into(), Some(39))));
        assert_eq!(stat(&line("main", "S")), Some(("main".into(), None)));
        assert_eq!(stat("17 (main"), None);
        assert_eq!((delay("900 77 3"), delay("")), (77, 0));
    }

    #[test]
    fn this_thread_runs_on_a_core_of_its_mask() {
        let mut cores = Cores::new();
        let allowed = cores.allowed();
        let found = threads("no such name");
        assert!(!found.on.is_empty() && found.on.iter().all(|core| allowed.contains(core)), "{found:?}");
        assert!(
            cores.go_to(&allowed[..1]) && cores.allowed() == allowed,
            "its own mask says nothing of the process"
        );
        assert!(!cores.go_to(&[]) && cores.allowed() == allowed);
    }

    /// Like `taskset -a`: the system would let the helper go back.
    #[test]
    fn a_helper_that_the_user_moved_stays_there() {
        let mut cores = Cores::new();
        let allowed = cores.allowed();
        assert!(go_to(&allowed[..1]));
        assert_eq!([cores.allowed(), cores.allowed()], [&allowed[..1]; 2]);
        assert!(go_to(&allowed), "and is moved back");
        assert_eq!(cores.allowed(), allowed);
    }

    /// Like a shrunk cpuset: the system removes cores that were asked for.
    #[test]
    fn cores_that_the_system_removed_may_come_back() {
        let mut cores = Cores::new();
        let allowed = cores.allowed();
        let nowhere = (0..CpuSet::MAX_CPU).rev().find(|core| !allowed.contains(core)).expect("not so many");
        cores.add(&[nowhere]);
        assert!(cores.allowed() == allowed && go_to(&allowed[..1]));
        assert_eq!(cores.allowed(), allowed, "the mask has a core more than the system grants");
    }
}
