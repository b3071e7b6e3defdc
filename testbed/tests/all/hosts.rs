//! Hosts are hosts, and rails carry data between them at their rate.

use crate::lab::{self, allowed, build, datagram, output, transfer, whereabouts};
use nmad_testbed::{Method, Rate, TestbedError};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// See [`lab::act`].
#[test]
fn actor() {
    lab::act();
}

#[test]
fn hosts_have_names_of_their_own() {
    if !allowed() {
        return;
    }
    let before = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let testbed = build(2, &["max"]);
    for host in testbed.hosts() {
        let (_, name) = output(&testbed, host.index(), &["cat", "/proc/sys/kernel/hostname"]);
        assert_eq!(name, host.name());
    }
    assert_eq!(std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), before);
}

#[test]
fn shared_memory_is_private_and_the_working_directory_is_kept() {
    if !allowed() {
        return;
    }
    let testbed = build(2, &["max"]);
    let file = format!("/dev/shm/testbed-{}", std::process::id());
    assert!(output(&testbed, 0, &["touch", &file]).0);
    assert!(output(&testbed, 0, &["ls", &file]).0, "host0 keeps its file");
    assert!(!output(&testbed, 1, &["ls", &file]).0, "host1 does not see it");
    assert!(!std::path::Path::new(&file).exists(), "nor does the machine");
    let (_, directory) = output(&testbed, 1, &["pwd"]);
    assert_eq!(directory, std::env::current_dir().unwrap().to_str().unwrap());
}

#[test]
fn hosts_are_known_to_the_programs_in_them() {
    if !allowed() {
        return;
    }
    let testbed = build(2, &["max"]);
    assert_eq!(whereabouts(&testbed, 0), "host0");
    assert_eq!(whereabouts(&testbed, 1), "host1");
    let inside: nmad_testbed::Inside = testbed.environment().parse().unwrap();
    assert_eq!(inside.here(), None, "the builder itself is in none");
    assert_eq!(inside.hosts[1].prefix, testbed.host(1).prefix());
}

#[test]
fn hosts_know_each_other_by_name() {
    if !allowed() {
        return;
    }
    let before = std::fs::read_to_string("/etc/hosts").ok();
    let testbed = build(2, &["max", "max"]);
    let (_, names) = output(&testbed, 0, &["cat", "/etc/hosts"]);
    assert!(names.contains("10.88.0.2 host1\n") && names.contains("10.88.1.2 host1-r1"), "{names}");
    assert_eq!(std::fs::read_to_string("/etc/hosts").ok(), before);
}

#[test]
fn two_hosts_talk_over_every_rail() {
    if !allowed() {
        return;
    }
    let testbed = build(2, &["max", "4gbit", "2.8gbit"]);
    for rail in 0..3 {
        assert_eq!(transfer(&testbed, 0, 1, rail, MIB), Ok(MIB));
        assert_eq!(transfer(&testbed, 1, 0, rail, MIB), Ok(MIB));
    }
}

#[test]
fn three_hosts_talk_over_a_bridge() {
    if !allowed() {
        return;
    }
    let testbed = build(3, &["max", "4gbit"]);
    for (from, to, rail) in [(0, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1)] {
        assert_eq!(transfer(&testbed, from, to, rail, MIB), Ok(MIB), "{from} to {to} over r{rail}");
    }
}

#[test]
fn frames_are_as_long_as_was_said_also_through_a_bridge() {
    if !allowed() {
        return;
    }
    for hosts in [2, 3] {
        let testbed = build(hosts, &["max", "max"]);
        let refused = datagram(&testbed, 0, 1, 0, 8000).expect_err("longer than 1500 B");
        assert!(refused.contains("too long"), "{refused}");
        testbed.set_mtu(0, 9000).unwrap();
        assert_eq!(datagram(&testbed, 0, 1, 0, 8000), Ok(8000), "{hosts} hosts");
        assert!(datagram(&testbed, 0, 1, 1, 8000).is_err(), "the other rail is as it was");
        let mtus = |host| -> Vec<u32> { testbed.host(host).rails().unwrap().iter().map(|r| r.mtu).collect() };
        assert_eq!((mtus(0), mtus(1)), (vec![9000, 1500], vec![9000, 1500]));
    }
}

#[test]
fn testbeds_do_not_disturb_each_other() {
    if !allowed() {
        return;
    }
    let one = build(2, &["max"]);
    let other = build(2, &["max"]);
    other.set_link(0, 0, false).unwrap();
    assert_eq!(transfer(&one, 0, 1, 0, MIB), Ok(MIB));
    drop(one);
    other.set_link(0, 0, true).unwrap();
    assert_eq!(transfer(&other, 0, 1, 0, MIB), Ok(MIB));
}

#[test]
fn a_rail_that_is_off_carries_nothing_and_comes_back() {
    if !allowed() {
        return;
    }
    let testbed = build(2, &["max", "max"]);
    let up = |host| -> Vec<bool> { testbed.host(host).rails().unwrap().iter().map(|rail| rail.up).collect() };
    testbed.set_link(0, 1, false).unwrap();
    assert_eq!((up(0), up(1)), (vec![true, false], vec![true, false]), "the other end loses its carrier");
    assert_eq!(transfer(&testbed, 0, 1, 1, MIB), Err("NetworkUnreachable".to_owned()));
    assert_eq!(transfer(&testbed, 0, 1, 0, MIB), Ok(MIB), "the other rail does not care");
    testbed.set_link(0, 1, true).unwrap();
    assert_eq!((up(0), up(1)), (vec![true, true], vec![true, true]));
    assert_eq!(transfer(&testbed, 0, 1, 1, MIB), Ok(MIB));
}

#[test]
fn rates_are_what_the_kernel_says_they_are() {
    if !allowed() {
        return;
    }
    let testbed = build(2, &["4gbit", "2.8gbit", "max"]);
    let rates = |host| -> Vec<String> {
        testbed.host(host).rails().unwrap().iter().map(|rail| rail.rate.to_string()).collect()
    };
    assert_eq!((rates(0), rates(1)), (rates(1), vec!["4gbit".into(), "2.8gbit".into(), "max".into()]));
    testbed.set_rate(0, Rate::Unlimited).unwrap();
    testbed.set_rate(1, "500mbit".parse().unwrap()).unwrap();
    // More bytes per second than 32 bits hold.
    testbed.set_rate(2, "100gbit".parse().unwrap()).unwrap();
    assert_eq!(rates(1), ["max", "500mbit", "100gbit"]);
}

/// Only the lower bound is asserted: a busy machine makes it slower, nothing makes it faster.
#[test]
fn a_shaped_rail_is_not_faster_than_its_rate() {
    if !allowed() {
        return;
    }
    let testbed = build(2, &["500mbit"]);
    let begin = Instant::now();
    assert_eq!(transfer(&testbed, 0, 1, 0, 16 * MIB), Ok(16 * MIB));
    let ideal = Duration::from_secs_f64((16 * MIB * 8) as f64 / 500e6);
    assert!(begin.elapsed() > ideal.mul_f64(0.9), "{:?} for what takes {ideal:?}", begin.elapsed());
}

#[test]
fn what_does_not_exist_is_named() {
    if !allowed() {
        return;
    }
    let testbed = build(2, &["max"]);
    let error = testbed.set_link(2, 0, true).unwrap_err();
    assert_eq!(error.to_string(), "there is no host host2 here: the hosts are host0 to host1");
    assert!(matches!(testbed.set_link(0, 1, true), Err(TestbedError::NoSuchRail { .. })));
    assert!(matches!(testbed.set_rate(1, Rate::Unlimited), Err(TestbedError::NoSuchRail { .. })));
    let error = testbed.run(1, Command::new("no-such-program")).unwrap_err();
    assert!(error.to_string().starts_with("host1: cannot run no-such-program"), "{error}");
}

/// The same tests once more as a user other than root. They are skipped where the machine forbids that.
#[test]
fn anybody_may_have_a_testbed() {
    if nmad_testbed::available() != Ok(Method::Privileged) {
        eprintln!("skipped: the other tests of this file already run without root, or not at all");
        return;
    }
    const NOBODY: u32 = 65534;
    let output = Command::new("/proc/self/exe")
        .args([
            "hosts_",
            "shared_",
            "_talk_",
            "_rail_",
            "rates_",
            "_does_not_exist_",
            "testbeds_",
            "--nocapture",
        ])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stdout));
            eprintln!("{text}");
        }
        Err(error) => eprintln!("skipped: cannot run this program as nobody: {error}"),
    }
}
