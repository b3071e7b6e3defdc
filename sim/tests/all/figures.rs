//! What figures are made of: models of machines and cards, programs of the papers, and tables.

use nmad_sim::golden::networks::MX_10G;
use nmad_sim::golden::p5::INFINIBAND;
use nmad_sim::golden::p5::mesh::{Box3, VALUE, boxes, letters};
use nmad_sim::golden::p5::phase::{Policy, Program, iteration_ns, pieces};
use nmad_sim::golden::table::{Number, Table, size, wrapped};
use nmad_sim::machine::{Copying, Machine};
use nmad_sim::model::{Load, Model};
use nmad_sim::network::bus::{Route, fair};

#[test]
fn a_copy_is_fast_as_long_as_the_caches_help() {
    let copy = Copying { start_ns: 10, near: 2_000_000_000, near_len: 1_000, far: 1_000_000_000 };
    let machine = Machine { copy: Some(copy), ..Machine::default() };
    assert_eq!([0, 500, 1_000, 3_000].map(|len| machine.copy_ns(len)), [0, 260, 510, 2_510]);
    assert_eq!(Machine::default().copy_ns(1 << 20), 0);
}

#[test]
fn what_a_slow_transfer_leaves_goes_to_the_others() {
    let route = |from, to, wire| Route { from, to, wire };
    assert_eq!(fair(&[route(0, 1, 1.2), route(0, 1, 0.5)], 2.0), [1.2, 0.5]);
    assert_eq!(fair(&[route(0, 1, 1.9), route(0, 1, 0.5)], 2.0), [1.5, 0.5]);
    assert_eq!(fair(&[route(0, 1, 3.0), route(0, 2, 3.0)], 2.0), [1.0, 1.0]);
    assert_eq!(fair(&[route(0, 2, 3.0), route(1, 2, 0.4), route(1, 0, 3.0)], 2.0), [1.6, 0.4, 1.6]);
    assert_eq!(fair(&[route(0, 1, 3.0), route(1, 0, 3.0)], 2.0), [2.0, 2.0], "each direction its own");
}

#[test]
fn small_packets_take_the_core_and_chunks_do_not() {
    let load = |len, chunk| Load { len, pieces: 0, chunk };
    let (small, large) = (MX_10G.post(&load(8 << 10, false)), MX_10G.post(&load(4 << 20, true)));
    assert!(small.by_core && small.core_ns > 8_000, "{small:?}");
    assert!(!large.by_core && large.core_ns < 1_000 && large.setup_ns > 0, "{large:?}");
}

#[test]
fn halves_of_a_cube_exchange_a_face() {
    let letters = letters([8, 8, 8], 2);
    assert_eq!(letters, [(0, 1, 64 * VALUE), (1, 0, 64 * VALUE)]);
}

#[test]
fn every_node_is_in_one_box() {
    let nodes = [40, 30, 20];
    let boxes = boxes(nodes, 12);
    let volume = |each: &Box3| each.iter().map(|edge| edge[1] - edge[0]).product::<usize>();
    assert_eq!((boxes.len(), boxes.iter().map(volume).sum::<usize>()), (12, 24_000));
}

#[test]
fn a_message_is_cut_into_pieces_that_pass_the_limit() {
    assert_eq!(pieces(10, Some(4)), [4, 4, 2]);
    assert_eq!(pieces(10, None), [10]);
}

#[test]
fn a_receiver_that_computes_holds_up_who_asks_and_not_who_sends_eagerly() {
    let letters = vec![(0, 1, 200 << 10)];
    let program = Program { hosts: 2, letters, before_ns: 5_000_000, after_ns: 5_000_000, pack_ps: 0 };
    let time = |eager_max| iteration_ns(&INFINIBAND, Policy::limit(eager_max), &program);
    // Host 0 is held up for half of host 1's calculation, and host 1 by what host 0 has then to
    // compute.
    assert!((15_000_000..15_500_000).contains(&time(64 << 10)), "{}", time(64 << 10));
    assert!((10_000_000..10_500_000).contains(&time(256 << 10)), "{}", time(256 << 10));
}

#[test]
fn numbers_stand_beside_the_papers() {
    let mut table = Table::new("figure", "model");
    table.numbers(&[Number::new("bandwidth", 1180.4, 1170.0, "MB/s")]);
    assert!(table.finish().contains("1180 MB/s  1170 MB/s     +0.9 %  follows"));
}

#[test]
#[should_panic(expected = "deviates by +20.0 %")]
fn a_number_that_differs_says_why() {
    Table::new("figure", "model").numbers(&[Number::new("bandwidth", 1200.0, 1000.0, "MB/s").set()]);
}

#[test]
#[should_panic(expected = "deviates by +5.0 %")]
fn a_reason_goes_when_the_number_follows() {
    let number = Number::new("bandwidth", 1050.0, 1000.0, "MB/s");
    Table::new("figure", "model").numbers(&[number.differs("of a reason that is gone")]);
}

#[test]
fn long_lines_are_broken_between_words() {
    assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
    assert_eq!([size(4), size(16 << 10), size(1500), size(4 << 20)], ["4", "16K", "1500", "4M"]);
}
