//! Cases over rails that lose, and over an interface that is used in two ways.

use crate::cases::open;
use crate::pattern;
use newmadeleine::{Session, SessionError};
use nmad_engine::{Candidate, Forecast, RailId, Receipt};
use nmad_testbed::What;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// Bytes that cross the lossy rail; `NMAD_TEST_BULK` says another number: 1073741824 takes some seconds.
const BULK: usize = 32 << 20;

/// One in a hundred frames is lost, in both directions. Each side checks the data that arrives by its hash,
/// so that no side needs the other's data.
pub fn bulk_over_loss() {
    let session = open();
    let len = std::env::var("NMAD_TEST_BULK").map_or(BULK, |text| text.parse().expect("a number of bytes"));
    // The links are open before anything is lost: how they open is another matter.
    session.send(1 - session.rank(), 0, &[]).unwrap();
    session.recv(1 - session.rank(), 0, &mut []).unwrap();
    if session.rank() == 0 {
        nmad_testbed::set(None, 0, What::Loss(100)).unwrap_or_else(|e| panic!("{e}"));
        let data: Vec<u8> = (0..len as u64 / 8).flat_map(|n| mixed(n).to_le_bytes()).collect();
        let hash = hash(&data).to_le_bytes();
        session.send(1, 1, &data).unwrap_or_else(|e| panic!("{e}"));
        session.send(1, 2, &hash).unwrap_or_else(|e| panic!("{e}"));
        let resent = session.rails()[0].counters.resent;
        assert!(resent > len as u64 / 1_000_000, "{resent} orders were sent again: was anything lost?");
    } else {
        let (mut data, mut told) = (vec![0; len / 8 * 8], [0; 8]);
        session.recv(0, 1, &mut data).unwrap_or_else(|e| panic!("{e}"));
        session.recv(0, 2, &mut told).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(hash(&data), u64::from_le_bytes(told), "{len} B arrived changed");
    }
    session.close().unwrap();
}

/// What somebody throws at a rail is counted by it.
pub fn strangers() {
    let session = open();
    let dropped = || {
        let rails = session.rails().into_iter().filter(|rail| rail.name.starts_with("udp/"));
        rails.map(|rail| (rail.dropped, rail.address)).next().expect("there is such a rail")
    };
    let (before, address) = dropped();
    let port = address.rsplit(':').next().expect("it has a port");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&[7; 99], format!("127.0.0.1:{port}")).unwrap();
    while dropped().0 == before {
        session.node().turn();
    }
    session.close().unwrap();
}

/// The only rail becomes narrower while messages cross it, and once more.
pub fn narrower() {
    let session = open();
    let other = 1 - session.rank();
    let (data, mut buffer) = (pattern(4 << 20, 5), vec![0; 4 << 20]);
    for round in 0..30 {
        if session.rank() == 0 {
            session.send(other, 1, &data).unwrap_or_else(|e| panic!("round {round}: {e}"));
            continue;
        }
        // The sender is at the next one already.
        if let Some(mtu) = [(8, 1400), (16, 1280)].into_iter().find(|(at, _)| *at == round) {
            nmad_testbed::set(None, 0, What::Mtu(mtu.1)).unwrap_or_else(|e| panic!("{e}"));
        }
        session.recv(other, 1, &mut buffer).unwrap_or_else(|e| panic!("round {round}: {e}"));
        assert!(buffer == data, "round {round}");
        buffer.fill(0);
    }
    session.close().unwrap();
}

/// Everything is swallowed from some time on, while both ranks only wait: each learns that the other is gone.
pub fn swallowed() {
    let session = open();
    let other = 1 - session.rank();
    session.send(other, 0, &[]).unwrap();
    session.recv(other, 0, &mut []).unwrap();
    if session.rank() == 0 {
        nmad_testbed::set(None, 0, What::Loss(1)).unwrap_or_else(|e| panic!("{e}"));
    }
    let begun = Instant::now();
    let error = session.recv(other, 1, &mut []).unwrap_err();
    assert!(matches!(error, SessionError::PeerLost { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
}

/// The only interface is switched off while both ranks only wait: their calls report it.
pub fn down() {
    let session = open();
    let other = 1 - session.rank();
    session.send(other, 0, &[]).unwrap();
    session.recv(other, 0, &mut []).unwrap();
    // Nothing is on its way any more, of which the system would say at once that it cannot leave.
    std::thread::sleep(Duration::from_millis(100));
    nmad_testbed::set(None, 0, What::Down).unwrap_or_else(|e| panic!("{e}"));
    let error = session.recv(other, 1, &mut []).unwrap_err().to_string();
    assert!(error.contains("is an interface down?"), "{error}");
}

/// A rank makes no call for longer than a silent peer is waited for. Neither the one that waits for it loses
/// patience, nor the one that has sent it something.
pub fn computes_long() {
    let session = open();
    let other = 1 - session.rank();
    session.send(other, 0, &[]).unwrap();
    session.recv(other, 0, &mut []).unwrap();
    if session.rank() == 0 {
        session.send(1, 1, b"early").unwrap();
        session.recv(1, 2, &mut []).unwrap_or_else(|e| panic!("{e}"));
    } else {
        std::thread::sleep(Duration::from_secs(10));
        session.recv(0, 1, &mut [0; 5]).unwrap_or_else(|e| panic!("{e}"));
        session.send(0, 2, &[]).unwrap();
    }
    session.close().unwrap();
}

/// The queue of a shaped rail makes round trips long, and nothing is lost in it.
pub fn shaped() {
    let session = open();
    let data = pattern(16 << 20, 4);
    let mut buffer = vec![0; 16 << 20];
    for _ in 0..6 {
        match session.rank() {
            0 => session.send(1, 1, &data).unwrap(),
            _ => drop(session.recv(0, 1, &mut buffer).unwrap()),
        }
    }
    if session.rank() == 0 {
        let counters = session.rails()[0].counters;
        // Some chunks are sent again on a busy machine: a rank without a core does not acknowledge.
        assert!(counters.resent < counters.chunks / 4, "{counters:?}");
    } else {
        assert!(buffer == data);
    }
    session.close().unwrap();
}

/// Each message takes the rail that the profiles at its departure predict to be faster. On a machine with
/// other load those profiles are soon wrong, so there are several attempts.
pub fn two_ways() {
    let session = open();
    let begun = Instant::now();
    loop {
        let other = which_way(&session);
        let ends = other.is_none() || begun.elapsed() > Duration::from_secs(20);
        let mut told = [u8::from(ends)];
        match session.rank() {
            0 => session.send(1, 3, &told).unwrap(),
            _ => drop(session.recv(0, 3, &mut told).unwrap()),
        }
        if told == [1] {
            assert_eq!(other, None);
            break;
        }
    }
    session.close().unwrap();
}

/// Sends short and long messages to and fro; what rank 0 says of them if too many went the slower way.
fn which_way(session: &Session) -> Option<String> {
    let (short, long) = (pattern(8, 1), pattern(4 << 20, 2));
    let mut buffer = vec![0; 4 << 20];
    let mut round = |data: &[u8]| {
        if session.rank() == 0 {
            session.send(1, 1, data).unwrap();
            session.recv(1, 2, &mut []).unwrap();
        } else {
            session.recv(0, 1, &mut buffer).unwrap();
            assert!(buffer[..data.len()] == *data);
            session.send(0, 2, &[]).unwrap();
        }
    };
    // Both links open, and promises settle.
    (0..5).for_each(|_| round(&long));
    session.record_receipts(session.rank() == 0);
    (0..200).for_each(|_| round(&short));
    (0..10).for_each(|_| round(&long));
    let receipts: Vec<Receipt> = std::iter::from_fn(|| session.next_receipt()).collect();
    session.record_receipts(false);
    if session.rank() != 0 {
        return None;
    }
    [(short.len(), 200), (long.len(), 10)].into_iter().find_map(|(len, count)| {
        let of_len: Vec<_> = receipts.iter().filter(|r| r.envelope.len == len as u64).collect();
        assert_eq!(of_len.len(), count);
        let other: Vec<_> = of_len.iter().filter(|receipt| !went_the_faster_way(session, receipt)).collect();
        (other.len() > count / 10).then(|| format!("{} of {count}, for example {:?}", other.len(), other[0]))
    })
}

/// Whether a message went one of the ways than which no other was known to be much faster; of two that are
/// about as fast its end may go the other way. Long ones go by what the ways were measured to do: load, by
/// which predictions are corrected, is of both.
fn went_the_faster_way(session: &Session, receipt: &Receipt) -> bool {
    let measured = |rail: RailId| {
        let info = session.profiles().iter().find(|info| info.number == rail.0);
        info.and_then(|info| info.known.as_ref()).map(|(profile, _)| Forecast::new(profile.clone()))
    };
    let alone = |candidate: &Candidate| match measured(candidate.rail) {
        Some(forecast) if !receipt.protocol.is_eager() => {
            candidate.busy_ns + forecast.body_ns(receipt.envelope.len)
        }
        _ => candidate.alone_ns,
    };
    let best = receipt.candidates.iter().map(alone).min().unwrap_or(0);
    let is_good = |rail: RailId| {
        let own = receipt.candidates.iter().find(|candidate| candidate.rail == rail).map(alone);
        own.is_some_and(|own| own <= best + best / 5)
    };
    let tenth = receipt.envelope.len / 10;
    let mut used = receipt.carried.iter().filter(|(_, bytes)| *bytes > tenth);
    receipt.candidates.len() == 2 && !receipt.carried.is_empty() && used.all(|(rail, _)| is_good(*rail))
}

/// Numbers that look like chance, so that no piece equals another.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// FNV-1a over words.
fn hash(data: &[u8]) -> u64 {
    let words = data.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
    })
}
