//! What the model of time promises.

use nmad_mpi_base::algorithm::choice::Family;
use nmad_mpi_base::algorithm::cost::SIZES;
use nmad_scale::case::Case;
use nmad_scale::fabric::{FABRICS, FLAT};
use nmad_scale::packet;
use nmad_scale::stage::{Placement, Stage};

#[test]
fn one_message_between_idle_hosts_takes_as_long_as_packets_do() {
    for len in SIZES {
        let alone = packet::case(Family::Bcast, 2, len).run_within("flat", 10).expect("one message");
        let measured = FLAT.measured().far.ns(len);
        let ns = alone.ps as f64 / 1e3;
        // Of the longest the wire takes a little more here than in packets.
        assert!((ns / measured - 1.0).abs() < 1e-3, "{len} B: {ns} ns, {measured} ns measured");
        assert_eq!((alone.messages, alone.far_bytes), (1, len));
    }
}

#[test]
fn the_same_case_is_always_the_same_run() {
    let stage = Stage::block(&FABRICS[1], 512);
    let case = Case { stage, family: Family::Alltoall, len: 64 };
    let run = || case.run_within("bruck", usize::MAX);
    assert!(run().is_some());
    assert_eq!(run(), run());
}

#[test]
fn ranks_that_share_a_card_share_its_bandwidth() {
    // Both halves exchange: one rank of each host, or all 64.
    let run = |ranks, cores, placement| {
        let stage = Stage { fabric: &FABRICS[0], ranks, cores, placement };
        let case = Case { stage, family: Family::Allgather, len: 1 << 20 };
        case.run_within("flat", usize::MAX).expect("few messages").ps as f64
    };
    let (alone, shared) = (run(2, 1, Placement::Block), run(16, 8, Placement::Block));
    // Eight ranks of a host send to eight others: 64 times the bytes of one.
    assert!((shared / alone / 64.0 - 1.0).abs() < 0.2, "{}", shared / alone);
}

#[test]
fn schedules_do_not_grow_with_the_number_of_ranks() {
    for &family in Family::ALL {
        let case = Case { stage: Stage::block(&FABRICS[0], 16_384), family, len: 8 };
        let name = case.chosen();
        let mut steps = Vec::new();
        case.schedules(name, |schedule| {
            steps.push(schedule.len());
            steps.len() < 5
        });
        // Rank 0 may have messages with all others; with two levels each may have some with all ranks of its
        // host and with all hosts.
        assert!(steps[1..].iter().all(|&count| count < 1_000), "{name} of {}: {steps:?}", family.name());
    }
}
