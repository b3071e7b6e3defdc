//! Tests of the launcher's side of PMI-1, line by line.

use super::*;

fn server(size: u32) -> Server {
    Server::new("nmad-test", &[size], "(vector,(0,1,2))")
}

/// Returns the reply to a line, which must be the only event.
fn reply(server: &mut Server, rank: u32, line: &str) -> String {
    match &server.handle(rank, line)[..] {
        [Event::Reply(to, text)] if *to == rank => text.clone(),
        other => panic!("{line} led to {other:?}"),
    }
}

#[test]
fn answers_what_mpich_asks() {
    let mut s = server(2);
    assert_eq!(
        reply(&mut s, 0, &format!("cmd=init pmi_version=1 pmi_subversion=1 library={OWN_VERSION}")),
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
    );
    assert_eq!(
        reply(&mut s, 0, "cmd=get_maxes"),
        "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024"
    );
    assert_eq!(reply(&mut s, 0, "cmd=get_appnum"), "cmd=appnum rc=0 appnum=0");
    assert_eq!(reply(&mut s, 0, "cmd=get_my_kvsname"), "cmd=my_kvsname rc=0 kvsname=nmad-test");
    assert_eq!(reply(&mut s, 0, "cmd=get_universe_size"), "cmd=universe_size rc=0 size=2");
    assert_eq!(
        reply(&mut s, 0, "cmd=get kvsname=nmad-test key=PMI_process_mapping"),
        "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))"
    );
    assert_eq!(reply(&mut s, 0, "cmd=finalize"), "cmd=finalize_ack rc=0");
}

#[test]
fn tells_each_rank_its_program() {
    let mut s = Server::new("nmad-test", &[1, 2], "(vector,(0,1,3))");
    for (rank, program) in [0, 1, 1].into_iter().enumerate() {
        let answer = format!("cmd=appnum rc=0 appnum={program}");
        assert_eq!(reply(&mut s, rank as u32, "cmd=get_appnum"), answer);
    }
    assert_eq!(reply(&mut s, 2, "cmd=get_universe_size"), "cmd=universe_size rc=0 size=3");
}

#[test]
fn keeps_values_and_refuses_bad_ones() {
    let mut s = server(1);
    let put = |s: &mut Server, key: &str, value: &str| {
        reply(s, 0, &format!("cmd=put kvsname=nmad-test key={key} value={value}"))
    };
    assert_eq!(put(&mut s, "a", "x=1"), "cmd=put_result rc=0 msg=success");
    assert_eq!(put(&mut s, "a", "y"), "cmd=put_result rc=-1 msg=duplicate_key");
    assert!(put(&mut s, &"k".repeat(65), "y").contains("key_too_long"));
    assert!(put(&mut s, "b", &"v".repeat(1025)).contains("value_too_long"));
    assert!(reply(&mut s, 0, "cmd=put kvsname=other key=c value=z").contains("unknown_kvsname"));
    assert!(reply(&mut s, 0, "cmd=get kvsname=nmad-test key=a").ends_with(" value=x=1"));
    assert!(reply(&mut s, 0, "cmd=get kvsname=nmad-test key=none").contains("rc=-1"));
    assert!(reply(&mut s, 0, "cmd=get kvsname=other key=a").contains("rc=-1"));
}

#[test]
fn sends_as_many_numbered_values_as_a_line_holds() {
    let mut s = server(1);
    // Values with different texts, which no difference shortens.
    let text = |number: u8| char::from(b'a' + number % 26).to_string().repeat(VALUE_MAX);
    for number in (0..100).filter(|&number| number != 1) {
        reply(&mut s, 0, &format!("cmd=put kvsname=nmad-test key=card-{number} value={}", text(number)));
    }
    let values = |s: &mut Server, from: usize| {
        let ask = format!("cmd=nmad_values kvsname=nmad-test name=card- from={from} count=100");
        let answer = reply(s, 0, &ask);
        assert!(answer.len() <= VALUES_MAX + VALUE_MAX);
        answer.strip_prefix("cmd=nmad_values rc=0 values=").expect("values").split('|').count()
    };
    let (mut from, mut answers) = (0, 0);
    while from < 100 {
        from += values(&mut s, from);
        answers += 1;
    }
    assert_eq!((from, answers), (100, 4));
    let (ask, long) = ("cmd=nmad_values kvsname=nmad-test name=card- from=0 count=2", text(0));
    assert_eq!(reply(&mut s, 0, ask), format!("cmd=nmad_values rc=0 values={long}|"));
    reply(&mut s, 0, "cmd=put kvsname=nmad-test key=card-1 value=1:x");
    assert_eq!(reply(&mut s, 0, ask), format!("cmd=nmad_values rc=0 values={long}|1:x"));
    let ask = "cmd=nmad_values kvsname=other name=card- from=0 count=2";
    assert!(reply(&mut s, 0, ask).contains("unknown_kvsname"));
    for (number, value) in ["1:port=9", "1:port=12", "1:port=7"].iter().enumerate() {
        reply(&mut s, 0, &format!("cmd=put kvsname=nmad-test key=like-{number} value={value}"));
    }
    let ask = "cmd=nmad_values kvsname=nmad-test name=like- from=0 count=4";
    assert_eq!(reply(&mut s, 0, ask), "cmd=nmad_values rc=0 values=1:port=9|~b3|~b-5|");
}

#[test]
fn a_fence_opens_when_the_last_rank_comes() {
    let mut s = server(3);
    assert_eq!(s.handle(0, "cmd=barrier_in"), []);
    assert_eq!(s.handle(2, "cmd=barrier_in"), []);
    assert_eq!(s.stuck(), None);
    assert_eq!(s.handle(1, "cmd=barrier_in").len(), 3);
    assert_eq!(s.handle(1, "cmd=barrier_in"), [], "the next fence begins anew");
}

#[test]
fn a_fence_that_cannot_complete_is_reported() {
    let mut s = server(3);
    s.gone(2);
    assert_eq!(s.stuck(), None, "nobody waits yet");
    s.handle(0, "cmd=barrier_in");
    let why = s.stuck().unwrap();
    assert!(why.contains("rank 0 waits in a fence that rank 2 will never join"), "{why}");
}

#[test]
fn nonsense_is_answered_and_changes_nothing() {
    let mut s = server(1);
    for line in [
        "",
        "hello",
        "cmd=",
        "cmd=put",
        "cmd=put kvsname=nmad-test key=a",
        "cmd=init",
        "cmd=init pmi_version=x",
        "cmd=dance rc=0",
        "= = =",
    ] {
        let events = s.handle(0, line);
        let [Event::Reply(0, reply), Event::Note(note)] = &events[..] else { panic!("{line:?}: {events:?}") };
        assert!(reply.starts_with("cmd=") && reply.contains(" rc=-1 msg="), "{reply}");
        assert!(note.contains("rank 0 sent"), "{note}");
    }
    assert_eq!(s.phase(0), Phase::Silent);
    assert!(
        reply(&mut s, 0, &format!("cmd=init pmi_version=2 pmi_subversion=0 library={OWN_VERSION}"))
            .ends_with("rc=-1")
    );
    assert_eq!(s.phase(0), Phase::Silent);
}

#[test]
fn blocks_of_several_lines_are_refused_once() {
    let mut s = server(1);
    for line in ["mcmd=spawn", "nprocs=1", "execname=x", "cmd=finalize"] {
        assert_eq!(s.handle(0, line), [], "{line}");
    }
    let events = s.handle(0, "endcmd");
    assert!(matches!(&events[0], Event::Reply(0, text) if text.starts_with("cmd=spawn_result rc=-1")));
    assert!(reply(&mut s, 0, "cmd=get_appnum").contains("appnum=0"));
}

#[test]
fn an_abort_carries_its_reason() {
    let event = server(1).handle(0, "cmd=abort exitcode=7 message=disk%20full");
    assert_eq!(event, [Event::Abort { rank: 0, code: 7, why: "disk full".into() }]);
    let event = server(1).handle(0, "cmd=abort");
    assert_eq!(event, [Event::Abort { rank: 0, code: 1, why: String::new() }]);
}

#[test]
fn a_part_of_a_job_asks_the_other_hosts_at_each_fence() {
    let mut s = Server::part("nmad-test", [(4, 1), (6, 1)].into_iter(), 8, "(vector,(0,2,1))");
    assert_eq!(reply(&mut s, 0, "cmd=get_universe_size"), "cmd=universe_size rc=0 size=8");
    assert_eq!(reply(&mut s, 1, "cmd=get_appnum"), "cmd=appnum rc=0 appnum=1");
    reply(&mut s, 0, "cmd=put kvsname=nmad-test key=card-4 value=x");
    assert_eq!(s.handle(1, "cmd=barrier_in"), []);
    assert_eq!(s.waiting(), Some(6), "ranks are told, not places");
    let up = s.handle(0, "cmd=barrier_in");
    assert_eq!(up, [Event::Fence(vec![("card-4".into(), "x".into())])]);
    assert_eq!(s.release(vec![("card-0".into(), "y".into())]).len(), 2);
    assert_eq!(s.waiting(), None);
    assert!(reply(&mut s, 0, "cmd=get kvsname=nmad-test key=card-0").ends_with(" value=y"));
    s.handle(0, "cmd=barrier_in");
    assert_eq!(s.handle(1, "cmd=barrier_in"), [Event::Fence(Vec::new())], "nothing is told twice");
    s.gone(1);
    assert_eq!(s.absent(), Some(Absent { rank: 6, gone: true }));
    assert!(matches!(&s.handle(0, "hello")[1], Event::Note(text) if text.starts_with("rank 4 sent")));
}

#[test]
fn another_library_is_reported_once() {
    for (library, words) in
        [("", "rank 1 uses another MPI than"), (" library=9.9.9", "rank 1 uses version 9.9.9")]
    {
        let mut s = server(3);
        let hello = format!("cmd=init pmi_version=1 pmi_subversion=1{library}");
        let first = s.handle(1, &hello);
        assert!(
            matches!(&first[..], [Event::Reply(1, _), Event::Note(text)]
                if text.contains(words) && text.contains("LD_LIBRARY_PATH")),
            "{first:?}"
        );
        assert!(matches!(&s.handle(2, &hello)[..], [Event::Reply(2, _)]), "once for each host");
    }
}
