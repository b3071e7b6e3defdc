//! What an operation costs beside others that are pending or exist: instructions of one, counted by callgrind
//! with few and with many others. Work in proportion costs the same.
//!
//!     cargo run --release -p nmad-mpi --example proportion
//!
//! Exit code 1 if an operation costs more than [`MOST`] times as much beside many, 3 if valgrind is missing
//! or a run fails.
#![allow(unsafe_code)] // names that callgrind finds

mod callgrind;

use nmad_mpi::{Comm, Info, Request, Type, Win, api};
use std::process::ExitCode;

/// Numbers of others.
const SIZES: [usize; 2] = [300, 2_400];
/// A cost that grows with the number of others would be close to eight times as much. Tables that grow, and
/// turns of the pump that find more, cost up to 1.4 times as much in builds of both profiles.
const MOST: f64 = 2.0;
const INT: Type = Type::INT;
const BYTE: Type = Type::BYTE;

/// An operation by its name on the command line. It is done as often as there are others.
type Case = (&'static str, fn(usize));

const CASES: [Case; 11] = [
    ("receives matched in reverse", |count| measured_in_reverse(&mut numbers(count))),
    ("receives that are given away", |count| measured_given_away(&mut numbers(count))),
    ("pairs that are waited for in reverse", |count| measured_pairs(&mut numbers(count))),
    ("collectives that do not block", |count| measured_collectives(&mut numbers(count))),
    ("partitioned messages that are freed", |count| measured_partitioned(&mut numbers(count))),
    ("buffered sends", measured_buffered),
    ("communicators", measured_communicators),
    ("communicators that are freed beside receives", beside_receives),
    ("long messages that are received later", measured_later),
    ("windows", |count| measured_windows(&mut numbers(count))),
    ("messages beside windows", beside_windows),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, name, count] = arguments.as_slice()
        && let (Some((_, run)), Ok(count)) = (CASES.iter().find(|(case, _)| case == name), count.parse())
    {
        api::init().expect("a job of one process");
        run(count);
        api::finalize().expect("nobody else is there");
        return ExitCode::SUCCESS;
    }
    let mut exceeded = false;
    for (name, _) in CASES {
        let counted = SIZES.map(|size| {
            callgrind::instructions(&[name, &size.to_string()], ("NMAD_FT", "off"))
                .map(|all| all as f64 / size as f64)
        });
        let [Some(few), Some(many)] = counted else {
            eprintln!("{name}: valgrind is missing or did not run: install it to count instructions");
            return ExitCode::from(3);
        };
        exceeded |= many > MOST * few;
        println!("{name}: {few:.0} instructions beside {}, {many:.0} beside {}", SIZES[0], SIZES[1]);
    }
    ExitCode::from(u8::from(exceeded))
}

fn numbers(count: usize) -> Vec<i32> {
    vec![0; count]
}

fn tags(count: usize) -> std::ops::Range<i32> {
    0..count as i32
}

fn send(tag: i32) {
    api::send((&raw const tag).cast(), 1, INT, 0, tag, Comm::SELF).expect("it is sent");
}

fn post(into: &mut i32, tag: i32) -> Request {
    api::irecv((&raw mut *into).cast(), 1, INT, 0, tag, Comm::SELF).expect("it is posted")
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_in_reverse(into: &mut [i32]) {
    let mut requests: Vec<Request> = into.iter_mut().zip(0..).map(|(place, tag)| post(place, tag)).collect();
    tags(requests.len()).rev().for_each(send);
    requests.iter_mut().rev().for_each(|request| api::wait(request, None).expect("it is here"));
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_given_away(into: &mut [i32]) {
    for (place, tag) in into.iter_mut().zip(0..) {
        api::request_free(&mut post(place, tag)).expect("it is a request");
    }
    tags(into.len()).for_each(send);
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_pairs(into: &mut [i32]) {
    let last = into.len() as i32 - 1;
    let pair = |(place, tag): (&mut i32, i32)| {
        let (out, into) = ((&raw const tag).cast(), (&raw mut *place).cast());
        api::isendrecv(out, 1, INT, 0, tag, into, 1, INT, 0, last - tag, Comm::SELF).expect("it begins")
    };
    let mut requests: Vec<Request> = into.iter_mut().zip(0..).map(pair).collect();
    requests.iter_mut().rev().for_each(|request| api::wait(request, None).expect("it is here"));
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_collectives(data: &mut [i32]) {
    let begin =
        |place: &mut i32| api::ibcast((&raw mut *place).cast(), 1, INT, 0, Comm::WORLD).expect("it begins");
    let mut requests: Vec<Request> = data.iter_mut().map(begin).collect();
    api::waitall(&mut requests, None).expect("all end");
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_partitioned(data: &mut [i32]) {
    for place in data.iter_mut().map(|place| (&raw mut *place).cast()) {
        let mut receive =
            api::precv_init(place, 1, 1, INT, 0, 7, Comm::SELF, Info::NULL).expect("it is right");
        api::request_free(&mut receive).expect("it is a request");
    }
    for place in data.iter().map(|place| (&raw const *place).cast()) {
        let mut send = api::psend_init(place, 1, 1, INT, 0, 7, Comm::SELF, Info::NULL).expect("it is right");
        api::request_free(&mut send).expect("it is a request");
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_buffered(count: usize) {
    let mut memory = vec![0u8; count * 256];
    api::buffer_attach(memory.as_mut_ptr().cast(), memory.len() as i64).expect("there is none");
    for tag in tags(count) {
        api::bsend((&raw const tag).cast(), 1, INT, 0, tag, Comm::SELF).expect("there is room");
    }
    let mut into = 0;
    for tag in tags(count).rev() {
        api::recv((&raw mut into).cast(), 1, INT, 0, tag, Comm::SELF, None).expect("it is here");
    }
    api::buffer_detach().expect("there is one");
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_communicators(count: usize) {
    let made: Vec<Comm> = (0..count).map(|_| api::comm_dup(Comm::WORLD).expect("there is room")).collect();
    let mut value = 1;
    for &comm in &made {
        api::bcast((&raw mut value).cast(), 1, INT, 0, comm).expect("nobody else is there");
    }
    made.into_iter().for_each(|mut comm| api::comm_free(&mut comm).expect("it is a communicator"));
}

fn beside_receives(count: usize) {
    let made: Vec<Comm> = (0..count).map(|_| api::comm_dup(Comm::WORLD).expect("there is room")).collect();
    let mut into = numbers(count);
    let mut requests: Vec<Request> = into.iter_mut().zip(0..).map(|(place, tag)| post(place, tag)).collect();
    measured_free(made);
    tags(count).for_each(send);
    api::waitall(&mut requests, None).expect("all end");
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_free(made: Vec<Comm>) {
    made.into_iter().for_each(|mut comm| api::comm_free(&mut comm).expect("it is a communicator"));
}

/// Longer than a packet, so that all but a few wait for their receiver.
const LONG: usize = 1 << 17;

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_later(count: usize) {
    let (out, mut into) = (vec![0u8; LONG], vec![0u8; LONG]);
    let mut all: Vec<Request> = tags(count)
        .map(|tag| api::isend(out.as_ptr().cast(), LONG as i64, BYTE, 0, tag, Comm::SELF).expect("it begins"))
        .collect();
    let mut receive = |tag| {
        api::irecv(into.as_mut_ptr().cast(), LONG as i64, BYTE, 0, tag, Comm::SELF).expect("it is posted")
    };
    all.extend(tags(count).map(&mut receive));
    api::waitall(&mut all, None).expect("all end");
}

fn made(memory: &mut [i32]) -> Vec<Win> {
    let make = |place: &mut i32| {
        api::win_create((&raw mut *place).cast(), 4, 4, Info::NULL, Comm::SELF).expect("there is room")
    };
    memory.iter_mut().map(make).collect()
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_windows(memory: &mut [i32]) {
    let windows = made(memory);
    let value = 7;
    for &win in &windows {
        api::win_lock_all(0, win).expect("no epoch is open");
        api::put((&raw const value).cast(), 1, INT, 0, 0, 1, INT, win).expect("it is in the window");
        api::win_unlock_all(win).expect("it is locked");
    }
    windows.into_iter().for_each(|mut win| api::win_free(&mut win).expect("no epoch is open"));
}

fn beside_windows(count: usize) {
    let mut memory = numbers(count);
    let windows = made(&mut memory);
    measured_beside(count);
    windows.into_iter().for_each(|mut win| api::win_free(&mut win).expect("no epoch is open"));
}

/// With a message for which no receive was posted, which could be for a window.
#[unsafe(no_mangle)]
#[inline(never)]
fn measured_beside(count: usize) {
    let mut into = 0;
    send(99);
    for _ in 0..count {
        let mut request = post(&mut into, 1);
        send(1);
        api::wait(&mut request, None).expect("it is here");
    }
    api::recv((&raw mut into).cast(), 1, INT, 0, 99, Comm::SELF, None).expect("it is here");
}
