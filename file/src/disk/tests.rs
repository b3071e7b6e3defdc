use super::*;
use crate::fault::Cause;
use crate::memory::lent;
use proptest::prelude::*;

const BOTH: Opening = Opening { reads: true, writes: true, creates: true, is_exclusive: false, mode: None };

fn pieces(list: &[(u64, u64)]) -> Pieces {
    list.iter().map(|&(offset, len)| Piece { offset, len }).collect()
}

/// Different bytes.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8 + 1).collect()
}

#[test]
fn every_refusal_has_its_cause_and_names_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let long = folder.path().join("n".repeat(300));
    let reads = Opening { reads: true, ..Opening::default() };
    for (path, opening, cause) in [
        (&missing, reads, Cause::NoSuchFile),
        (&folder.path().to_path_buf(), reads, Cause::BadFile),
        (&folder.path().to_path_buf(), BOTH, Cause::BadFile),
        (&long, BOTH, Cause::BadFile),
    ] {
        let fault = Disk::open(path, opening).unwrap_err();
        assert!(fault.cause == cause && fault.text.contains(&*path.to_string_lossy()), "{fault:?}");
    }
    let there = folder.path().join("there");
    drop(Disk::open(&there, BOTH).unwrap());
    let again = Disk::open(&there, Opening { is_exclusive: true, ..BOTH }).unwrap_err();
    assert_eq!(again.cause, Cause::Exists);
    assert_eq!(Disk::open(&there.join("below"), reads).unwrap_err().cause, Cause::BadFile);
    Disk::delete(&there).unwrap();
    assert_eq!(Disk::delete(&there).unwrap_err().cause, Cause::NoSuchFile);
    assert_eq!(Disk::delete(folder.path()).unwrap_err().cause, Cause::BadFile);
    let full = Disk::open(Path::new("/dev/full"), Opening { writes: true, ..Opening::default() }).unwrap();
    let fault = full.write(&pieces(&[(0, 3)]), &lent(&mut bytes(3))).unwrap_err();
    assert_eq!(fault.cause, Cause::NoSpace);
}

#[test]
fn sizes_are_set_and_space_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::open(&folder.path().join("file"), BOTH).unwrap();
    assert_eq!(disk.size(), Ok(0));
    disk.set_size(100).unwrap();
    disk.preallocate(0).unwrap();
    disk.preallocate(50).unwrap();
    assert_eq!(disk.size(), Ok(100), "space for less than there is");
    disk.preallocate(5000).unwrap();
    assert_eq!(disk.size(), Ok(5000));
    disk.sync().unwrap();
    disk.forget();
    assert!(disk.system().block >= 4096 && disk.system().is_coherent(false));
}

#[test]
fn more_pieces_than_a_call_takes_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::open(&folder.path().join("file"), BOTH).unwrap();
    let all: Pieces = (0..5000).map(|n| Piece { offset: 3 * n, len: 2 }).collect();
    let mut data = bytes(10_000);
    disk.write(&all, &lent(&mut data)).unwrap();
    for gap in [0, 1, 4096] {
        let mut read = vec![0; 10_000];
        assert_eq!(disk.read(&all, &lent(&mut read), gap), Ok(10_000));
        assert!(read == data, "with gaps of {gap} B");
    }
    // Memory in more slices than a call takes.
    let mut wide = vec![0_u8; 9000];
    let memory = lent(&mut wide);
    let parts: Vec<Segments> = (0..3000).map(|n| memory.slice(3 * n, 2)).collect();
    let scattered = crate::joined(&parts);
    assert_eq!(disk.read(&pieces(&[(0, 6000)]), &scattered, 0), Ok(6000));
    let mut gathered = Vec::new();
    scattered.append_to(&mut gathered);
    let mut plain = vec![0; 6000];
    disk.read(&pieces(&[(0, 6000)]), &lent(&mut plain), 0).unwrap();
    assert!(gathered == plain);
}

proptest! {
    #[test]
    fn reads_find_what_was_written_until_the_file_ends(
        runs in prop::collection::vec((0_u64..50, 1_u64..60), 1..30),
        size in 0_u64..2000,
        gap in 0_u64..60,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(&folder.path().join("file"), BOTH).unwrap();
        let whole = bytes(size as usize);
        disk.write(&pieces(&[(0, size)]), &lent(&mut whole.clone())).unwrap();
        let (mut at, mut all, mut expected) = (0, Pieces::default(), Vec::new());
        for (before, len) in runs {
            all.push(Piece { offset: at + before, len });
            at += before + len;
        }
        for piece in all.list() {
            let range = piece.offset.min(size) as usize..piece.end().min(size) as usize;
            expected.extend_from_slice(&whole[range]);
        }
        let mut read = vec![0; all.len() as usize];
        prop_assert_eq!(disk.read(&all, &lent(&mut read), gap), Ok(expected.len() as u64));
        prop_assert_eq!(&read[..expected.len()], &expected[..]);
    }
}

#[test]
fn pieces_in_any_order_are_written_and_read_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::open(&folder.path().join("there"), BOTH).unwrap();
    let places = pieces(&[(100, 10), (140, 10), (0, 20), (50, 10), (30, 5)]);
    let (mut data, mut back) = (bytes(55), vec![0; 55]);
    disk.write(&places, &lent(&mut data)).unwrap();
    assert_eq!(disk.read(&places, &lent(&mut back), 30).unwrap(), 55);
    assert_eq!(back, data);
}

/// Where the file system has no direct I/O, nothing goes past the cache, and the same bytes are there.
#[test]
fn whole_blocks_go_past_the_cache_and_others_through_it() {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let disk = Disk::open(file.path(), BOTH).unwrap();
    disk.set_uncached(true, true);
    // Room for blocks of up to 64 KiB that begin at one.
    let memory = bytes(5 << 16);
    let start = memory.as_ptr().align_offset(1 << 16);
    let data = &memory[start..start + (4 << 16)];
    for (offset, part) in
        [(0, data), (4 << 16, &data[..1 << 16]), (100, &data[1..4000]), (5 << 16, &data[..77])]
    {
        disk.write_one(offset, part).unwrap();
    }
    let mut read = vec![0; 8 << 16];
    assert_eq!(disk.read_one(0, &mut read).unwrap(), (5 << 16) + 77);
    let mut expected = [data, &data[..1 << 16], &data[..77]].concat();
    expected[100..4099].copy_from_slice(&data[1..4000]);
    assert!(read[..expected.len()] == expected && std::fs::read(file.path()).unwrap() == expected);
    let uses = |offset, part: &[u8]| disk.uncached.descriptor(Kind::Write, offset, part).is_some();
    assert_eq!(uses(0, data), disk.is_uncached(Kind::Write));
    assert!(!uses(1, data) && !uses(0, &data[1..]) && !uses(0, &data[..77]));
    disk.set_uncached(true, false);
    assert!(!disk.is_uncached(Kind::Write));
}
