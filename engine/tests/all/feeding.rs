//! When rails are given packets: the three modes of P1, and exceptions.

use crate::net::{self, Net, limits};
use nmad_engine::{Config, Feed, Hints, Limits, PeerId, RailId};

/// One kilobyte takes a millisecond.
const SLOW: u64 = 1_000_000;

/// Two hosts on a slow rail that is open and idle.
fn net(feed: Feed) -> Net {
    let config = Config { feed, ..Config::default() };
    let mut net = Net::new(2, &[Limits { bandwidth: SLOW, depth: 64, ..limits() }], &config, 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.now += 1_000_000;
    net.carried();
    net
}

fn send(net: &mut Net, len: usize) {
    net.send(0, 1, 0, 1, &vec![7; len]);
    net.turn(0, false);
}

/// Packets sent since the last call, by the number of messages in each.
fn left(net: &mut Net) -> Vec<usize> {
    // Posted orders are carried when the rail is polled.
    net.turn(0, false);
    net.said(0).iter().map(|(_, text)| text.matches("eager").count()).collect()
}

/// Time when the rail is idle again.
fn idle(net: &Net) -> u64 {
    net.hosts[0].engine.inspect().next_deadline().expect("something waits").as_ns()
}

#[test]
fn accumulate_sends_the_first_at_once_and_the_rest_when_the_rail_is_idle() {
    let mut net = net(Feed::Accumulate);
    send(&mut net, 1_000);
    assert_eq!(left(&mut net), [1]);
    for _ in 0..5 {
        net.now += 100_000;
        send(&mut net, 100);
    }
    assert_eq!(left(&mut net), [], "the rail is busy for a millisecond");
    net.now = idle(&net) - 1;
    net.turn(0, false);
    assert_eq!(left(&mut net), []);
    net.now += 1;
    net.turn(0, false);
    assert_eq!(left(&mut net), [5], "what gathered leaves in one packet");
}

#[test]
fn a_waiting_caller_does_not_wait_for_the_rail_to_be_idle() {
    for feed in [Feed::Accumulate, Feed::Prepare, Feed::Backlog(1 << 20)] {
        let mut net = net(feed);
        send(&mut net, 1_000);
        send(&mut net, 100);
        assert_eq!(left(&mut net), [1], "{feed:?}");
        net.turn(0, true);
        assert_eq!(left(&mut net), [1], "{feed:?}");
    }
}

#[test]
fn prepare_builds_one_packet_while_the_rail_is_busy() {
    let mut net = net(Feed::Prepare);
    send(&mut net, 1_000);
    send(&mut net, 101);
    assert_eq!(
        net.hosts[0].engine.inspect().peer_view(PeerId(1)).unwrap().backlog,
        0,
        "it is in the packet already"
    );
    send(&mut net, 102);
    send(&mut net, 103);
    assert_eq!(left(&mut net), [1]);
    net.now = idle(&net);
    net.turn(0, false);
    assert_eq!(left(&mut net), [1, 2], "the prepared one, then what gathered after it");
}

#[test]
fn a_backlog_beyond_the_threshold_is_sent_although_the_rail_is_busy() {
    let mut net = net(Feed::Backlog(1_000));
    send(&mut net, 1_000);
    for _ in 0..3 {
        send(&mut net, 300);
    }
    assert_eq!(left(&mut net), [1], "three messages and their headers are still below");
    send(&mut net, 300);
    assert_eq!(left(&mut net), [4]);
}

#[test]
fn the_mode_can_be_changed_while_messages_wait() {
    let mut net = net(Feed::Prepare);
    send(&mut net, 1_000);
    send(&mut net, 100);
    net.hosts[0].engine.setup().set_feed(Feed::Backlog(0));
    send(&mut net, 100);
    assert_eq!(left(&mut net), [1, 1]);
    net.now = idle(&net);
    net.turn(0, false);
    assert_eq!(left(&mut net), [1], "the one that was prepared");
    net.settle();
    assert_eq!(net.hosts[1].engine.inspect().unexpected(), 4);
}

#[test]
fn a_posted_order_occupies_the_rail_for_its_predicted_time() {
    let mut net = net(Feed::Accumulate);
    send(&mut net, 9_976);
    send(&mut net, 1);
    let begin = net.now;
    // Header and frame are 40 B: 10,016 B in all.
    assert_eq!(idle(&net) - begin, 10_016_000);
}

#[test]
fn priority_overtakes_waiting_messages() {
    let mut net = net(Feed::Accumulate);
    net.hosts[0].engine.setup().set_strategy(None, "fifo").unwrap();
    send(&mut net, 1_000);
    for (tag, priority) in [(1, 0), (2, -1), (3, 5), (4, 0), (5, 5)] {
        net.send_with(0, 1, tag as u32, tag, &[0; 10], Hints { priority, ..Hints::default() });
    }
    net.turn(0, true);
    net.turn(0, true);
    let tags: Vec<String> = net.said(0).into_iter().skip(1).map(|(_, text)| text).collect();
    let order: Vec<bool> =
        tags.iter().zip([3, 5, 1, 4, 2]).map(|(text, tag)| text.contains(&format!("tag {tag:#x}"))).collect();
    assert_eq!(order, [true; 5], "{tags:?}");
}

#[test]
fn a_dedicated_rail_is_used_by_every_strategy() {
    for strategy in ["fifo", "aggregate", "greedy", "aggregate_fastest", "iso_split", "ratio_split"] {
        for len in [10, 100_000] {
            let mut net = Net::pair(3, Config { strategy: strategy.into(), ..Config::default() });
            net.recv(1, net::from(0), 0, net::exact(1), len);
            net.settle();
            net.carried();
            let hints = Hints { rail: Some(RailId(2)), ..Hints::default() };
            net.send_with(0, 1, 0, 1, &vec![1; len], hints);
            net.settle();
            let (chunks, eager) = (|t: &str| t.contains("chunk"), |t: &str| t.contains("eager"));
            let said = net.said(0);
            let data: Vec<usize> =
                said.iter().filter(|(_, text)| chunks(text) || eager(text)).map(|(rail, _)| *rail).collect();
            assert_eq!(data, [2], "{strategy} {len}: {said:?}");
        }
    }
}
