//! What the machine is, and whether something else runs on it now.

use serde::{Deserialize, Serialize};
use std::fs;
use std::time::Duration;

/// What a report says about the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// The processor, as `/proc/cpuinfo` calls it.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// This one.
    pub(crate) fn here() -> Machine {
        let uname = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Machine {
            host: text(uname.nodename()),
            processor: processor(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: text(uname.release()),
        }
    }
}

fn processor(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    line.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, name)| name.trim().to_string())
}

/// Above this many cores in use by others, figures are marked.
pub(crate) const BUSY: f64 = 0.15;
const WATCHED: Duration = Duration::from_millis(200);

/// How many cores others use, by programs or by neighbours of a virtual machine, over a fifth of a second
/// in which this process does nothing. Zero where the kernel does not tell.
pub(crate) fn load() -> f64 {
    let read = || fs::read_to_string("/proc/stat").ok().and_then(|text| Ticks::read(&text));
    let Some(before) = read() else { return 0.0 };
    std::thread::sleep(WATCHED);
    read().map_or(0.0, |after| after.busy_cores_since(&before))
}

/// Time of all cores together since the machine was started.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    busy: u64,
    all: u64,
    cores: f64,
}

impl Ticks {
    fn read(stat: &str) -> Option<Ticks> {
        let line = stat.lines().find(|line| line.starts_with("cpu "))?;
        // user nice system idle iowait irq softirq steal; guests are within user.
        let ticks: Vec<u64> = line.split_whitespace().skip(1).take(8).map_while(|n| n.parse().ok()).collect();
        let all = ticks.iter().sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        let cores = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
        (ticks.len() == 8).then_some(Ticks { busy: all - idle, all, cores: cores as f64 })
    }

    fn busy_cores_since(&self, before: &Ticks) -> f64 {
        let all = self.all.saturating_sub(before.all);
        let busy = self.busy.saturating_sub(before.busy);
        if all == 0 { 0.0 } else { busy as f64 / all as f64 * self.cores }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_cores_are_counted_with_those_that_a_neighbour_took() {
        let stat = |user, idle, steal| {
            format!("cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 1 1 1\ncpu1 1 1 1\nintr 5\n")
        };
        let before = Ticks::read(&stat(100, 1000, 7)).unwrap();
        let after = Ticks::read(&stat(110, 1020, 17)).unwrap();
        assert!((after.busy_cores_since(&before) - 1.0).abs() < 1e-9);
        assert_eq!(before.busy_cores_since(&before), 0.0);
        assert!(Ticks::read("cpu  1 2 3\n").is_none() && Ticks::read("").is_none());
    }

    #[test]
    fn this_machine_has_a_processor_and_a_load() {
        let here = Machine::here();
        assert!(here.cores > 0 && !here.processor.is_empty() && !here.kernel.is_empty(), "{here:?}");
        assert_eq!(processor("vendor_id\t: X\nmodel name\t: Y 9 \n"), "Y 9");
        let load = load();
        assert!((0.0..=4096.0).contains(&load), "{load}");
    }
}
