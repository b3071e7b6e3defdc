use super::*;

fn rank(number: u32, lines: &[&str]) -> Records {
    Records::parse(format!("t.{number}"), &lines.join("\n")).unwrap()
}

fn rail(at_ns: u64, what: &str, peer: u32, number: u32, len: u64, text: &str) -> String {
    format!(
        r#"{{"at_ns":{at_ns},"rail":"tcp/r0#0","what":"{what}","peer":{peer},"number":{number},"len":{len},
           "text":"{text}"}}"#
    )
    .replace('\n', " ")
}

#[test]
fn a_small_message_is_known_from_its_packet_at_either_end() {
    let text =
        "packet #4 of 64 B, ack 1 | eager 24 B context 0 tag 0x7 seq 20 | eager 8 B context 2 tag 0x1 seq 0";
    let sender = rank(0, &[&rail(100, "PostPacket", 1, 4, 64, text)]);
    let receiver = rank(1, &[&rail(900, "Arrived", 0, 4, 64, text)]);
    let blind = rank(0, &[&rail(100, "PostPacket", 1, 4, 64, "")]);
    for all in [vec![sender.clone(), receiver.clone()], vec![blind, receiver]] {
        let found = messages(&all);
        assert_eq!(found.len(), 2);
        let Message { from, to, len, sent_ns, arrived_ns, .. } = &found[0];
        assert_eq!((*from, *to, *len, *sent_ns, *arrived_ns), (0, 1, 24, 100, Some(900)));
        assert_eq!((found[0].protocol.as_str(), found[1].tag), ("eager", 1));
    }
    assert_eq!(messages(&[sender])[0].arrived_ns, None);
}

#[test]
fn a_body_has_arrived_with_its_last_chunk_and_takes_no_chunk_of_the_next() {
    let rts = |seq| format!("packet #{seq} of 50 B, ack 0 | rts 300 B context 0 tag 0x8 seq {seq}");
    let receipt = |seq| {
        format!(
            r#"{{"at_ns":5,"message":"rendezvous","to":1,"context":0,"tag":8,"seq":{seq},"len":300,
               "eager_max":100,"predicted_ns":80,"actual_ns":100,"carried":[["tcp/r0#0",300]]}}"#
        )
        .replace('\n', " ")
    };
    let sender = rank(
        0,
        &[
            &rail(10, "PostPacket", 1, 1, 50, &rts(1)),
            &rail(20, "PostPacket", 1, 2, 50, &rts(2)),
            &receipt(1),
            &receipt(2),
        ],
    );
    let landed = |at, number, len| rail(at, "Landed", 0, number, len, "");
    let receiver =
        rank(1, &[&landed(100, 3, 200), &landed(200, 4, 100), &landed(300, 5, 150), &landed(400, 6, 150)]);
    let found = messages(&[sender, receiver]);
    let times: Vec<_> = found.iter().map(|message| (message.sent_ns, message.arrived_ns)).collect();
    assert_eq!(times, [(10, Some(200)), (20, Some(400))]);
    assert_eq!(found[0].why(), "above the eager limit: the receiver was asked");
    assert_eq!(found[0].error(), Some(-0.2));
}

#[test]
fn parts_make_a_message_when_all_have_come() {
    let rts = "packet #1 of 50 B, ack 0 | rts 300 B context 0 tag 0x8 seq 1 in parts";
    let part = |at, number, offset| {
        rail(at, "Arrived", 0, number, 150, &format!("packet | part of 150 B at {offset} of 300 B"))
    };
    let receiver = rank(1, &[&rail(10, "Arrived", 0, 1, 50, rts), &part(20, 2, 0), &part(30, 3, 150)]);
    let found = messages(&[receiver]);
    assert_eq!((found[0].protocol.as_str(), found[0].arrived_ns), ("eager-parts", Some(30)));
}

#[test]
fn clocks_of_other_machines_are_moved() {
    let text = |seq| format!("packet #1 of 64 B, ack 1 | eager 24 B context 0 tag 0x7 seq {seq}");
    // Rank 1's clock is 1 ms behind; each message takes 50 us.
    let zero = rank(
        0,
        &[
            &rail(5_000_000, "PostPacket", 1, 1, 64, &text(0)),
            &rail(6_950_000, "Arrived", 1, 1, 64, &text(0)),
        ],
    );
    let one = rank(
        1,
        &[
            &rail(4_050_000, "Arrived", 0, 1, 64, &text(0)),
            &rail(5_900_000, "PostPacket", 0, 1, 64, &text(0)),
        ],
    );
    let mut all = [zero, one];
    align(&mut all);
    assert_eq!(all[1].list[0].at_ns, 5_050_000);
    assert_eq!(all[0].list[0].at_ns, 5_000_000);
    let before = all.clone();
    align(&mut all);
    assert_eq!(all, before);
}
