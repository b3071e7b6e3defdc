//! How windows are made: all ranks tell each other what they have, and choose ways by what they find.

use super::dynamic::Attached;
use super::epoch::Epoch;
use super::locks::{self, Words};
use super::memory::Common;
use super::row::{Row, gather, mark, readable};
use super::{Flavor, Peer, Predefined, WINDOWS, Way, Window, lock, service, settings};
use crate::api;
use crate::collective::share_memory;
use crate::comm::{self, Named};
use crate::constant::SplitType;
use crate::errhandler;
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::handle::{Comm, Win};
use crate::info::Infos;
use crate::memory;
use crate::world::{World, world};
use newmadeleine::engine::{Exposure, PeerId};
use newmadeleine::{SharedMemory, huge};
use nmad_rma::{Base, Origin, Target};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// `MPI_WIN_UNIFIED`
const UNIFIED: i32 = 321;
/// Windows begin on pages.
const PAGE: usize = SharedMemory::SHORT_PAGE;
/// The hint by which the memory of each rank begins on a page of its own.
const APART: &str = "alloc_shared_noncontig";
/// The key that says whether our memory is of huge pages.
const HUGE: &str = "nmad_huge_pages";
/// Hints that a window has if the program gives no others.
const HINTS: [(&str, &str); 6] = [
    ("no_locks", "false"),
    ("accumulate_ordering", "rar,raw,war,waw"),
    ("accumulate_ops", "same_op_no_op"),
    ("mpi_accumulate_granularity", "0"),
    ("same_size", "false"),
    ("same_disp_unit", "false"),
];

/// What a program asks for.
pub(crate) struct Wish {
    pub(crate) flavor: Flavor,
    /// Memory of the program.
    pub(crate) base: *mut c_void,
    pub(crate) size: i64,
    pub(crate) unit: i64,
    pub(crate) info: Option<Arc<Infos>>,
}

/// The ranks of our node.
struct Node {
    comm: Comm,
    place: usize,
    /// Where the memory of each begins in what they have in common.
    starts: Vec<usize>,
    common: Option<Arc<Common>>,
    /// Bytes of the huge pages of what they have in common; none: it has none.
    huge: Option<usize>,
    /// Bytes to a multiple of which their memory is aligned.
    unit: usize,
    leader: i64,
}

/// Makes a window.
///
/// # Errors
/// An argument is wrong, ranks that have to share memory cannot, or there is no memory left.
pub(crate) fn make(handle: Comm, wish: &Wish) -> Result<Win> {
    world()?;
    let old = comm::share(handle)?;
    if old.remote().is_some() {
        return Err(Class::COMM.error("windows are made of intracommunicators: this is an intercommunicator"));
    }
    check(wish)?;
    let unit = wish.info.as_ref().map_or(Ok(1), |info| info.alignment())?;
    let shares = settings::allowed()?.shares;
    let mut own = comm::create::create(handle, &Group::of(old.local().clone()))?;
    let on = Named::of(own)?;
    let made = Node::find(&on, wish, (shares, unit)).and_then(|mut node| {
        let made = assemble(&on, &node, wish);
        api::comm_free(&mut node.comm)?;
        made
    });
    drop(on);
    match made {
        Ok(win) => Ok(win),
        Err(error) => {
            api::comm_free(&mut own)?;
            Err(error)
        }
    }
}

fn check(wish: &Wish) -> Result<()> {
    let Wish { size, unit, base, flavor, .. } = *wish;
    if size < 0 {
        return Err(Class::SIZE.error(format!("the size is {size}: it must not be negative")));
    }
    if unit <= 0 {
        return Err(Class::DISP.error(format!("the unit of displacements is {unit}: it must be positive")));
    }
    if flavor == Flavor::Create && size > 0 && memory::is_nowhere(base) {
        return Err(Class::BASE.error(format!("a window of {size} B at NULL: it must have memory")));
    }
    Ok(())
}

impl Node {
    fn find(on: &Named, wish: &Wish, (shares, unit): (bool, usize)) -> Result<Node> {
        let comm = comm::by_type::by_type(on.handle, Some(SplitType::Shared), on.comm.rank(), None)?;
        let ranks = comm::share(comm)?;
        let place = ranks.rank().max(0) as usize;
        let is_apart =
            wish.info.as_ref().and_then(|info| info.get(APART)).is_some_and(|value| value == "true");
        let page = huge::page(huge::Kind::Shared).map_or(0, |page| page as i64);
        let rows = gather([wish.size, i64::from(is_apart), i64::from(shares), page, unit as i64], comm)?;
        let is_apart = wish.flavor == Flavor::Allocate || rows.iter().all(|row| row[1] != 0);
        let has_memory = matches!(wish.flavor, Flavor::Allocate | Flavor::Shared);
        let sizes: Vec<usize> =
            rows.iter().map(|[size, ..]| if has_memory { *size as usize } else { 0 }).collect();
        // All ranks have to find the same places.
        let huge = rows.iter().map(|row| row[3] as usize).min().filter(|&page| page > 0);
        let unit = match rows.iter().map(|row| row[4] as usize).fold(PAGE, usize::max) {
            PAGE => PAGE,
            longer => longer.max(SharedMemory::LONG_PAGE),
        };
        let places = Places::of(&sizes, is_apart, huge, unit);
        let is_shared = rows.iter().all(|row| row[2] != 0) || wish.flavor == Flavor::Shared;
        // A rank alone has memory of its own, which may have huge pages where what is shared has none.
        let is_alone = rows.len() == 1;
        let common = match is_shared && !is_alone {
            true => share_memory(&ranks, (places.len, unit), place)?,
            false => None,
        };
        let common = common.map(|memory| Common::new(memory, places.len, places.huge));
        let huge = places.huge.and(huge);
        let leader = on.comm.local().rank_of(ranks.local().world(0).unwrap_or(0)).unwrap_or(0);
        Ok(Node { comm, place, starts: places.starts, common, huge, unit, leader: leader.into() })
    }

    /// Whether its ranks can share memory: one needs nobody for that.
    fn shares(&self) -> bool {
        self.common.is_some() || self.starts.len() == 1
    }

    /// Where the memory of a rank begins here.
    fn base(&self, place: usize) -> Option<Base> {
        let common = self.common.as_ref()?;
        Some(Base::new(common.start().cast()).behind(self.starts[place]))
    }
}

/// Where the memory of the ranks of a node is in what they have in common: behind their locks.
#[derive(Debug, PartialEq, Eq)]
struct Places {
    starts: Vec<usize>,
    /// Bytes of all.
    len: usize,
    /// Where memory of huge pages begins; none: no rank's would fill one.
    huge: Option<usize>,
}

impl Places {
    /// `is_apart`: each begins on a page of its own. `huge`: the bytes of a huge page. What begins on a page
    /// begins at a multiple of `least`, too.
    fn of(sizes: &[usize], is_apart: bool, huge: Option<usize>, least: usize) -> Places {
        let all: usize = sizes.iter().sum();
        let fills =
            |page: &usize| if is_apart { sizes.iter().any(|size| size >= page) } else { all >= *page };
        let huge = huge.filter(fills);
        let unit = |size: usize| huge.filter(|&page| size >= page).unwrap_or(PAGE).max(least);
        let begin = (sizes.len() * locks::LEN).next_multiple_of(huge.unwrap_or(PAGE).max(least));
        let (mut end, mut starts) = (begin, Vec::new());
        for &size in sizes {
            if is_apart {
                end = end.next_multiple_of(unit(size));
            }
            starts.push(end);
            end += size;
        }
        // The last word is for whoever makes it.
        let len = (end + size_of::<u64>()).next_multiple_of(huge.unwrap_or(PAGE).max(least));
        Places { starts, len, huge: huge.map(|_| begin) }
    }
}

fn assemble(on: &Named, node: &Node, wish: &Wish) -> Result<Win> {
    let (base, allocated) = own_memory(node, wish);
    let failed = base.is_none();
    let base = base.unwrap_or(Base::BOTTOM);
    let exposure = expose(base, wish, on.comm.local().len());
    let mark = mark();
    let row = Row {
        size: wish.size,
        unit: wish.unit,
        base: base.address() as i64,
        process: std::process::id().into(),
        mark: [std::ptr::from_ref(mark).expose_provenance() as i64, mark.load(Ordering::Relaxed) as i64],
        leader: node.leader,
        place: node.place as i64,
        has_common: node.shares().into(),
        failed: failed.into(),
        keys: Default::default(),
        atomic: 0,
    };
    let row = row.exposed(&exposure);
    let rows: Vec<Row> = gather(row.numbers(), on.handle)?.iter().map(Row::of).collect();
    let refused = refusal(wish, &rows);
    if let Some(error) = refused {
        world()?.node().conceal(&exposure);
        allocated.iter().for_each(|base| _ = memory::release(base.pointer()));
        return Err(error);
    }
    let window = Arc::new(window(on, node, wish, &rows, (base, allocated, exposure)));
    let handle = Win(WINDOWS.insert(window.clone()));
    window.handle.store(handle.0, Ordering::Relaxed);
    service::begin(world()?, &window);
    Ok(handle)
}

/// The memory of this rank (none: there is none left), and what of it was allocated for it alone. No bytes
/// are at NULL.
fn own_memory(node: &Node, wish: &Wish) -> (Option<Base>, Option<Base>) {
    match wish.flavor {
        Flavor::Shared | Flavor::Allocate if wish.size == 0 => (Some(Base::BOTTOM), None),
        Flavor::Create => (Some(Base::new(wish.base)), None),
        Flavor::Dynamic => (Some(Base::BOTTOM), None),
        Flavor::Shared | Flavor::Allocate => match node.base(node.place) {
            Some(base) => (Some(base), None),
            None => {
                let base = memory::allocate(wish.size as usize, node.unit).map(Base::new);
                (base, base)
            }
        },
    }
}

/// Has the network reach our memory, if there is some and somebody to reach it.
fn expose(base: Base, wish: &Wish, ranks: i32) -> Exposure {
    let has_some = wish.size > 0 && wish.flavor != Flavor::Dynamic && base != Base::BOTTOM && ranks > 1;
    let may = settings::allowed().is_ok_and(|allowed| allowed.network);
    let world = world().ok().filter(|_| has_some && may);
    world.map_or_else(Exposure::default, |world| world.node().expose(&base.segments(0, wish.size as u64)))
}

/// Why there cannot be such a window; the same in all ranks.
fn refusal(wish: &Wish, rows: &[Row]) -> Option<Error> {
    let is_common = rows.iter().all(|row| row.leader == rows[0].leader && row.has_common != 0);
    if wish.flavor == Flavor::Shared && !is_common {
        let text = "the ranks of the communicator cannot share memory: make one of those that can with \
                    MPI_Comm_split_type";
        return Some(Class::RMA_SHARED.error(text));
    }
    let rank = rows.iter().position(|row| row.failed != 0)?;
    let text = format!("rank {rank} has no {} B of memory left for the window", rows[rank].size);
    Some(Class::NO_MEM.error(text))
}

fn window(
    on: &Named,
    node: &Node,
    wish: &Wish,
    rows: &[Row],
    (base, allocated, exposure): (Base, Option<Base>, Exposure),
) -> Window {
    let me = on.comm.rank() as usize;
    let peers: Box<[Peer]> =
        (0..rows.len()).map(|rank| peer(on, node, wish.flavor, rows, rank, me)).collect();
    let words = node.common.as_ref().map_or_else(Words::own, |common| Words::Common(common.clone()));
    let ranks = peers.len();
    let info = Infos::default();
    HINTS.iter().for_each(|(key, value)| info.set(key, value));
    if wish.flavor == Flavor::Shared {
        info.set(APART, "false");
    }
    wish.info.iter().for_each(|given| info.merge(given));
    if matches!(wish.flavor, Flavor::Allocate | Flavor::Shared) {
        let is_huge = match allocated {
            Some(_) => memory::has_huge_pages(wish.size as usize),
            None => node.huge.is_some_and(|page| wish.size as usize >= page),
        };
        info.set(HUGE, if is_huge { "true" } else { "false" });
    }
    Window {
        flavor: wish.flavor,
        on: on.clone(),
        peers,
        base,
        size: wish.size as u64,
        words,
        epoch: Epoch::new(ranks),
        origin: Mutex::new(Origin::new(ranks)),
        flushing: Mutex::new(()),
        serving: Mutex::new(Target::new(ranks)),
        attached: Mutex::new(Attached::default()),
        exposure,
        adapters_change: rows.iter().any(|row| row.atomic != 0),
        allocated,
        attributes: crate::attribute::Attributes::default(),
        predefined: Predefined {
            size: AtomicI64::new(wish.size),
            unit: AtomicI32::new(wish.unit as i32),
            flavor: AtomicI32::new(wish.flavor as i32),
            model: AtomicI32::new(UNIFIED),
        },
        errhandler: Mutex::new(errhandler::fatal()),
        name: Mutex::default(),
        info,
        handle: AtomicU32::new(0),
    }
}

/// How a rank is reached.
fn peer(on: &Named, node: &Node, flavor: Flavor, rows: &[Row], rank: usize, me: usize) -> Peer {
    let row = &rows[rank];
    let is_near = row.leader == node.leader && node.common.is_some();
    let seen = match flavor {
        _ if rank == me => Some(rows[me].base()),
        Flavor::Allocate | Flavor::Shared if is_near => node.base(row.place as usize),
        _ => None,
    };
    let process = on.comm.local().world(rank as i32).unwrap_or(u32::MAX);
    let copies = |world: &World| world.node().with(|engine| engine.inspect().copies(PeerId(process)));
    let is_found = || {
        let may = flavor == Flavor::Create && is_near && world().is_ok_and(copies);
        if may { readable(row) } else { None }
    };
    let exposure = row.exposure();
    let is_reached = || !exposure.is_empty();
    let way = Way::of(seen, is_found, is_reached);
    let exposure = matches!(way, Way::Network).then(|| Box::new(exposure));
    let locks = match is_near {
        true => Some(row.place as usize),
        false => (rank == me).then_some(0),
    };
    Peer {
        process,
        size: row.size as u64,
        unit: row.unit,
        base: row.base as u64,
        way,
        exposure,
        locks,
        is_asked: AtomicBool::new(false),
    }
}

/// Ends the service of a window: all ranks of it load from its memory, and store to it, until the process
/// ends.
pub(crate) fn retire(win: Win) -> Result<()> {
    let (world, window) = (world()?, super::share(win)?);
    service::end(world, &window);
    world.node().conceal(&window.exposure);
    Ok(())
}

/// Frees a window: all ranks have completed everything.
///
/// # Errors
/// An epoch is open, or a delete function fails: then it stays.
pub(crate) fn free(win: &mut Win) -> Result<()> {
    let world = world()?;
    let window = super::share(*win)?;
    window.check_no_epoch("MPI_Win_free")?;
    if window.epoch.exposed().is_some() {
        let text = format_args!("MPI_Win_free: an epoch of MPI_Win_post is open: call MPI_Win_wait first");
        return Err(window.out_of_sync(text));
    }
    window.attributes.delete_all(win.0)?;
    let flushed = window.flush(world, 0..window.peers.len() as i32, true);
    api::barrier(window.on.handle)?;
    // Others have their answers; the engine may still want to send them again.
    window.until(world, "MPI_Win_free", || Ok((!lock(&window.serving).is_busy()).then_some(())))?;
    service::end(world, &window);
    // Nobody accesses it any more.
    world.node().conceal(&window.exposure);
    let mut own = window.on.handle;
    WINDOWS.remove(win.0);
    *win = Win::NULL;
    window.allocated.iter().for_each(|base| _ = memory::release(base.pointer()));
    drop(window);
    api::comm_free(&mut own)?;
    flushed
}

impl Window {
    /// The number of its communicator: the same on all ranks.
    pub(crate) fn number(&self) -> u32 {
        self.on.comm.context().0
    }

    /// The group of its ranks.
    pub(crate) fn group(&self) -> Group {
        Group::of(self.on.comm.local().clone())
    }

    /// Size, unit and address of the memory of a rank that this process can load from and store to; of no
    /// rank: of the first one that has some. The address of no bytes is NULL, as MPICH and Open MPI answer:
    /// programs ask whether a rank gave memory by it.
    ///
    /// # Errors
    /// The window is a dynamic one, or there is no such rank.
    pub(crate) fn shared_query(&self, rank: i32) -> Result<(i64, i64, *mut c_void)> {
        if self.flavor == Flavor::Dynamic {
            let text = format_args!("MPI_Win_shared_query: a dynamic window has no memory to ask for");
            return Err(self.error(Class::RMA_FLAVOR, text));
        }
        let peer = match self.target(rank)? {
            Some(peer) => Some(peer),
            None => self.peers.iter().find(|peer| peer.size > 0),
        };
        Ok(match peer {
            Some(Peer { way: Way::Direct(_), size: 0, unit, .. }) => (0, *unit, std::ptr::null_mut()),
            Some(Peer { way: Way::Direct(base), size, unit, .. }) => (*size as i64, *unit, base.pointer()),
            _ => (0, 1, std::ptr::null_mut()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_fills_a_huge_page_begins_on_one() {
        const HUGE_PAGE: usize = 2 << 20;
        let huge = Some(HUGE_PAGE);
        let of = |sizes: &[usize], is_apart| Places::of(sizes, is_apart, huge, PAGE);
        // Each on a page of its own; the second one is too short for a huge one.
        let apart = of(&[3 << 20, 100, 2 << 20], true);
        assert_eq!(apart.starts, [2 << 20, 5 << 20, 6 << 20]);
        assert_eq!((apart.len, apart.huge), (10 << 20, Some(2 << 20)));
        // One behind the other.
        let dense = of(&[1 << 20, 1 << 20, 8], false);
        assert_eq!(dense.starts, [2 << 20, 3 << 20, 4 << 20]);
        assert_eq!((dense.len, dense.huge), (6 << 20, Some(2 << 20)));
        // Nobody fills one, or the system gives none.
        let small = Places::of(&[5000, 8], true, None, PAGE);
        assert_eq!((&small.starts[..], small.len, small.huge), (&[4096, 12288][..], 16384, None));
        assert_eq!(of(&[5000, 8], true), small);
        assert_eq!(Places::of(&[3 << 20, 100, 2 << 20], true, None, PAGE).starts[0], 4096);
    }

    #[test]
    fn memory_begins_where_the_program_wants_it() {
        const UNIT: usize = 1 << 16;
        let apart = Places::of(&[8, 100_000, 8], true, None, UNIT);
        assert_eq!(apart.starts, [UNIT, 2 * UNIT, 4 * UNIT]);
        // One behind the other: only the first can be.
        assert_eq!(Places::of(&[8, 8], false, None, UNIT).starts, [UNIT, UNIT + 8]);
        // Huge pages are longer, or not.
        assert_eq!(Places::of(&[2 << 20, 8], true, Some(2 << 20), UNIT).starts, [2 << 20, 4 << 20]);
        assert_eq!(Places::of(&[2 << 20, 8], true, Some(2 << 20), 4 << 20).starts, [4 << 20, 8 << 20]);
    }
}
