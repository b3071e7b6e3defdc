//! Description of the hardware: the key of a profile.
//!
//! A profile applies to every rail of the same kind: same driver, same kind of interface with the same
//! speed and limit, same kernel and processor, and a peer on the same host or on another one. Names and
//! addresses do not matter, so two equal rails share a profile, and so do equal hosts.

use super::interface;
use nmad_engine::profile::hash::fnv1a;
use std::fmt;

/// Distance of the peers of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// Processes of one host.
    SameHost,
    /// Hosts joined by a network.
    OtherHost,
}

impl Distance {
    /// Both distances.
    pub const ALL: [Distance; 2] = [Distance::SameHost, Distance::OtherHost];

    /// Returns the words for the user.
    pub const fn name(self) -> &'static str {
        match self {
            Distance::SameHost => "same host",
            Distance::OtherHost => "other host",
        }
    }
}

/// The key of a profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Driver, interface, speed, limit.
    pub rail: String,
    /// Distance of the peer.
    pub distance: Distance,
    /// Kernel and processor.
    pub host: String,
}

impl Key {
    /// Returns the part that is valid on other hosts too, by which a shipped profile is chosen.
    pub(super) fn portable(&self) -> String {
        format!("{}, {}", self.rail, self.distance.name())
    }

    /// Returns a name for a file.
    pub(super) fn short(&self) -> String {
        let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let mut words: String = self.portable().chars().map(word).collect();
        while words.contains("--") {
            words = words.replace("--", "-");
        }
        words.truncate(60);
        format!("{}-{:016x}", words.trim_matches('-'), fnv1a(self.to_string().as_bytes()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {}", self.portable(), self.host)
    }
}

/// Describes a rail with this name, for example `tcp/eth1`; `throttle` is the rate in bytes per second to
/// which software limits it; `encrypts`: its links are encrypted, so that measured times include the cipher.
pub fn rail(name: &str, throttle: Option<u64>, encrypts: bool) -> String {
    let (driver, interface) = name.split_once('/').unwrap_or((name, ""));
    let mut words = vec![driver.to_string()];
    if !interface.is_empty() {
        words.extend(describe(interface));
    }
    words.extend(encrypts.then(|| "encrypted".into()));
    words.extend(throttle.map(|rate| format!("throttled to {} Mbit/s", rate as f64 * 8.0 / 1e6)));
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// Returns the bytes per second to which the system or software limits a rail of this description. What its
/// interface claims is no limit: virtual ones claim any speed.
pub(super) fn limit(words: &str) -> Option<u64> {
    let rates = ["limited to ", "throttled to "].iter().filter_map(|begin| {
        let rate = words.split_once(begin)?.1.split_once(" Mbit/s")?.0;
        rate.parse::<f64>().ok().filter(|rate| *rate > 0.0)
    });
    rates.reduce(f64::min).map(|rate| (rate * 1e6 / 8.0) as u64)
}

fn describe(name: &str) -> Vec<String> {
    let Some(link) = interface::link(name) else { return vec!["unknown interface".into()] };
    let path = |file: &str| format!("/sys/class/net/{name}/{file}");
    let read = |file: &str| std::fs::read_to_string(path(file)).map(|text| text.trim().to_string());
    // If /sys belongs to another network namespace, its interfaces are not ours.
    let is_ours = read("ifindex").is_ok_and(|index| index == link.index.to_string());
    let driver = std::fs::read_link(path("device/driver")).ok().filter(|_| is_ours);
    let driver = driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let speed = read("speed").ok().filter(|_| is_ours).and_then(|text| text.parse::<i64>().ok());
    let speed = speed.filter(|&mbit| mbit > 0).map(|mbit| format!("{mbit} Mbit/s"));
    let kind = if link.kind.is_empty() { driver.unwrap_or_else(|| "hardware".into()) } else { link.kind };
    // Bulk data is much slower if the kernel may not pass several frames at once.
    let frames = link.frames.map(|count| format!("{count} frames at once")).unwrap_or_default();
    [kind, speed.unwrap_or_default(), format!("mtu {}", link.mtu), frames, link.limit].into()
}

/// Describes kernel, processor and build; code without optimisation is measured separately.
pub fn host() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = ["model name", "cpu model", "CPU part"].iter().find_map(|name| {
        let line = model.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    let model = model.unwrap_or_else(|| std::env::consts::ARCH.into());
    let build = if cfg!(debug_assertions) { ", debug build" } else { "" };
    format!("Linux {}, {model}{build}", release.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rails_of_different_rates_have_different_keys() {
        let key = |throttle| Key {
            rail: rail("tcp/lo", throttle, false),
            distance: Distance::SameHost,
            host: host(),
        };
        let (free, slow, slower) = (key(None), key(Some(500_000_000)), key(Some(350_000_000)));
        assert!(free.rail.starts_with("tcp loopback mtu "), "{}", free.rail);
        assert!(slow.rail.ends_with("throttled to 4000 Mbit/s"), "{}", slow.rail);
        assert_eq!((limit(&slow.rail), limit(&free.rail)), (Some(500_000_000), None));
        assert_eq!(limit("tcp veth 10000 Mbit/s mtu 1500 limited to 2800 Mbit/s"), Some(350_000_000));
        assert!(slow.short() != slower.short() && free.short() != slow.short());
        assert!(rail("tcp/lo", None, true).ends_with(" encrypted"));
        let far = Key { distance: Distance::OtherHost, ..free.clone() };
        assert_ne!(far.short(), free.short());
    }

    #[test]
    fn short_names_fit_into_file_names() {
        let rail = "tcp virtual/10000 Mbit/s é ".repeat(20);
        let key = Key { rail, distance: Distance::OtherHost, host: String::new() };
        let short = key.short();
        assert!(short.len() < 80 && short.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{short}");
    }

    #[test]
    fn a_rail_without_an_interface_is_its_driver() {
        assert_eq!(rail("shm", None, false), "shm");
        assert!(host().starts_with("Linux "), "{}", host());
    }
}
