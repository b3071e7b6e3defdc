//! Jobs that measure their rails, or use what others have measured.

use crate::cases::{ignore_termination, open, pattern};
use newmadeleine::engine::{Effort, Engine, PeerId, Profile};
use newmadeleine::sampling::{Origin, ProfileInfo, cache};
use newmadeleine::{Options, Session};
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn round() -> u32 {
    std::env::var(crate::ROUND).expect("the round is told").parse().expect("a number")
}

/// Every rail has a profile, of its own kind.
fn origins(session: &Session) -> Vec<Origin> {
    let origin = |info: &ProfileInfo| {
        let (profile, origin) = info.known.clone().unwrap_or_else(|| panic!("nothing of {}", info.key));
        assert_eq!(profile.provenance().key, info.key.to_string());
        assert!(profile.thresholds().is_some());
        origin
    };
    let origins: Vec<Origin> = session.profiles().iter().map(origin).collect();
    assert!(!origins.is_empty());
    origins
}

/// Messages of all kinds still arrive in order after measuring.
fn talk(session: &Session) {
    let other = session.rank() ^ 1;
    for len in [0, 8, 5_000, 70_000, 1 << 20] {
        let (out, mut into) = (pattern(len, 1), vec![0; len]);
        session
            .scope(|scope| {
                scope.recv(other, 3, &mut into)?;
                scope.send(other, 3, &out)?;
                Ok(())
            })
            .unwrap();
        assert!(into == out);
    }
}

/// The first job measures, the second one knows.
pub fn once() {
    let begun = Instant::now();
    let session = open();
    let took = begun.elapsed();
    for origin in origins(&session) {
        assert_eq!(matches!(origin, Origin::Measured), round() == 0, "{origin:?}");
        assert_eq!(matches!(origin, Origin::Cache(_)), round() > 0, "{origin:?}");
    }
    assert!(took < Duration::from_secs(if round() == 0 { 20 } else { 5 }), "{took:?}");
    talk(&session);
    session.close().unwrap();
}

/// Each job measures a rail that loses one in twenty frames, and none believes another.
pub fn while_it_loses() {
    if std::env::var("PMI_RANK").is_ok_and(|rank| rank == "0") {
        nmad_testbed::set(None, 0, nmad_testbed::What::Loss(20)).unwrap_or_else(|e| panic!("{e}"));
    }
    let session = open();
    let origins = origins(&session);
    assert!(origins.iter().all(|origin| *origin == Origin::Measured), "{origins:?}");
    let kept = std::fs::read_dir(cache::folder().expect("the case names one")).map_or(0, Iterator::count);
    assert_eq!(kept, 0, "files were kept");
    talk(&session);
    session.close().unwrap();
}

/// Rank 0 damages the file when the first job is over.
pub fn damaged() {
    let session = open();
    assert!(origins(&session).iter().all(|origin| *origin == Origin::Measured));
    let (rank, key) = (session.rank(), session.profiles()[0].key.clone());
    talk(&session);
    session.close().unwrap();
    if rank == 0 {
        let path = cache::path(&cache::folder().expect("there is one"), &key);
        let text = std::fs::read_to_string(&path).expect("it was kept");
        std::fs::write(&path, &text[..text.len() / 2]).expect("it can be damaged");
    }
}

pub fn measured() {
    let session = open();
    assert!(origins(&session).iter().all(|origin| *origin == Origin::Measured));
    talk(&session);
    session.close().unwrap();
}

pub fn nothing() {
    let session = open();
    assert!(!session.profiles().is_empty());
    assert!(session.profiles().iter().all(|info| info.known.is_none()));
    talk(&session);
    session.close().unwrap();
}

/// The first job measures, and its profile is shipped to the second one under another kernel's name; the
/// third one finds a file that is of other hardware.
pub fn shipped() {
    let file = PathBuf::from(std::env::var_os("XDG_CACHE_HOME").expect("it is told")).join("shipped");
    let mut options = Options::load().unwrap();
    if round() > 0 {
        options.set("profile", file.to_str().expect("text")).unwrap();
    }
    let session = Session::open_with(&options).unwrap();
    let expected = if round() == 1 { Origin::Shipped(file.clone()) } else { Origin::Measured };
    let info = session.profiles()[0].clone();
    let (profile, origin) = info.known.expect("there is one");
    assert_eq!(origin, expected);
    let rank = session.rank();
    session.close().unwrap();
    if rank == 0 {
        let (rail, _) =
            info.key.to_string().split_once(" | ").map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
        let rail = if round() == 0 { rail } else { "another rail, same host".into() };
        let mut provenance = profile.provenance().clone();
        provenance.key = format!("{rail} | another host");
        let methods = newmadeleine::engine::Method::ALL.into_iter();
        let samples =
            methods.flat_map(|method| profile.samples(method).iter().map(move |&sample| (method, sample)));
        std::fs::write(&file, Profile::new(provenance, samples).unwrap().print()).expect("it can be written");
        let kept = cache::path(&cache::folder().expect("there is one"), &info.key);
        let _ = std::fs::remove_file(kept);
    }
}

/// Rank 1 dies while it is measured with.
pub fn killed() {
    let options = Options { effort: Some(Effort::FULL), ..Options::load().unwrap() };
    if std::env::var_os("PMI_RANK").is_some_and(|rank| rank == "1") {
        std::thread::spawn(|| {
            // Far less than full effort takes, and more than opening a session does.
            std::thread::sleep(Duration::from_secs(1));
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        });
    } else {
        ignore_termination();
    }
    let begun = Instant::now();
    let error = Session::open_with(&options).err().expect("rank 1 is dead").to_string();
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    assert!(error.contains("rank 1") && error.contains("NMAD_SAMPLE=off"), "{error}");
}

pub fn receipts() {
    let session = open();
    if session.rank() == 0 {
        // Both rails are candidates only when both are open.
        session.send(1, 3, &[]).unwrap();
        let both = |engine: &mut Engine| engine.peer_view(PeerId(1)).is_some_and(|view| view.links_up == 2);
        assert!(session.node().wait_for(Duration::from_secs(5), both), "both rails open");
        session.record_receipts(true);
        for len in [8, 1 << 20] {
            session.send(1, 1, &pattern(len, 1)).unwrap();
        }
        session.recv(1, 2, &mut []).unwrap();
        for (len, announced) in [(8, false), (1 << 20, true)] {
            let receipt = session.next_receipt().expect("each has one");
            assert_eq!((receipt.envelope.len, receipt.announced), (len, announced));
            assert_eq!(receipt.carried.iter().map(|(_, bytes)| bytes).sum::<u64>(), len, "{receipt:?}");
            // What is copied into a packet has ended at once.
            assert_eq!(receipt.actual_ns > 0, announced, "{receipt:?}");
            assert!(receipt.predicted_ns > 0 && receipt.candidates.len() == 2, "{receipt:?}");
        }
        assert_eq!(session.next_receipt(), None);
    } else {
        session.recv(0, 3, &mut []).unwrap();
        for len in [8, 1 << 20] {
            session.recv(0, 1, &mut vec![0; len]).unwrap();
        }
        session.send(0, 2, &[]).unwrap();
    }
    session.close().unwrap();
}
