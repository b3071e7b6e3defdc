//! Memory of windows.

use crate::point::{WORLD, rank, size};
use nmad_mpi::{Class, Info, Win, api};
use std::ffi::c_void;

/// Three huge pages of most systems, and a bit.
const LEN: i64 = (6 << 20) + 1000;

/// What the system says of transparent huge pages: the word in brackets of a setting.
fn setting(name: &str) -> String {
    let text = std::fs::read_to_string(format!("/sys/kernel/mm/transparent_hugepage/{name}"));
    let text = text.unwrap_or_default();
    text.split(['[', ']']).nth(1).unwrap_or("never").into()
}

/// Whether memory of the kind gets huge pages if it asks, and their length.
fn offered(name: &str) -> Option<usize> {
    let page = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").ok()?;
    let page: usize = page.trim().parse().ok()?;
    let own = setting(&format!("hugepages-{}kB/{name}", page >> 10));
    let word = if matches!(&own[..], "inherit" | "never") { setting(name) } else { own };
    (!matches!(&word[..], "never" | "deny")).then_some(page)
}

/// The flags of the mapping that has an address, as the system shows them.
fn flags(at: *const c_void) -> String {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("what this process has mapped");
    let mut is_ours = false;
    for line in maps.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16).ok();
        if let Some((begin, end)) = range.and_then(|(begin, end)| Some((number(begin)?, number(end)?))) {
            is_ours = (begin..end).contains(&at.addr());
        } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_ours) {
            return flags.into();
        }
    }
    panic!("nothing is mapped at {at:?}");
}

fn says_huge(win: Win) -> bool {
    let mut info = api::win_get_info(win).unwrap();
    let value = api::info_get_string(info, "nmad_huge_pages").unwrap();
    api::info_free(&mut info).unwrap();
    value.expect("windows of allocated memory tell").parse().unwrap()
}

/// Long windows ask for huge pages and begin on one where the system gives them, short ones never; and each
/// tells which it is.
pub fn huge_pages() {
    // A rank alone has memory of its own.
    let page = offered(if size() == 1 { "enabled" } else { "shmem_enabled" });
    for (len, is_long) in [(LEN, true), (1000, false)] {
        let allocated = api::win_allocate(len, 1, Info::NULL, WORLD).unwrap();
        let shared = api::win_allocate_shared(len, 1, Info::NULL, WORLD).unwrap();
        for (at, mut win) in [allocated, shared] {
            assert_eq!(says_huge(win), is_long && page.is_some(), "{len} B, {page:?}");
            if let Some(page) = page.filter(|_| is_long) {
                assert!(flags(at).contains(" hg"), "rank {} of {}: {}", rank(), size(), flags(at));
                // Ranks of a shared window are one behind the other.
                let (_, _, first) = api::win_shared_query(win, 0).unwrap();
                assert!(first.addr().is_multiple_of(page), "{first:?}");
            } else if is_long {
                assert!(!flags(at).contains(" hg"), "nobody gives them: {}", flags(at));
            }
            api::win_free(&mut win).unwrap();
        }
    }
}

/// An info object that asks for an alignment, and for segments that do not follow each other.
fn aligned(unit: &str) -> Info {
    let info = api::info_create();
    api::info_set(info, "mpi_minimum_memory_alignment", unit).unwrap();
    api::info_set(info, "alloc_shared_noncontig", "true").unwrap();
    info
}

/// Memory begins where the program wants it, also if only one rank does; what is no alignment is refused.
pub fn alignments() {
    for (len, unit) in [(100, 1 << 4), (5000, 1 << 13), (100_000, 1 << 16), (1000, 1 << 20), (LEN, 4 << 20)] {
        let text = unit.to_string();
        let mut info = aligned(&text);
        let mut own = if rank() == 0 { info } else { aligned("1") };
        let allocated = api::win_allocate(len, 1, info, WORLD).unwrap();
        let shared = api::win_allocate_shared(len, 1, own, WORLD).unwrap();
        for (at, mut win) in [allocated, shared] {
            assert!(at.addr().is_multiple_of(unit), "rank {}: {at:?}, asked for {unit}", rank());
            for other in 0..size() {
                let (_, _, there) = api::win_shared_query(win, other).unwrap();
                assert!(there.addr().is_multiple_of(unit), "of rank {other} in {}: {there:?}", rank());
            }
            api::win_free(&mut win).unwrap();
        }
        let memory = api::alloc_mem(len, info).unwrap();
        assert!(memory.addr().is_multiple_of(unit), "{memory:?}");
        api::free_mem(memory).unwrap();
        if rank() > 0 {
            api::info_free(&mut own).unwrap();
        }
        api::info_free(&mut info).unwrap();
    }
    let wrong = aligned("24");
    assert_eq!(api::alloc_mem(8, wrong).unwrap_err().class(), Class::INFO_VALUE);
    assert_eq!(api::win_allocate(8, 1, wrong, WORLD).unwrap_err().class(), Class::INFO_VALUE);
}

/// Communicators and windows say in what kinds of memory buffers may lie, whatever they were given.
pub fn kinds_of_memory() {
    let info = api::info_create();
    api::info_set(info, "mpi_memory_alloc_kinds", "cuda:device").unwrap();
    let (_, mut win) = api::win_allocate(8, 1, info, WORLD).unwrap();
    for told in [api::win_get_info(win), api::comm_get_info(WORLD), api::info_create_env()] {
        let kinds = api::info_get_string(told.unwrap(), "mpi_memory_alloc_kinds").unwrap();
        assert_eq!(kinds.as_deref(), Some("mpi,system"));
    }
    api::win_free(&mut win).unwrap();
}
