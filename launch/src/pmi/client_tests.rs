//! Tests of the rank's side of PMI-1 against scripted launchers.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use super::*;

const GREETING: [&str; 3] = [
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=256",
    "cmd=my_kvsname kvsname=kvs_0",
];

/// A launcher that answers each line with the next of `answers`, then closes; returns the received lines.
fn launcher(answers: Vec<String>) -> (OwnedFd, JoinHandle<Vec<String>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let thread = thread::spawn(move || {
        let mut lines = BufReader::new(ours.try_clone().unwrap()).lines();
        let mut received = Vec::new();
        for answer in answers {
            match lines.next() {
                Some(Ok(line)) => received.push(line),
                _ => break,
            }
            if (&ours).write_all(answer.as_bytes()).is_err() {
                break;
            }
        }
        received
    });
    (theirs.into(), thread)
}

/// Returns a connected client whose launcher continues with `answers`.
fn connected(answers: &[&str]) -> (Client, JoinHandle<Vec<String>>) {
    let answers = GREETING.iter().chain(answers).map(|line| format!("{line}\n")).collect();
    let (fd, thread) = launcher(answers);
    (Client::connect(fd, Some(Duration::from_secs(20)), false).unwrap(), thread)
}

fn text<T: std::fmt::Debug>(result: Result<T, LaunchError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn greets_and_says_goodbye() {
    let (client, thread) = connected(&["cmd=finalize_ack"]);
    assert_eq!(client.kvs(), "kvs_0");
    client.finalize().unwrap();
    let received = thread.join().unwrap();
    assert_eq!(received[0], "cmd=init pmi_version=1 pmi_subversion=1");
    assert_eq!(received[3], "cmd=finalize");
}

#[test]
fn asks_for_the_program() {
    let (mut client, _) = connected(&["cmd=appnum appnum=3", "cmd=appnum rc=0 appnum=0"]);
    assert_eq!([client.program().unwrap(), client.program().unwrap()], [Some(3), Some(0)]);
    let (mut client, _) = connected(&["cmd=get_appnum_result rc=-1 msg=unknown", "cmd=appnum appnum=-1"]);
    assert_eq!([client.program().unwrap(), client.program().unwrap()], [None, None]);
}

#[test]
fn long_values_travel_in_parts() {
    let (mut client, thread) = connected(&["cmd=put_result rc=0"; 3]);
    client.put("k", &"v".repeat(600)).unwrap();
    let received = thread.join().unwrap();
    assert!(received[3].starts_with("cmd=put kvsname=kvs_0 key=k value=3:vvv"), "{}", received[3]);
    assert!(received[5].starts_with("cmd=put kvsname=kvs_0 key=k+2 value=vvv"), "{}", received[5]);
}

#[test]
fn a_value_with_a_missing_part_is_an_error() {
    let (mut client, _thread) = connected(&["cmd=get_result rc=0 value=2:a", "cmd=get_result rc=-1"]);
    assert!(text(client.get("k")).contains("a part of it is missing"));
    let (mut client, _thread) = connected(&["cmd=get_result rc=0 value=foreign"]);
    assert!(text(client.get("k")).contains("does not begin with a count"));
    let (mut client, _thread) = connected(&["cmd=get_result rc=-1 msg=key_not_found value=unknown"]);
    assert_eq!(client.get("k").unwrap(), None);
}

#[test]
fn numbered_values_come_many_in_a_line() {
    let answers = [
        "cmd=nmad_values rc=0 values=1:a||2:b",
        "cmd=get_result rc=0 value=c",
        "cmd=nmad_values rc=0 values=1:%7C",
    ];
    let (mut client, thread) = connected(&answers);
    let value = |text: &str| Some(text.to_owned());
    let mut values = Vec::new();
    client.get_each("card-", 4, &mut |value| values.push(value)).unwrap();
    assert_eq!(values, [value("a"), None, value("bc"), value("|")]);
    drop(client);
    let received = thread.join().unwrap();
    assert_eq!(received[3], "cmd=nmad_values kvsname=kvs_0 name=card- from=0 count=4");
    assert_eq!(received[4], "cmd=get kvsname=kvs_0 key=card-2+1");
    assert_eq!(received[5], "cmd=nmad_values kvsname=kvs_0 name=card- from=3 count=4");
    let (mut client, _thread) = connected(&["cmd=nmad_values rc=0 values=1:a|1:b|1:c"]);
    assert!(text(client.get_each("card-", 2, &mut drop)).contains("more than the 2"));
    let (mut client, _thread) = connected(&["cmd=nmad_values rc=0 values=foreign"]);
    assert!(text(client.get_each("card-", 1, &mut drop)).contains("does not begin with a count"));
    let (mut client, _thread) = connected(&["cmd=nmad_values rc=0 values=1:p9|~b1|~b1"]);
    let mut values = Vec::new();
    client.get_each("card-", 3, &mut |value| values.push(value)).unwrap();
    assert_eq!(values, ["p9", "p10", "p11"].map(value));
    let (mut client, _thread) = connected(&["cmd=nmad_values rc=0 values=1:p9|~c1"]);
    assert!(text(client.get_each("card-", 2, &mut drop)).contains("sends it malformed"));
}

#[test]
fn a_launcher_that_died_is_an_error() {
    let (mut client, _thread) = connected(&[]);
    assert!(text(client.fence()).contains("closed its connection while this rank waited in a fence"));
    // By now a write may fail as well; it must not raise SIGPIPE.
    assert!(text(client.put("k", "v")).contains("closed its connection"));
    let (fd, _thread) = launcher(vec![]);
    assert!(
        text(Client::connect(fd, None, false)).contains("closed its connection while this rank said hello")
    );
}

#[test]
fn a_silent_launcher_is_an_error_after_the_limit() {
    let (fd, _silent) = UnixStream::pair().unwrap();
    let error = text(Client::connect(fd.into(), Some(Duration::from_millis(20)), false));
    assert!(error.contains("did not answer within") && error.contains("NMAD_LAUNCH_TIMEOUT"), "{error}");
}

#[test]
fn malformed_answers_are_errors() {
    for (answer, words) in [
        ("hello\n", "does not begin with cmd="),
        ("cmd=maxes\n", "cmd=response_to_init was expected"),
        ("cmd=response_to_init rc=0\n", "pmi_version= is missing"),
        ("cmd=response_to_init pmi_version=2 rc=0\n", "not version 1"),
        ("cmd=response_to_init pmi_version=1 rc=-1\n", "refused"),
        ("cmd=unknown_result rc=-1 msg=who_are_you\n", "who_are_you"),
        ("cmd=response_to_init pmi_version=one\n", "not a number"),
    ] {
        let (fd, _thread) = launcher(vec![answer.into()]);
        let error = text(Client::connect(fd, None, false));
        assert!(error.contains(words), "{answer}: {error}");
    }
    let (fd, _thread) = launcher(vec!["x".repeat(crate::pmi::LINE_MAX + 1)]);
    assert!(text(Client::connect(fd, None, false)).contains("longer than"));
}

#[test]
fn an_answer_may_come_in_pieces() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let thread = thread::spawn(move || {
        let mut lines = BufReader::new(ours.try_clone().unwrap()).lines();
        for answer in GREETING {
            lines.next().unwrap().unwrap();
            for byte in format!("{answer}\n").as_bytes() {
                (&ours).write_all(&[*byte]).unwrap();
            }
        }
    });
    Client::connect(theirs.into(), None, false).unwrap();
    thread.join().unwrap();
}
