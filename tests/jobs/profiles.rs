//! Jobs that measure their rails, or use what others have measured.

use crate::cases::open;
use crate::lost::ignore_termination;
use crate::pattern;
use newmadeleine::engine::{Doubt, Effort, Engine, PeerId, Profile};
use newmadeleine::sampling::{Key, Origin, ProfileInfo, cache};
use newmadeleine::{Encryption, Options, Session};
use std::fs::DirEntry;
use std::path::PathBuf;
use std::process::Command;
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

/// What earlier jobs have kept.
fn kept() -> Vec<(PathBuf, Profile)> {
    let Ok(files) = std::fs::read_dir(cache::folder().expect("the case names one")) else {
        return Vec::new();
    };
    let path = |file: std::io::Result<DirEntry>| file.expect("it can be listed").path();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        (path, Profile::parse(&text).expect("a whole profile"))
    };
    files.map(path).map(read).collect()
}

fn find<'a>(kept: &'a [(PathBuf, Profile)], key: &Key) -> Option<&'a Profile> {
    let is_it = |(_, profile): &&(PathBuf, Profile)| profile.provenance().key == key.to_string();
    kept.iter().find(is_it).map(|(_, profile)| profile)
}

fn doubt(profile: &Profile) -> Option<Doubt> {
    profile.provenance().doubt.clone()
}

/// The first job measures, the second one knows; unless the first one was disturbed, as it may be.
pub fn once() {
    let before = kept();
    assert_eq!(before.is_empty(), round() == 0, "{before:?}");
    let begun = Instant::now();
    let session = open();
    let took = begun.elapsed();
    for (origin, info) in origins(&session).into_iter().zip(session.profiles()) {
        let is_known = find(&before, &info.key).is_some_and(|profile| doubt(profile).is_none());
        assert_eq!(matches!(origin, Origin::Measured), !is_known, "{origin:?} {before:?}");
        assert_eq!(matches!(origin, Origin::Cache(_)), is_known, "{origin:?} {before:?}");
    }
    let all_known = round() > 0 && before.iter().all(|(_, profile)| doubt(profile).is_none());
    assert!(took < Duration::from_secs(if all_known { 5 } else { 20 }), "{took:?}");
    talk(&session);
    session.close().unwrap();
}

/// Rank 1 encrypts links for which rank 0 has no setting. Rank 0 has no profile then, since its key is that
/// of links without encryption.
pub fn of_unlike_settings() {
    let mut options = Options::load().expect("settings that are right");
    let mine = std::env::var("PMI_RANK").expect("the launcher says it");
    if mine == "1" {
        options.encrypt = Encryption::On;
    }
    let session = Session::open_with(&options).unwrap_or_else(|e| panic!("{e}"));
    let is_encrypted = |info: &ProfileInfo| info.key.rail.ends_with(" encrypted");
    let found: Vec<_> =
        session.profiles().iter().map(|info| (is_encrypted(info), info.known.is_some())).collect();
    assert_eq!(found, if mine == "1" { [(true, true)] } else { [(false, false)] });
    talk(&session);
    assert!(session.rails()[0].cipher.is_some());
    session.close().unwrap();
}

/// What the first job has kept is put in doubt, and the next one measures again; after enough of that none
/// does, nor where there is no doubt.
pub fn provisional() {
    let says = |count| Doubt { count, degree: u32::MAX, why: "as the test says".into() };
    let (before, again) = match round() {
        0 => (None, Some(says(1))),
        1 => (Some(says(1)), Some(says(5))),
        2 => (Some(says(5)), None),
        _ => (None, None),
    };
    assert!(kept().iter().all(|(_, profile)| doubt(profile) == before), "{:?}", kept());
    let session = open();
    let measures = round() < 2;
    for origin in origins(&session) {
        assert_eq!(matches!(origin, Origin::Measured), measures, "{origin:?}");
    }
    for info in session.profiles() {
        // It may be disturbed again, but less than the test has said.
        let doubt = info.known.as_ref().and_then(|(profile, _)| doubt(profile));
        assert!(doubt == before || (measures && doubt.is_none_or(|doubt| doubt.count == round() + 1)));
    }
    talk(&session);
    let rank = session.rank();
    session.close().unwrap();
    if rank == 0 {
        for (path, profile) in kept() {
            std::fs::write(path, profile.doubted(again.clone()).print()).expect("it can be written");
        }
    }
}

/// Each job measures a rail that loses one in sixteen frames, and none believes another. Even a short
/// measurement sees more of them lost than a doubt needs.
pub fn while_it_loses() {
    // Each rank does it, so that both read the interface as it is then.
    nmad_testbed::set(None, 0, nmad_testbed::What::Loss(16)).unwrap_or_else(|e| panic!("{e}"));
    let before = kept();
    // Lost frames are waited for.
    let effort = Effort { budget_ns: 2_000_000_000, ..Effort::QUICK };
    let options = Options { effort: Some(effort), ..Options::load().unwrap() };
    let session = Session::open_with(&options).unwrap_or_else(|e| panic!("{e}"));
    talk(&session);
    for info in session.profiles() {
        let before = find(&before, &info.key).map(|known| doubt(known).expect("it has lost").count);
        // Beside other work the time for it may be too short, and what was known stays.
        let expected = match &info.known {
            Some((_, Origin::Measured)) => Some(before.unwrap_or(0) + 1),
            _ => before,
        };
        let known = info.known.as_ref().map(|(profile, _)| profile);
        let count = known.map(|profile| doubt(profile).expect("it loses").count);
        assert_eq!(count, expected, "{:?}", known.map(|profile| profile.provenance()));
    }
    session.close().unwrap();
}

/// What the selector of shared memory has found in the first job is kept, and known to the second one.
pub fn learnt() {
    let session = open();
    let known =
        |info: &ProfileInfo| info.known.as_ref().is_some_and(|(profile, _)| !profile.learnt().is_empty());
    let is_learnt = session.profiles().iter().any(known);
    // Where ranks share a core the receiver copies, and nothing is compared.
    assert_eq!(is_learnt, round() > 0 && session.cores() > 1, "{:?}", session.profiles());
    let (mut data, other) = (pattern(100_000, 1), session.rank() ^ 1);
    for _ in 0..200 {
        match session.rank() {
            0 => session.send(other, 3, &data).unwrap(),
            _ => _ = session.recv(other, 3, &mut data).unwrap(),
        }
    }
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

/// Both ranks are stopped while they measure, for longer than anybody waits for an answer. They may have too
/// little time left to measure then, but lose nobody.
pub fn stopped() {
    let stops = "sleep 0.3; kill -STOP $PPID; sleep 11; kill -CONT $PPID";
    let mut stops = Command::new("sh").args(["-c", stops]).spawn().expect("there is a shell");
    let begun = Instant::now();
    let effort = Effort { budget_ns: 3_000_000_000, ..Effort::FULL };
    let options = Options { effort: Some(effort), ..Options::load().unwrap() };
    let session = Session::open_with(&options).unwrap_or_else(|e| panic!("{e}"));
    assert!(begun.elapsed() > Duration::from_secs(11), "it was stopped while it measured");
    talk(&session);
    session.close().unwrap();
    stops.wait().expect("it has ended");
}

pub fn receipts() {
    let session = open();
    if session.rank() == 0 {
        // Both rails are candidates only when both are open.
        session.send(1, 3, &[]).unwrap();
        let both = |engine: &mut Engine| {
            engine.inspect().peer_view(PeerId(1)).is_some_and(|view| view.links_up == 2)
        };
        assert!(session.node().wait_for(Duration::from_secs(5), both), "both rails open");
        session.record_receipts(true);
        for len in [8, 1 << 20] {
            session.send(1, 1, &pattern(len, 1)).unwrap();
        }
        session.recv(1, 2, &mut []).unwrap();
        for (len, announced) in [(8, false), (1 << 20, true)] {
            let receipt = session.next_receipt().expect("each has one");
            assert_eq!((receipt.envelope.len, !receipt.protocol.is_eager()), (len, announced));
            assert_eq!(receipt.carried.iter().map(|(_, bytes)| bytes).sum::<u64>(), len, "{receipt:?}");
            assert!(
                receipt.actual_ns > 0 && receipt.predicted_ns > 0 && receipt.candidates.len() == 2,
                "{receipt:?}"
            );
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
