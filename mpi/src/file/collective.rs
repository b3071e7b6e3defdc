//! Accesses of all ranks: what each of them wants is told to all, so that all choose the same way, and so is
//! how it has ended.

use super::exchange::Exchange;
use super::lost::UnlessLost;
use super::told;
use super::transfer::{Asked, Transfer};
use super::whole::told_of_failures;
use super::wire::Wire;
use super::{File, Kind, lock};
use crate::comm::{Party, decode, encode, party};
use crate::error::Result;
use crate::status::Status;
use newmadeleine::tell_user;
use nmad_file::Asking;
use nmad_file::hints::Switch;
use nmad_file::plan::{self, Load};
use nmad_file::{Layout, Regions};
use std::fmt;
use std::sync::Arc;

/// The agreements of one access, in the order in which ranks begin accesses.
pub(super) struct Parties {
    order: Party,
    base: Party,
    wants: Party,
    ends: Party,
    words: Party,
    wire: Wire,
}

impl Parties {
    pub(super) fn new(file: &File) -> Parties {
        let [order, base, wants, ends, words] = [(); 5].map(|()| party(&file.on.comm));
        Parties { order, base, wants, ends, words, wire: Wire::new(file) }
    }
}

const NUMBERS: usize = 7;

/// What a rank tells the others about its access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Want {
    begin: u64,
    end: u64,
    load: Load,
    /// Predicted nanoseconds if it makes the system calls itself.
    direct_ns: u64,
    /// Its pieces ascend, so that they can be divided by regions.
    ascends: bool,
    /// It goes by owners if it is one of one rank.
    by_owners: bool,
}

impl Want {
    fn of(file: &File, kind: Kind, transfer: Option<&Transfer>) -> Want {
        let hull = transfer.and_then(|transfer| transfer.pieces.hull());
        let (begin, end) = hull.unwrap_or((0, 0));
        let load = transfer.map_or(Load::default(), |transfer| Load::of(&transfer.pieces));
        let ascends = transfer.is_none_or(|transfer| transfer.pieces.is_ascending());
        let direct_ns = transfer.map_or(0, |transfer| file.direct_ns(kind, &transfer.pieces));
        Want { begin, end, load, direct_ns, ascends, by_owners: file.goes_by_owners() }
    }

    fn numbers(self) -> [i64; NUMBERS] {
        let Want { begin, end, load, direct_ns, ascends, by_owners } = self;
        let [begin, end, pieces, bytes, ns] =
            [begin, end, load.pieces, load.bytes, direct_ns].map(|n| n as i64);
        [begin, end, pieces, bytes, ns, ascends.into(), by_owners.into()]
    }

    fn from(numbers: [i64; NUMBERS]) -> Want {
        let [begin, end, pieces, bytes, direct_ns, ascends, by_owners] = numbers.map(|n| n as u64);
        let load = Load { pieces, bytes };
        Want { begin, end, load, direct_ns, ascends: ascends != 0, by_owners: by_owners != 0 }
    }
}

/// The ways that an access of all ranks may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Each rank accesses the file by itself.
    Direct,
    /// The owners of regions access it for all.
    Owners,
}

/// A choice and its reasons.
struct Choice {
    way: Way,
    direct_ns: u64,
    owners_ns: u64,
    why: &'static str,
}

impl Choice {
    fn told(&self, kind: Kind, load: Load, owners: Vec<i32>) -> told::Told {
        let (way, predicted_ns) = match self.way {
            Way::Direct => (told::Way::TogetherDirectly, self.direct_ns),
            Way::Owners => (told::Way::TogetherByOwners, self.owners_ns),
        };
        told::Told { kind, way, owners, load, predicted_ns }
    }
}

/// Runs the access of this rank with those of all others. `asked` has the buffer and, unless the access is in
/// `ordered` mode, the offset; or what is wrong with them.
pub(super) fn run(
    file: Arc<File>,
    (kind, ordered): (Kind, bool),
    asked: Result<(Asked, Option<i64>)>,
    parties: Parties,
) -> impl Future<Output = Result<Status>> + Send + use<> {
    let inner = steps(file.clone(), (kind, ordered), asked, parties);
    UnlessLost::new(file, inner)
}

async fn steps(
    file: Arc<File>,
    (kind, ordered): (Kind, bool),
    asked: Result<(Asked, Option<i64>)>,
    Parties { order, base, wants, ends, words, wire }: Parties,
) -> Result<Status> {
    let asked = if ordered { in_order(&file, asked, (&order, &base)).await? } else { asked };
    let transfer = asked.and_then(|(asked, offset)| asked.at(&file, &file.view(), offset.unwrap_or(0)));
    let want = Want::of(&file, kind, transfer.as_ref().ok());
    let begun = file.begun();
    let all = decode(&wants.gather(encode(&want.numbers())).await?);
    let all: Vec<Want> = all.as_chunks::<NUMBERS>().0.iter().map(|numbers| Want::from(*numbers)).collect();
    let layout = file.layout();
    let choice = choose(&file, kind, &all, &layout);
    let regions = &layout.regions;
    if file.rank() == 0 && crate::collective::explains() {
        tell_user(format_args!("nmad: {}", Told { file: &file, kind, all: &all, regions, choice: &choice }));
    }
    let (transfer, wrong) = match transfer {
        Ok(transfer) => (Some(transfer), None),
        Err(wrong) => (None, Some(wrong)),
    };
    // What is wrong with the arguments of one rank is an error of that rank only.
    let (ended, failed) = match choice.way {
        Way::Direct => {
            let ended = match transfer {
                None => Ok(None),
                Some(transfer) => transfer.perform_together().await.map(Some),
            };
            match ended {
                Ok(ended) => (ended, None),
                Err(error) => (None, Some(error)),
            }
        }
        Way::Owners => {
            if let Some(transfer) = &transfer {
                file.disk.note(&transfer.pieces);
            }
            let exchange = Exchange { file: &file, kind, wire: &wire, regions };
            let (done, failed) = exchange.run(transfer.as_ref()).await;
            let ended = transfer.map(|transfer| transfer.finish(done)).transpose();
            match ended {
                Ok(ended) => (ended, failed),
                Err(error) => (None, Some(error)),
            }
        }
    };
    told_of_failures(file.disk.path(), failed, (&ends, &words)).await?;
    if let Some(begun) = begun {
        let owned = choice.way == Way::Owners;
        let owners = if owned { regions.owners().to_vec() } else { vec![file.rank()] };
        file.ended(&begun, choice.told(kind, want.load, owners));
    }
    match (wrong, ended) {
        (Some(wrong), _) => Err(wrong),
        (None, Some(ended)) => Ok(ended),
        (None, None) => Ok(Status::SENT),
    }
}

/// Finds where the access of this rank begins behind those of the ranks before it.
async fn in_order(
    file: &File,
    asked: Result<(Asked, Option<i64>)>,
    (order, base): (&Party, &Party),
) -> Result<Result<(Asked, Option<i64>)>> {
    let view = file.view();
    let asked = asked.and_then(|(asked, _)| Ok((view.elements(asked.len())?, asked)));
    let mine = asked.as_ref().map_or(0, |(elements, _)| *elements);
    let all = decode(&order.gather(encode(&[mine])).await?);
    let sum: i64 = all.iter().sum();
    // Rank 0 has the pointer in its own memory.
    let first = if file.rank() == 0 { Some(encode(&[file.shared.advance(sum)?])) } else { None };
    let first = decode(&base.spread(first).await?)[0];
    let before: i64 = all.iter().take(file.rank() as usize).sum();
    Ok(asked.map(|(_, asked)| (asked, Some(first + before))))
}

/// Chooses the way of an access, alike on all ranks.
fn choose(file: &File, kind: Kind, all: &[Want], layout: &Layout) -> Choice {
    let sum = all.iter().fold(Load::default(), |sum, want| Load {
        pieces: sum.pieces + want.load.pieces,
        bytes: sum.bytes + want.load.bytes,
    });
    let direct_ns = all.iter().map(|want| want.direct_ns).max().unwrap_or(0);
    let owners_ns = plan::exchanged_ns(sum, all.len() as u64, layout.regions.owners().len() as u64);
    let overlap = meet(all, 1);
    let hint = lock(&file.hints).exchanges(kind == Kind::Read);
    let is_apart = file.is_coherent() || !meet(all, file.disk.system().block);
    let (way, why) = match hint {
        _ if all.len() == 1 => (Way::Direct, "one rank"),
        _ if all.iter().any(|want| !want.ascends) => (Way::Direct, "pieces do not ascend"),
        _ if !is_apart => (Way::Owners, "nodes do not see each other's writes"),
        _ if !layout.is_atomic && all.iter().any(|want| want.by_owners) => {
            (Way::Owners, "accesses of one rank go by owners")
        }
        _ if overlap && layout.is_atomic => (Way::Owners, "atomic mode"),
        Switch::Enable => (Way::Owners, "hint"),
        Switch::Disable => (Way::Direct, "hint"),
        Switch::Automatic if owners_ns < direct_ns => (Way::Owners, "predicted"),
        Switch::Automatic => (Way::Direct, "predicted"),
    };
    Choice { way, direct_ns, owners_ns, why }
}

/// Whether two ranks access the same unit of the file, as far as their first and last bytes say.
fn meet(all: &[Want], unit: u64) -> bool {
    let mut hulls: Vec<(u64, u64)> = all
        .iter()
        .filter(|want| want.load.bytes > 0)
        .map(|want| (want.begin / unit, want.end.div_ceil(unit)))
        .collect();
    hulls.sort_unstable();
    hulls.windows(2).any(|pair| pair[0].1 > pair[1].0)
}

/// The line about a choice.
struct Told<'a> {
    file: &'a File,
    kind: Kind,
    all: &'a [Want],
    regions: &'a Regions,
    choice: &'a Choice,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Choice { way, direct_ns, owners_ns, why } = self.choice;
        let bytes: u64 = self.all.iter().map(|want| want.load.bytes).sum();
        let pieces: u64 = self.all.iter().map(|want| want.load.pieces).sum();
        write!(
            f,
            "{} of {bytes} B in {pieces} pieces by {} ranks, {} ({}): {}; predicted {} us directly, {} us by \
             {} owners of regions of {} B",
            if self.kind == Kind::Read { "read" } else { "write" },
            self.all.len(),
            self.file.disk.path().display(),
            self.file.disk.system().name,
            match way {
                Way::Direct => format!("each rank directly ({why})"),
                Way::Owners => format!("by owners ({why})"),
            },
            direct_ns / 1000,
            owners_ns / 1000,
            self.regions.owners().len(),
            self.regions.unit(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(begin: u64, end: u64) -> Want {
        let load = Load { pieces: 1, bytes: end - begin };
        Want { begin, end, load, direct_ns: 7, ascends: true, by_owners: false }
    }

    #[test]
    fn ranks_meet_in_units_that_both_touch() {
        assert!(!meet(&[want(0, 4096), want(4096, 8192)], 4096));
        assert!(meet(&[want(0, 4097), want(4097, 8192)], 4096));
        assert!(!meet(&[want(0, 4097), want(4097, 8192)], 1));
        assert!(meet(&[want(10, 20), want(0, 100)], 1) && !meet(&[want(7, 7), want(0, 100)], 1));
    }

    #[test]
    fn wants_survive_being_told() {
        let want = Want { ascends: false, ..want(3, 1 << 50) };
        assert_eq!(Want::from(want.numbers()), want);
    }
}
