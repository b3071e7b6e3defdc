//! The simulated start of a job: its ranks send the lines of the client that ships, and its table is the
//! committed one.

use nmad_launch::mapping;
use nmad_launch::pmi::client::Client;
use nmad_launch::pmi::server::{Event, Server};
use nmad_scale::fabric::FABRICS;
use nmad_scale::golden::FOLDER;
use nmad_scale::stage::Stage;
use nmad_scale::start::{JOB, Start, card, line_for, lines_before, row};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

/// A launcher with one rank; returns the lines that it got.
fn serve(stream: UnixStream) -> Vec<String> {
    let mut server = Server::new(JOB, &[1], "(vector,(0,1,1))");
    let mut lines = Vec::new();
    for line in BufReader::new(&stream).lines() {
        let line = line.expect("text");
        for event in server.handle(0, &line) {
            let Event::Reply(_, answer) = event else { panic!("{line}: {event:?}") };
            writeln!(&stream, "{answer}").expect("the rank listens");
        }
        lines.push(line);
    }
    lines
}

#[test]
fn ranks_send_what_the_client_that_ships_sends() {
    let stage = Stage::block(&FABRICS[0], 1);
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let launcher = thread::spawn(move || serve(theirs));
    let mut client = Client::connect(ours.into(), None, true).expect("a launcher");
    client.get_raw(mapping::KEY).expect("a map");
    client.program().expect("a program");
    client.put("card-0", &card(&stage, 0)).expect("room");
    client.fence().expect("it is alone");
    let mut told = Vec::new();
    client.get_each("card-", 1, &mut |value| told.push(value)).expect("values");
    assert_eq!(told, [Some(card(&stage, 0))]);
    drop(client);
    let mut simulated = lines_before(&stage, 0);
    simulated.push(line_for(0, 1));
    assert_eq!(launcher.join().expect("it has ended"), simulated);
}

#[test]
fn the_table_has_these_rows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FOLDER).join("start.txt");
    let text = std::fs::read_to_string(&path).expect("the table");
    let known: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for ranks in [64, 1024] {
        let row = row(ranks);
        assert!(known.iter().any(|line| *line == row), "no row {row:?}; if that is meant: --scale --bless");
    }
}

#[test]
fn each_part_of_a_start_follows_the_one_before() {
    let start = Start::of(Stage::block(&FABRICS[0], 256));
    assert!(start.told <= start.released && start.released < start.joined);
    assert!(start.summed.is_some_and(|summed| summed > start.joined), "{start:?}");
}
