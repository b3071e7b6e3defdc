//! Sampling: the origin of the session's profiles.
//!
//! The session uses a stored or shipped profile. It measures missing profiles when it opens, once for each
//! kind of rail and distance: one pair of ranks measures while the others wait, and all ranks get the
//! result. Later jobs measure disturbed profiles again. This folder knows files, ranks and rails by name.
//! The engine (`nmad_engine::profile`), which has no clock and no files, chooses the probes and evaluates
//! them.
//!
//! - [`hardware`]: the description of a rail, the key of its profile;
//! - `interface`: the kernel's properties of an interface, and its limits;
//! - [`cache`]: profiles as files;
//! - `learnt`: values that drivers have measured for their own choices, stored with the profiles;
//! - `stock`: the profiles that this process has and lacks;
//! - `plan`: assignment of measurements to ranks; `measure`, `talk`, `host`: the measurement; `report`,
//!   `bar`: messages to the user;
//! - `doubt`: disturbed measurements; `queue`: waiting for a core.

mod bar;
pub mod cache;
mod doubt;
pub mod hardware;
mod host;
mod interface;
pub(crate) mod learnt;
mod measure;
mod plan;
mod queue;
mod report;
mod stock;
mod talk;

pub use hardware::{Distance, Key};
pub(crate) use stock::{RailToSample, Stock};

use crate::options::Options;
use nmad_drivers::interface::{Interface, interfaces};
use nmad_engine::{Driver, PeerId, Profile, RailId};
use nmad_progress::Node;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Origin of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// This session measured it.
    Measured,
    /// Stored by an earlier measurement, in this file.
    Cache(PathBuf),
    /// From the file that the user named.
    Shipped(PathBuf),
}

/// A profile that a session uses.
#[derive(Debug, Clone)]
pub struct ProfileInfo {
    /// The rail, for example `tcp/eth1`.
    pub rail: String,
    /// Its number.
    pub number: u8,
    /// The key of the rail.
    pub key: Key,
    /// The profile and its origin; `None`: nominal figures are used.
    pub known: Option<(Arc<Profile>, Origin)>,
}

/// Returns the known profiles of rails, given by their names and the distance of their peers, without
/// measuring; and errors of files that cannot be used.
pub fn known(options: &Options, rails: &[(String, Distance)]) -> (Vec<ProfileInfo>, Vec<String>) {
    let mut complaints = Vec::new();
    let shipped = options.profile.as_deref().map_or(Ok(Vec::new()), cache::shipped);
    let shipped = shipped.unwrap_or_else(|why| {
        complaints.push(why);
        Vec::new()
    });
    let (host, interfaces) = (hardware::host(), interfaces().unwrap_or_default());
    let mut info = |(number, (name, distance)): (usize, &(String, Distance))| {
        let encrypts = encrypts(options, &interfaces, name);
        let words = hardware::rail(name, options.throttle.get(number).copied(), encrypts);
        let key = Key { rail: words, distance: *distance, host: host.clone() };
        let found = find(&key, &shipped, options.profile.as_deref());
        let found = found.unwrap_or_else(|why| {
            complaints.push(why);
            None
        });
        let known = found.map(|(profile, origin)| (Arc::new(profile), origin));
        ProfileInfo { rail: name.clone(), number: number as u8, key, known }
    };
    let list = rails.iter().enumerate().map(&mut info).collect();
    (list, complaints)
}

/// Returns whether the policy encrypts the links of a rail with this name.
fn encrypts(options: &Options, interfaces: &[Interface], name: &str) -> bool {
    let interface = interfaces.iter().find(|interface| encryptable(name) == Some(&*interface.name));
    interface.is_some_and(|interface| options.encrypt.covers(interface.address))
}

/// Returns the interface of a rail with this name if its links can be encrypted: adapters and shared memory
/// never encrypt.
fn encryptable(name: &str) -> Option<&str> {
    let (driver, interface) = name.split_once('/')?;
    matches!(driver, "tcp" | "udp" | "packet").then_some(interface)
}

/// Returns those of `peers` whose links over a rail are encrypted if and only if the key of the rail's
/// profile says so. The links to others, which are in `encrypting` (ascending) although the policy of this
/// side does not encrypt, are neither measured for that profile nor predicted by it.
pub(crate) fn as_expected(rail: &dyn Driver, peers: &[u32], encrypting: &[u32]) -> Vec<u32> {
    let may_differ = encryptable(rail.name()).is_some() && !rail.limits().encrypts;
    let (unexpected, others): (Vec<u32>, Vec<u32>) =
        peers.iter().partition(|peer| may_differ && encrypting.binary_search(peer).is_ok());
    if let [first, ..] = unexpected[..] {
        log::warn!(
            "rank {first} encrypts the link over {}, and this rank does not ask for that; the link is used \
             without a profile (set NMAD_ENCRYPT alike for all ranks)",
            rail.name()
        );
    }
    others
}

/// Marks profiles in the cache that transfers have clearly contradicted as provisional, so that the next job
/// measures them again.
pub(crate) fn doubt_refuted(node: &Node, profiles: &[ProfileInfo], size: u32) {
    for ProfileInfo { number, key, known, .. } in profiles {
        let refuted = |rank| node.with(|engine| engine.inspect().refutation(RailId(*number), PeerId(rank)));
        let is_ours = |profile: &Profile| profile.provenance().doubt.is_none();
        let Some((profile, Origin::Measured | Origin::Cache(_))) = known else { continue };
        let Some(doubt) = (0..size).find_map(refuted).filter(|_| is_ours(profile)) else { continue };
        if let Some(folder) = cache::folder() {
            let doubted = Profile::clone(profile).doubted(Some(doubt));
            if let Err(error) = cache::store(&folder, key, &doubted) {
                log::warn!("the profile of '{key}' cannot be marked as wrong: {error}");
            }
        }
    }
}

/// Returns the profile of this key, from the shipped ones or the cache.
///
/// # Errors
/// The profile exists and cannot be used.
fn find(key: &Key, shipped: &[Profile], file: Option<&Path>) -> Result<Option<(Profile, Origin)>, String> {
    let is_it = |profile: &&Profile| profile.provenance().key == key.to_string();
    let portable = key.portable();
    let fits = |profile: &&Profile| profile.provenance().key.split(" | ").next() == Some(&portable);
    let best = shipped.iter().find(is_it).or_else(|| shipped.iter().find(fits));
    if let (Some(profile), Some(file)) = (best, file) {
        return Ok(Some((profile.clone(), Origin::Shipped(file.into()))));
    }
    let Some(folder) = cache::folder() else { return Ok(None) };
    let found = cache::load(&folder, key)?;
    Ok(found.map(|profile| (profile, Origin::Cache(cache::path(&folder, key)))))
}
