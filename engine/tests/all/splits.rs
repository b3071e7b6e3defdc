//! Splits and chunks: every byte of a large message is carried once, for any rails and strategy.

use crate::net::rail::Faults;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Forecast, Instant, Limits, RailId, RailView, Registry, Shares};
use proptest::collection::vec;
use proptest::prelude::*;

fn names() -> Vec<String> {
    Registry::default().names().map(String::from).collect()
}

fn strategy() -> impl Strategy<Value = String> {
    prop::sample::select(names())
}

/// Usual and extreme bandwidths.
fn bandwidth() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 1_000_000..100_000_000_000u64]
}

/// Random figures of a rail: bandwidth, latency, time when it is idle.
type Drawn = (u64, u64, u64);

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    vec((bandwidth(), 0..100_000u64, 0..1_000_000u64), 1..6)
}

fn forecasts(drawn: &[Drawn]) -> Vec<Forecast> {
    drawn.iter().map(|&(bandwidth, latency_ns, _)| Forecast::nominal(latency_ns, bandwidth, 1)).collect()
}

fn views<'a>(
    drawn: &[Drawn],
    forecasts: &'a [Forecast],
    primary: usize,
    fastest: usize,
) -> Vec<RailView<'a>> {
    let view = |(index, (&(bandwidth, latency_ns, idle_at), forecast)): (usize, (&Drawn, &'a Forecast))| {
        RailView {
            // Numbers with gaps: some rails do not reach this peer.
            rail: RailId(index as u8 * 2 + 1),
            wire: RailId(index as u8 * 2 + 1),
            idle_at: Instant::from_ns(idle_at),
            bandwidth,
            latency_ns,
            primary: index == primary,
            fastest: index == fastest,
            forecast,
            rivals: &[],
        }
    };
    drawn.iter().zip(forecasts).enumerate().map(view).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn shares_are_of_present_rails_and_add_up(
        name in strategy(),
        drawn in drawn(),
        primary: prop::sample::Index,
        fastest: prop::sample::Index,
        len in prop_oneof![1..100u64, 1..1u64 << 40, Just(1u64 << 60)],
        now in 0..2_000_000u64,
    ) {
        let forecasts = forecasts(&drawn);
        let views = views(&drawn, &forecasts, primary.index(drawn.len()), fastest.index(drawn.len()));
        let mut strategy = Registry::default().make(&name).unwrap();
        if let Shares::Fixed(shares) = strategy.split(Instant::from_ns(now), len, &views) {
            let mut seen = Vec::new();
            for (rail, _) in shares.iter() {
                prop_assert!(views.iter().any(|view| view.rail == *rail), "{:?} is not there", rail);
                prop_assert!(!seen.contains(rail), "{:?} twice", rail);
                seen.push(*rail);
            }
            let sum: u128 = shares.iter().map(|(_, share)| u128::from(*share)).sum();
            prop_assert_eq!(sum, u128::from(len), "{}: {:?}", name, shares);
        }
    }
}

fn rail() -> impl Strategy<Value = Limits> {
    (bandwidth(), 1..100_000u64, 1..20usize, any::<bool>()).prop_map(|(bandwidth, chunk, depth, lossy)| {
        // A lossy rail uses datagrams, which are not very short.
        let chunk = if lossy { chunk.max(1_000) } else { chunk };
        Limits { bandwidth, chunk: chunk.max(300), depth, lossy, ..limits() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_byte_is_carried_once(
        name in strategy(),
        mut rails in vec(rail(), 1..4),
        chunk in 200..200_000u64,
        lens in vec(33_000..400_000usize, 1..4),
        seed: u64,
    ) {
        rails.iter_mut().for_each(|rail| rail.lossy = false);
        let mut net = Net::new(2, &rails, &Config { strategy: name, chunk, ..Config::default() }, seed);
        net.set_faults(Faults { delay_ns: 20_000, ..Faults::default() });
        transfer(&mut net, &lens)?;
        let host = &net.hosts[0].engine;
    let counters = (0..rails.len()).map(|rail| host.inspect().counters(RailId(rail as u8)));
        let carried: u64 = counters.map(|counters| counters.chunk_bytes).sum();
        prop_assert_eq!(carried, lens.iter().map(|&len| len as u64).sum::<u64>());
    }

    #[test]
    fn every_byte_arrives_though_packets_are_lost_and_repeated(
        name in strategy(),
        rails in vec(rail(), 1..4),
        chunk in 200..200_000u64,
        lens in vec(0..200_000usize, 1..4),
        seed: u64,
    ) {
        let mut net = Net::new(2, &rails, &Config { strategy: name, chunk, ..Config::default() }, seed);
        net.set_faults(Faults { delay_ns: 20_000, drop: 20, repeat: 20 });
        transfer(&mut net, &lens)?;
    }

    #[test]
    fn every_byte_arrives_though_all_rails_but_one_die(
        name in strategy(),
        mut rails in vec(rail(), 2..4),
        chunk in 200..50_000u64,
        lens in vec(0..200_000usize, 1..4),
        turns in 0..60usize,
        seed: u64,
    ) {
        rails[0].lossy = false;
        let mut net = Net::new(2, &rails, &Config { strategy: name, chunk, ..Config::default() }, seed);
        net.set_faults(Faults { delay_ns: 5_000, ..Faults::default() });
        let sent: Vec<_> = lens.iter().map(|&len| net.send(0, 1, 0, 1, &pattern(len, seed))).collect();
        let received: Vec<_> = lens.iter().map(|&len| net.recv(1, from(0), 0, exact(1), len)).collect();
        for turn in 0..turns {
            net.turn(turn % 2, turn % 3 == 0);
            net.now += 1_000;
        }
        (1..rails.len()).for_each(|rail| net.kill(rail, 0, 1));
        net.settle();
        for ((recv, len), sent) in received.into_iter().zip(lens).zip(sent) {
            prop_assert!(net.got(1, recv, &pattern(len, seed)), "{} B", len);
            prop_assert!(matches!(net.result(0, sent), Some(Ok(_))));
        }
        prop_assert_eq!(net.pending(), 0);
    }
}

/// Sends messages of these lengths, and checks that they arrive intact.
fn transfer(net: &mut Net, lens: &[usize]) -> Result<(), TestCaseError> {
    let content: Vec<_> = lens.iter().enumerate().map(|(i, &len)| pattern(len, i as u64)).collect();
    let received: Vec<_> = lens.iter().map(|&len| net.recv(1, from(0), 0, exact(1), len)).collect();
    for data in &content {
        net.send(0, 1, 0, 1, data);
    }
    net.settle();
    for (recv, data) in received.into_iter().zip(&content) {
        prop_assert!(net.got(1, recv, data), "{} B", data.len());
    }
    prop_assert_eq!(net.pending(), 0);
    net.memory(|memory| memory.check());
    Ok(())
}
