use super::*;
use newmadeleine::engine::Forecast;
use nmad_bench::phase::outcome::Setting;
use nmad_bench::phase::predict::predict;

fn call(at: u64, name: &str, until: u64, from: Option<u32>) -> String {
    let from = from.map_or(String::new(), |from| format!(",\"from\":{from}"));
    format!("{{\"at_ns\":{at},\"call\":\"{name}\",\"until_ns\":{until}{from},\"thread\":0}}\n")
}

fn packet(at: u64, what: &str, peer: u32, number: u32, (len, seq): (u64, u32)) -> String {
    format!(
        "{{\"at_ns\":{at},\"rail\":\"tcp/r0#0\",\"what\":\"{what}\",\"peer\":{peer},\"number\":{number},\
         \"len\":{len},\"text\":\"packet | eager {len} B context 0 tag 0x1 seq {seq}\"}}\n"
    )
}

fn write(folder: &Path, rank: u32, lines: &[String]) {
    let body = lines.concat();
    let head = format!("{{\"trace\":2,\"rank\":{rank},\"size\":2}}\n");
    let end = format!("{{\"end\":{},\"dropped\":0}}\n", lines.len());
    std::fs::write(folder.join(format!("trace.{rank}")), head + &body + &end).unwrap();
}

/// Rank 0 sends 1000 B, both compute, and a collective ends it: a message in each direction.
fn job(folder: &Path) {
    let zero = [
        call(0, "MPI_Send", 2_000, None),
        packet(1_000, "PostPacket", 1, 1, (1_000, 0)),
        call(102_000, "MPI_Allreduce", 120_000, None),
        packet(103_000, "PostPacket", 1, 2, (8, 1)),
        packet(119_000, "Arrived", 1, 1, (8, 0)),
    ];
    let one = [
        call(500, "MPI_Irecv", 600, Some(0)),
        packet(12_000, "Arrived", 0, 1, (1_000, 0)),
        call(50_600, "MPI_Wait", 51_000, None),
        call(101_000, "MPI_Allreduce", 121_000, None),
        packet(114_000, "Arrived", 0, 2, (8, 1)),
        packet(115_000, "PostPacket", 0, 1, (8, 0)),
    ];
    write(folder, 0, &zero);
    write(folder, 1, &one);
}

#[test]
fn a_trace_becomes_the_pattern_of_its_calls_and_messages() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    assert!(is_trace(folder.path()) && is_trace(&folder.path().join("trace")));
    let Traced { pattern, measured, eager_max, .. } = traced(folder.path()).unwrap();
    let send = |to, len, blocks| Step::Send { to, len, blocks, way: None, carried: None };
    assert_eq!(
        pattern.ranks[0][..4],
        [send(1, 1_000, true), Step::Compute(100_000), send(1, 8, false), Step::Recv(1)]
    );
    let begins = [Step::Compute(500), Step::Recv(0), Step::Call(100), Step::Compute(50_000), Step::Wait];
    assert_eq!(pattern.ranks[1][..5], begins);
    // In the collective rank 1 answers when it has what rank 0 has sent.
    assert_eq!(pattern.ranks[1][6..9], [Step::Recv(0), Step::Wait, send(0, 8, false)]);
    assert_eq!((measured[0].communication_ns, measured[1].end_ns), (20_000, 121_000));
    assert_eq!(eager_max, Some(1_000));
    let rail = Forecast::nominal(10_000, 1_000_000_000, 1);
    let setting = Setting::of_sockets(vec![rail], 1_000);
    let phase = predict(&pattern, &setting).unwrap();
    assert!(phase.duration_ns().abs_diff(121_000) < 6_000, "{phase:?}");
}

#[test]
fn a_trace_that_is_not_whole_is_no_input() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let file = folder.path().join("trace.1");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 40]).unwrap();
    let why = traced(folder.path()).err().unwrap();
    assert!(why.contains("rank 1 is not whole"), "{why}");
    std::fs::remove_file(&file).unwrap();
    let why = traced(folder.path()).err().unwrap();
    assert!(why.contains("traces of all ranks"), "{why}");
}

#[test]
fn the_limit_is_the_length_with_the_fewest_exceptions() {
    let message = |len: u64, protocol: &str| Message {
        from: 0,
        to: 1,
        context: 0,
        tag: 0,
        len,
        sent_ns: 0,
        arrived_ns: None,
        protocol: protocol.into(),
        carried: Vec::new(),
        receipt: None,
    };
    let list =
        [(8, "eager"), (100, "eager"), (200, "rendezvous"), (300, "eager-parts"), (400, "rtr"), (500, "rtr")];
    let list = list.map(|(len, protocol)| message(len, protocol));
    assert_eq!(eager_max(&list), Some(100));
    assert_eq!(eager_max(&list[2..3]), Some(199));
    assert_eq!(eager_max(&[]), None);
}

#[test]
fn calculation_on_a_shared_core_is_the_time_with_the_core() {
    let folder = tempfile::tempdir().unwrap();
    let call = |at: u64, name: &str, until: u64, delays: [u64; 2]| {
        format!(
            "{{\"at_ns\":{at},\"call\":\"{name}\",\"until_ns\":{until},\"core\":3,\"delayed_ns\":{delays:?},\
             \"thread\":0}}\n"
        )
    };
    for rank in 0..2 {
        let head = format!(
            "{{\"trace\":2,\"rank\":{rank},\"size\":2,\"machine\":\"m\",\"cores\":4,\"tick_ns\":1000000}}\n"
        );
        let lines =
            [call(0, "MPI_Test", 3_000, [0, 1_000]), call(50_000, "MPI_Test", 51_000, [21_000, 21_000])];
        let text = head + &lines.concat() + "{\"end\":2,\"dropped\":0}\n";
        std::fs::write(folder.path().join(format!("trace.{rank}")), text).unwrap();
    }
    let Traced { pattern, turns, .. } = traced(folder.path()).unwrap();
    assert_eq!(
        pattern.ranks[1][..4],
        [Step::On(0), Step::Call(2_000), Step::Compute(27_000), Step::Call(1_000)]
    );
    // 0.7 ms times one and the logarithm of four cores to the base of 2.
    assert_eq!((turns.tick_ns, turns.slice_ns), (1_000_000, 2_100_000));
}
