//! Tests of binding on hosts that are described by files.

use std::path::Path;

use super::*;

/// A host with two packages of two cores of two hardware threads: processors p and p + 4 are one core.
fn host(allowed: &[usize]) -> Topology {
    let root = tempfile::tempdir().expect("a folder");
    for number in 0..8 {
        let core = number % 4;
        let package = if core < 2 { "0-1,4-5" } else { "2-3,6-7" };
        let file = |name: &str, text: &str| write(root.path(), &format!("cpu/cpu{number}/{name}"), text);
        file("topology/thread_siblings_list", &format!("{core},{}", core + 4));
        file("topology/package_cpus_list", package);
        file("cache/index3/shared_cpu_list", package);
    }
    write(root.path(), "node/node0/cpulist", "0-1,4-5");
    write(root.path(), "node/node1/cpulist", "2-3,6-7");
    write(root.path(), "node/possible", "0-1");
    Topology::read(root.path(), allowed)
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    std::fs::write(path, format!("{text}\n")).expect("a file");
}

fn all() -> Topology {
    host(&[0, 1, 2, 3, 4, 5, 6, 7])
}

fn planned(binding: Binding, count: u32, host: &Topology) -> Vec<String> {
    let told = |own: &Option<Processors>| own.as_ref().map_or("any".into(), |own| ranges(own));
    plan(&binding, count, host, usize::MAX).iter().map(told).collect()
}

fn to(level: Level) -> Binding {
    Binding { to: Target::Part(level), ..Binding::default() }
}

#[test]
fn ranks_run_unbound_where_the_system_refuses_to_bind() {
    let core = Binding { to: Target::Part(Level::Core), ..Binding::default() };
    for (wanted, told) in [(Binding::default(), false), (Binding::NONE, false), (core, true)] {
        assert_eq!(as_answered(wanted, Ok(())), (wanted, None));
        let (binding, line) = as_answered(wanted, Err(Errno::PERM));
        assert_eq!((binding, line.is_some()), (Binding::NONE, told), "{wanted:?}");
        assert!(line.is_none_or(|line| line.contains("not bound") && line.contains("not permitted")));
    }
    assert_eq!(permitted(core).0, core);
}

#[test]
fn each_level_has_its_parts() {
    for (level, expected) in [
        (Level::HwThread, ["0", "4", "1"]),
        (Level::Core, ["0,4", "1,5", "2,6"]),
        (Level::L3, ["0-1,4-5", "2-3,6-7", "0-1,4-5"]),
        (Level::Numa, ["0-1,4-5", "2-3,6-7", "0-1,4-5"]),
        (Level::Socket, ["0-1,4-5", "2-3,6-7", "0-1,4-5"]),
    ] {
        assert_eq!(planned(to(level), 3, &all()), expected, "{level:?}");
    }
}

#[test]
fn by_default_cores_are_shared_out_and_more_ranks_than_cores_are_not_bound() {
    let default = Binding::default();
    assert_eq!(planned(default, 1, &all()), ["any"]);
    assert_eq!(planned(default, 2, &all()), ["0-1,4-5", "2-3,6-7"]);
    assert_eq!(planned(default, 3, &all()), ["0,4", "1,5", "2,6"]);
    assert_eq!(planned(default, 4, &all()), ["0,4", "1,5", "2,6", "3,7"]);
    assert_eq!(planned(default, 5, &all()), ["any"; 5]);
    assert_eq!(plan(&default, 4, &all(), 3), vec![None; 4], "the control group allows three at a time");
    assert_eq!(planned(Binding::NONE, 2, &all()), ["any", "any"]);
}

#[test]
fn processors_outside_the_mask_are_not_assigned() {
    let few = host(&[1, 2, 6]);
    assert_eq!(planned(to(Level::Core), 3, &few), ["1", "2,6", "1"]);
    assert_eq!(planned(Binding::default(), 2, &few), ["1", "2,6"]);
    assert_eq!(planned(Binding::default(), 3, &few), ["any"; 3]);
    assert_eq!(planned(to(Level::Socket), 2, &few), ["1", "2,6"]);
}

#[test]
fn ranks_may_be_spread_and_wide() {
    let spread = Binding { spread: Some(Level::Socket), ..to(Level::Core) };
    assert_eq!(planned(spread, 4, &all()), ["0,4", "2,6", "1,5", "3,7"]);
    let wide = Binding { width: 2, ..to(Level::Core) };
    assert_eq!(planned(wide, 3, &all()), ["0-1,4-5", "2-3,6-7", "0-1,4-5"]);
    let wider = Binding { width: 9, ..to(Level::Core) };
    assert_eq!(planned(wider, 1, &all()), ["0-7"]);
}

#[test]
fn a_host_without_description_has_single_cores() {
    let bare = Topology::read(Path::new("/no/such/folder"), &[0, 1]);
    assert_eq!(planned(to(Level::Core), 2, &bare), ["0", "1"]);
    assert_eq!(planned(to(Level::Numa), 2, &bare), ["0-1", "0-1"]);
}

#[test]
fn bindings_are_told() {
    let told = report(3, "host1", Some(&vec![0, 1, 4, 5]), &all());
    assert_eq!(told, "rank 3 on host1 is bound to 2 cores: processors 0-1,4-5");
    let told = report(0, "host0", None, &all());
    assert_eq!(told, "rank 0 on host0 is not bound: it may run on processors 0-7");
}

#[test]
fn processors_beyond_what_the_system_can_name_are_refused() {
    assert!(mask(&[0, CpuSet::MAX_CPU]).is_none());
    assert!(mask(&[0, 3]).is_some_and(|set| set.is_set(3) && !set.is_set(1)));
}
