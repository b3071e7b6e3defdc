//! Tests of the cache with real memory, which is unmapped and mapped again.

use super::*;
use rustix::mm::{self, MapFlags, MremapFlags, ProtFlags};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

const LEN: usize = 64 << 10;

fn map(at: *mut c_void, flags: MapFlags) -> *mut c_void {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, or one over memory of the test that is not in use.
    unsafe { mm::mmap_anonymous(at, LEN, access, flags) }.expect("the system gives memory")
}

/// Maps memory into a gap; false: another thread has got the addresses meanwhile.
fn fill_gap(at: *mut c_void) -> bool {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE);
    // SAFETY: it replaces nothing.
    unsafe { mm::mmap_anonymous(at, LEN, access, flags) }.is_ok()
}

/// Writes to each page, as registering does.
fn make(memory: Segment) -> Result<Range<usize>, String> {
    for page in (0..memory.len).step_by(PAGE) {
        // SAFETY: inside of a mapping of the test.
        unsafe { memory.start.add(page).write_volatile(1) };
    }
    let start = memory.start.addr();
    Ok(start..start + memory.len)
}

/// A cache, and the number of registrations that it has made.
struct World {
    cache: Cache<Range<usize>>,
    made: usize,
    _alone: MutexGuard<'static, ()>,
}

/// Serializes the tests: while one unmaps memory, the caches of all others are outdated.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl World {
    /// Creates the cache; none: the kernel reports no unmapping to this process.
    fn new() -> Option<World> {
        if let Err(why) = unmapped::notice() {
            eprintln!("skipped: {why}");
            return None;
        }
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Some(World { cache: Cache::new(true), made: 0, _alone })
    }

    /// Returns whether this memory had to be registered again.
    fn is_new(&mut self, start: *mut c_void, len: usize, purpose: Purpose) -> bool {
        let before = self.made;
        // The thread that receives the reports may not have logged this one yet.
        while !self.cache.catch_up() {
            std::thread::yield_now();
        }
        let segment = Segment { start: start.cast(), len };
        let made = &mut self.made;
        let count = |memory| {
            *made += 1;
            make(memory)
        };
        let got = self.cache.register(segment, purpose, count).expect("it is registered");
        assert!(got.region.start <= start.addr() && start.addr() + len <= got.region.end);
        self.made > before
    }
}

#[test]
fn memory_that_is_used_again_is_registered_once() {
    let Some(mut world) = World::new() else { return };
    let memory = map(ptr::null_mut(), MapFlags::PRIVATE);
    assert!(world.is_new(memory, LEN, Purpose::Source));
    assert!(!world.is_new(memory, LEN, Purpose::Source));
    assert!(!world.is_new(memory.wrapping_byte_add(5000), 20_000, Purpose::Source), "a part of it");
    assert!(world.is_new(memory, LEN, Purpose::Target), "reading gives no right to write");
    assert!(!world.is_new(memory, LEN, Purpose::Source), "what is received into can be sent");
    assert_eq!((world.cache.kept.len(), world.cache.bytes), (1, LEN), "one registration serves both");
}

#[test]
fn memory_that_is_sent_and_received_into_in_turn_takes_no_more_room_than_it_has() {
    let Some(mut world) = World::new() else { return };
    world.cache.most_bytes = LEN + LEN / 2;
    let memory = map(ptr::null_mut(), MapFlags::PRIVATE);
    for purpose in [Purpose::Source, Purpose::Target] {
        world.is_new(memory, LEN, purpose);
    }
    for _ in 0..3 {
        for purpose in [Purpose::Source, Purpose::Target] {
            assert!(!world.is_new(memory, LEN, purpose), "the other purpose has not displaced it");
        }
    }
}

#[test]
fn pieces_of_a_buffer_with_other_borders_become_one_registration() {
    let Some(mut world) = World::new() else { return };
    let memory = map(ptr::null_mut(), MapFlags::PRIVATE);
    for at in [0, LEN / 2] {
        assert!(world.is_new(memory.wrapping_byte_add(at), LEN / 2, Purpose::Source));
    }
    assert!(world.is_new(memory.wrapping_byte_add(LEN / 4), LEN / 2, Purpose::Source));
    assert!(!world.is_new(memory, LEN, Purpose::Source), "the third has made one of all");
    assert_eq!((world.cache.kept.len(), world.cache.bytes), (1, LEN));
}

#[test]
fn memory_that_was_unmapped_is_registered_anew_whatever_is_mapped_there() {
    let Some(mut world) = World::new() else { return };
    let mut memory = map(ptr::null_mut(), MapFlags::PRIVATE);
    let lose: [fn(*mut c_void) -> bool; 4] = [
        |at| {
            // SAFETY: the mapping is the test's, and is not in use.
            unsafe { mm::munmap(at, LEN) }.expect("it is unmapped");
            fill_gap(at)
        },
        |at| map(at, MapFlags::PRIVATE | MapFlags::FIXED) == at,
        |at| {
            // SAFETY: the mapping is the test's, and is not in use.
            unsafe { mm::madvise(at, LEN, mm::Advice::LinuxDontNeed) }.is_ok()
        },
        |at| {
            let away = map(ptr::null_mut(), MapFlags::PRIVATE);
            // SAFETY: the mapping is the test's, and is not in use.
            unsafe { mm::mremap_fixed(at, LEN, LEN, MremapFlags::MAYMOVE, away) }.expect("it moves");
            fill_gap(at)
        },
    ];
    for (way, lose) in lose.iter().enumerate() {
        world.is_new(memory, LEN, Purpose::Source);
        assert!(!world.is_new(memory, LEN, Purpose::Source), "way {way}: it is kept");
        if lose(memory) {
            assert!(world.is_new(memory, LEN, Purpose::Source), "way {way}: it is other memory");
        } else {
            memory = map(ptr::null_mut(), MapFlags::PRIVATE);
        }
    }
    // Unmapping one page of it is enough.
    world.is_new(memory, LEN, Purpose::Source);
    let page = memory.wrapping_byte_add(LEN / 2);
    // SAFETY: the mapping is the test's, and is not in use.
    unsafe { mm::madvise(page, PAGE, mm::Advice::LinuxDontNeed) }.expect("a page is freed");
    assert!(world.is_new(memory, LEN, Purpose::Source));
}

#[test]
fn memory_of_which_a_part_was_registered_moves_as_a_whole() {
    let Some(mut world) = World::new() else { return };
    let (memory, away) = (map(ptr::null_mut(), MapFlags::PRIVATE), map(ptr::null_mut(), MapFlags::PRIVATE));
    world.is_new(memory.wrapping_byte_add(LEN / 4), LEN / 4, Purpose::Source);
    // SAFETY: the mappings are the test's, and are not in use.
    let moved = unsafe { mm::mremap_fixed(memory, LEN, LEN, MremapFlags::MAYMOVE, away) };
    assert_eq!(moved, Ok(away), "it is one mapping as before");
    assert!(world.is_new(away.wrapping_byte_add(LEN / 4), LEN / 4, Purpose::Source));
}

#[test]
fn shared_memory_is_registered_for_each_chunk() {
    let Some(mut world) = World::new() else { return };
    let memory = map(ptr::null_mut(), MapFlags::SHARED);
    assert!(world.is_new(memory, LEN, Purpose::Source));
    assert!(world.is_new(memory, LEN, Purpose::Source));
}

#[test]
fn the_oldest_registration_ends_when_bytes_or_entries_are_too_many() {
    let Some(mut world) = World::new() else { return };
    world.cache.most_bytes = 3 * LEN;
    let memory: Vec<*mut c_void> = (0..4).map(|_| map(ptr::null_mut(), MapFlags::PRIVATE)).collect();
    memory.iter().for_each(|&memory| assert!(world.is_new(memory, LEN, Purpose::Source)));
    assert!(world.cache.bytes <= 3 * LEN);
    assert!(!world.is_new(memory[3], LEN, Purpose::Source));
    assert!(world.is_new(memory[0], LEN, Purpose::Source));
    world.cache.most_bytes = LEN / 2;
    assert!(world.is_new(memory[1], LEN, Purpose::Source), "too long to be kept");
    assert!(world.is_new(memory[1], LEN, Purpose::Source));
    world.cache.most_bytes = usize::MAX / 2;
    for page in 0..LEN / PAGE {
        for purpose in [Purpose::Source, Purpose::Target, Purpose::Messages] {
            for memory in &memory {
                world.is_new(memory.wrapping_byte_add(page * PAGE), PAGE, purpose);
            }
        }
    }
    assert!(world.cache.kept.len() <= MOST);
}

#[test]
fn registrations_that_nobody_uses_end_when_the_system_refuses() {
    let Some(mut world) = World::new() else { return };
    let (first, second) = (map(ptr::null_mut(), MapFlags::PRIVATE), map(ptr::null_mut(), MapFlags::PRIVATE));
    world.is_new(first, LEN, Purpose::Source);
    let room = std::cell::Cell::new(2);
    let refusing = |memory: Segment| {
        room.set(room.get() - 1);
        if room.get() >= 0 { Err("the limit".into()) } else { make(memory) }
    };
    let segment = Segment { start: second.cast(), len: LEN };
    world.cache.register(segment, Purpose::Source, refusing).expect("there is room after that");
    assert!(world.is_new(first, LEN, Purpose::Source), "it has made room");
    assert!(world.cache.most_bytes <= LEN, "less is kept from now on");
}
