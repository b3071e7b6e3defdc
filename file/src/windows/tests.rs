use super::*;
use crate::disk::Disk;
use crate::disk::Opening;
use crate::memory::lent;
use proptest::prelude::*;

const RECORD: u64 = 1000;

/// A file of this length.
fn file(len: u64) -> (tempfile::TempDir, Disk) {
    let folder = tempfile::tempdir().expect("a folder");
    let opening = Opening { reads: true, writes: true, creates: true, ..Opening::default() };
    let disk = Disk::open(&folder.path().join("file"), opening).expect("a file");
    disk.set_size(len).expect("its length");
    disk.set_mapped(true);
    (folder, disk)
}

/// Every second record from `first` on.
fn records(first: u64, count: u64) -> Pieces {
    (0..count).map(|n| Piece { offset: (first + 2 * n) * RECORD, len: RECORD }).collect()
}

fn copied(disk: &Disk, kind: Kind, pieces: &Pieces, bytes: &mut [u8]) -> Option<u64> {
    disk.copy(kind, (pieces, &lent(bytes)))
}

#[test]
fn many_short_pieces_are_copied_and_a_few_are_not() {
    let (_folder, disk) = file(1000 * RECORD);
    if !disk.system().is_mapped() {
        return;
    }
    let (few, many) = (records(0, MANY - 1), records(0, MANY));
    let mut bytes = vec![7; many.len() as usize];
    assert_eq!(copied(&disk, Kind::Write, &few, &mut bytes[..few.len() as usize]), None);
    assert_eq!(copied(&disk, Kind::Write, &many, &mut bytes), Some(many.len()));
    let mut read = vec![0; 2 * RECORD as usize];
    disk.read(&Pieces::from_iter([Piece { offset: 0, len: 2 * RECORD }]), &lent(&mut read), 0)
        .expect("bytes");
    assert!(
        read[..RECORD as usize] == [7; RECORD as usize] && read[RECORD as usize..] == [0; RECORD as usize]
    );
    // A window that is mapped serves any short piece.
    let one = records(5, 1);
    assert_eq!(copied(&disk, Kind::Write, &one, &mut [9; RECORD as usize]), Some(RECORD));
    disk.set_mapped(false);
    assert_eq!(copied(&disk, Kind::Write, &one, &mut [9; RECORD as usize]), None);
}

#[test]
fn long_pieces_are_copied_when_the_program_comes_back() {
    let (_folder, disk) = file(WINDOW);
    if !disk.system().is_mapped() {
        return;
    }
    let mut bytes = vec![1; 4096];
    let pass = |bytes: &mut [u8]| {
        let all = (0..WINDOW / 4096).map(|n| Pieces::from_iter([Piece { offset: n * 4096, len: 4096 }]));
        all.filter(|piece| copied(&disk, Kind::Write, piece, bytes).is_some()).count() as u64
    };
    let counts = [pass(&mut bytes), pass(&mut bytes)];
    assert_eq!(counts, [0, WINDOW / 4096 - AGAIN + 1]);
    let long = Pieces::from_iter([Piece { offset: 0, len: LONG + 1 }]);
    assert_eq!(copied(&disk, Kind::Read, &long, &mut [0; LONG as usize + 1]), None);
}

#[test]
fn pieces_behind_the_end_go_by_system_calls_unless_there_are_many() {
    let (_folder, disk) = file(0);
    if !disk.system().is_mapped() {
        return;
    }
    let some = records(0, LENGTHENS - 1);
    assert_eq!(copied(&disk, Kind::Write, &some, &mut vec![1; some.len() as usize]), None);
    let read = records(0, 2 * LENGTHENS);
    assert_eq!(copied(&disk, Kind::Read, &read, &mut vec![1; read.len() as usize]), None);
    assert_eq!(disk.size(), Ok(0));
    let many = records(1, LENGTHENS);
    assert_eq!(copied(&disk, Kind::Write, &many, &mut vec![1; many.len() as usize]), Some(many.len()));
    assert_eq!(disk.size(), Ok(2 * LENGTHENS * RECORD));
}

#[test]
fn a_file_that_another_program_has_shortened_is_read_to_its_end() {
    let (_folder, disk) = file(100 * RECORD);
    if !disk.system().is_mapped() {
        return;
    }
    let all = records(0, 50);
    let mut bytes = vec![3; all.len() as usize];
    assert_eq!(copied(&disk, Kind::Write, &all, &mut bytes), Some(all.len()));
    disk.set_size(RECORD).expect("its length");
    assert_eq!(copied(&disk, Kind::Read, &all, &mut bytes), None, "the file is not there");
    let read = disk.read(&all, &lent(&mut bytes), 0);
    assert_eq!(read, Ok(RECORD));
    // No more copies, since the program would meet it again.
    disk.set_size(100 * RECORD).expect("its length");
    assert_eq!(copied(&disk, Kind::Read, &all, &mut bytes), None);
}

#[test]
fn windows_that_are_not_used_make_place_for_others() {
    let (_folder, disk) = file((COUNT as u64 + 8) * WINDOW);
    if !disk.system().is_mapped() {
        return;
    }
    for number in (0..COUNT as u64 + 8).chain(0..4) {
        let pieces: Pieces =
            (0..MANY).map(|n| Piece { offset: number * WINDOW + n * 200, len: 100 }).collect();
        let mut bytes = vec![number as u8; pieces.len() as usize];
        assert_eq!(copied(&disk, Kind::Write, &pieces, &mut bytes), Some(pieces.len()), "window {number}");
    }
    assert_eq!(disk.windows().expect("it may map").list().mapped.len(), COUNT);
}

#[derive(Debug, Clone)]
struct Access {
    writes: bool,
    first: u64,
    count: u64,
    len: u64,
    fill: u8,
}

fn access() -> impl Strategy<Value = Access> {
    let len = prop_oneof![1_u64..300, 2000_u64..5000];
    (any::<bool>(), 0..2 * WINDOW, 1_u64..80, len, any::<u8>())
        .prop_map(|(writes, first, count, len, fill)| Access { writes, first, count, len, fill })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Copies and system calls in turn see the same file, whose length is that of the last byte written.
    #[test]
    fn copies_and_system_calls_see_the_same_bytes(all in prop::collection::vec(access(), 1..40)) {
        let (_folder, disk) = file(WINDOW);
        let mut seen = vec![0_u8; WINDOW as usize];
        for Access { writes, first, count, len, fill } in all {
            let pieces: Pieces = (0..count).map(|n| Piece { offset: first + n * (len + 7), len }).collect();
            let mut bytes = vec![fill; pieces.len() as usize];
            if writes {
                if copied(&disk, Kind::Write, &pieces, &mut bytes).is_none() {
                    disk.write(&pieces, &lent(&mut bytes)).expect("it is written");
                }
                let (_, end) = pieces.hull().expect("there are bytes");
                seen.resize(seen.len().max(end as usize), 0);
                for piece in pieces.list() {
                    seen[piece.offset as usize..piece.end() as usize].fill(fill);
                }
            } else {
                let done = match copied(&disk, Kind::Read, &pieces, &mut bytes) {
                    Some(done) => done,
                    None => disk.read(&pieces, &lent(&mut bytes), plan::GAP).expect("it is read"),
                };
                prop_assert_eq!(done, pieces.inside(seen.len() as u64));
                let mut from = 0;
                for piece in pieces.list() {
                    let there = piece.end().min(seen.len() as u64).saturating_sub(piece.offset);
                    if there == 0 {
                        break;
                    }
                    let now = &bytes[from..from + there as usize];
                    prop_assert!(now == &seen[piece.offset as usize..(piece.offset + there) as usize]);
                    from += piece.len as usize;
                    if there < piece.len {
                        break;
                    }
                }
            }
            prop_assert_eq!(disk.size(), Ok(seen.len() as u64));
        }
    }
}
