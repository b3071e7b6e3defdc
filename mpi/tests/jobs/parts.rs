//! Nonblocking collectives with parts of different lengths, short enough for shared memory or not.

use crate::point::{INT, WORLD, into, out, rank, size};
use nmad_mpi::constant::IN_PLACE;
use nmad_mpi::{Class, Request, Result, api};

/// Operations in all.
const OPERATIONS: i32 = 600;

/// Numbers that rank `from` has for rank `to`: few for a while, then many now and then.
fn count(index: i32, from: i32, to: i32) -> usize {
    let mixed = (index * 31 + from * 17 + to * 7) as usize;
    match index / 40 % 3 {
        0 => mixed % 20,
        1 if mixed.is_multiple_of(9) => 700 + mixed % 9000,
        1 => mixed % 40,
        _ => 600 + mixed % 500,
    }
}

fn part(index: i32, from: i32, to: i32) -> Vec<i32> {
    (0..count(index, from, to) as i32).map(|k| index * 1000 + from * 100 + to * 10 + k).collect()
}

/// Parts one behind the other, with a gap before each; and their counts and displacements.
struct Row {
    data: Vec<i32>,
    counts: Vec<i64>,
    displacements: Vec<i64>,
}

impl Row {
    fn new(parts: impl Iterator<Item = Vec<i32>>) -> Row {
        let mut row = Row { data: Vec::new(), counts: Vec::new(), displacements: Vec::new() };
        for part in parts {
            row.data.push(-1);
            row.displacements.push(row.data.len() as i64);
            row.counts.push(part.len() as i64);
            row.data.extend(part);
        }
        row
    }

    fn empty(&self) -> Vec<i32> {
        vec![-1; self.data.len()]
    }
}

/// A request, and the memory of its operation.
struct Open {
    request: Request,
    _sent: Vec<i32>,
    received: Vec<i32>,
    expected: Vec<i32>,
}

fn begin(index: i32) -> Open {
    let (me, n, root) = (rank(), size(), index / 3 % size());
    match index % 3 {
        0 => {
            let mut own = part(index, me, root);
            let row = Row::new((0..n).map(|from| part(index, from, root)));
            let mut received = row.empty();
            let mut sent = out(&own);
            if me == root && index % 2 == 0 {
                let begin = row.displacements[me as usize] as usize;
                received[begin..begin + own.len()].copy_from_slice(&own);
                (own, sent) = (vec![i32::MAX; own.len()], IN_PLACE);
            }
            let len = own.len() as i64;
            let (counts, places) = (&row.counts, &row.displacements);
            let request =
                api::igatherv(sent, len, INT, into(&mut received), counts, places, INT, root, WORLD).unwrap();
            let expected = if me == root { row.data.clone() } else { row.empty() };
            Open { request, _sent: own, received, expected }
        }
        1 => {
            let row = Row::new((0..n).map(|to| part(index, root, to)));
            let expected = part(index, root, me);
            let (mut received, len) = (vec![-1; expected.len()], expected.len() as i64);
            let place = into(&mut received);
            let (counts, places) = (&row.counts, &row.displacements);
            let request =
                api::iscatterv(out(&row.data), counts, places, INT, place, len, INT, root, WORLD).unwrap();
            Open { request, _sent: row.data, received, expected }
        }
        _ => {
            let sent = Row::new((0..n).map(|to| part(index, me, to)));
            let row = Row::new((0..n).map(|from| part(index, from, me)));
            let mut received = row.empty();
            let place = into(&mut received);
            let (from, to) = ((&sent.counts, &sent.displacements), (&row.counts, &row.displacements));
            let request =
                api::ialltoallv(out(&sent.data), from.0, from.1, INT, place, to.0, to.1, INT, WORLD).unwrap();
            Open { request, _sent: sent.data, received, expected: row.data }
        }
    }
}

/// Several at once, which end in another order on each rank; blocking ones and messages in between.
pub fn in_any_order() {
    let (me, n) = (rank(), size());
    (0..8).for_each(|_| api::barrier(WORLD).unwrap());
    let mut index = 0;
    while index < OPERATIONS {
        // Now and then more than a rank may be ahead.
        let many = if index % 7 == 6 { 150 } else { 1 + index % 6 };
        let mut all: Vec<Open> = (index..index + many).map(begin).collect();
        index += many;
        if index % 2 == 0 {
            let right = (me + 1) % n;
            let mut told = [0];
            let mut awaited = api::irecv(into(&mut told), 1, INT, (me + n - 1) % n, 0, WORLD).unwrap();
            api::send(out(&[index]), 1, INT, right, 0, WORLD).unwrap();
            api::wait(&mut awaited, None).unwrap();
            api::barrier(WORLD).unwrap();
            assert_eq!(told, [index]);
        }
        if (index + me) % 2 == 0 {
            all.reverse();
        }
        let start = me as usize % all.len();
        all.rotate_left(start);
        for one in &mut all {
            api::wait(&mut one.request, None).unwrap();
            assert!(one.received == one.expected, "before operation {index}");
        }
    }
}

/// A part that is longer than its receiver expects is an error of its request, and of no other.
pub fn truncated() {
    let (me, n) = (rank(), size());
    let places: Vec<i64> = (0..i64::from(n)).collect();
    let (ones, own) = (vec![1; n as usize], [me; 2]);
    let longer = |is_wrong: bool| 1 + i64::from(is_wrong);
    let judge = |request: Result<Request>, is_wrong: bool| {
        let answer = api::wait(&mut request.unwrap(), None).map_err(|error| error.class());
        assert_eq!(answer, if is_wrong { Err(Class::TRUNCATE) } else { Ok(()) });
    };
    for _ in 0..20 {
        let mut all = vec![-1; n as usize];
        let (count, place) = (longer(me == n - 1), into(&mut all));
        judge(api::igatherv(out(&own), count, INT, place, &ones, &places, INT, 0, WORLD), me == 0);
        let (count, data) = (i64::from(me < n - 1), vec![7; n as usize]);
        let scattered = api::iscatterv(out(&data), &ones, &places, INT, place, count, INT, 0, WORLD);
        judge(scattered, me == n - 1);
        // The last rank sends more to the first one.
        let counts: Vec<i64> = (0..n).map(|to| longer(me == n - 1 && to == 0)).collect();
        let data = vec![me; n as usize + 1];
        let from = (out(&data), &counts, &places);
        judge(api::ialltoallv(from.0, from.1, from.2, INT, place, &ones, &places, INT, WORLD), me == 0);
        api::barrier(WORLD).unwrap();
    }
}
