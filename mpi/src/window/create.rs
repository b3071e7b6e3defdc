//! How windows are made: all ranks tell each other what they have, and choose ways by what they find.

use super::dynamic::Attached;
use super::epoch::Epoch;
use super::locks::Words;
use super::memory::Common;
use super::peers::{Marks, Peer, Peers, Way};
use super::places::{PAGE, Places};
use super::row::{Near, Reach, gather};
use super::{Flavor, Predefined, WINDOWS, Window, lock, service, settings};
use crate::api;
use crate::collective::share_memory;
use crate::comm::{self, Members, Named};
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
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// `MPI_WIN_UNIFIED`
const UNIFIED: i32 = 321;
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
    /// Their processes.
    ranks: Arc<Members>,
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

/// The processes of our node, in the order of ranks: all processes know which they are. Those of several jobs
/// do not, so that each is alone there.
fn node_of(on: &Named) -> Result<Group> {
    let session = world()?.session();
    let (nodes, own, is_one_job) = (session.nodes(), session.rank(), on.comm.bridges().is_empty());
    let node = |process: u32| nodes.get(process as usize).filter(|_| is_one_job);
    let is_near = |process: &u32| *process == own || (is_one_job && node(*process) == node(own));
    Ok(Group::new(on.comm.local().processes().filter(is_near)))
}

impl Node {
    fn find(on: &Named, wish: &Wish, (shares, unit): (bool, usize)) -> Result<Node> {
        let comm = comm::create::create(on.handle, &node_of(on)?)?;
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
        let (starts, leader, ranks) = (places.starts, leader.into(), ranks.local().clone());
        Ok(Node { comm, ranks, place, starts, common, huge, unit, leader })
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

fn assemble(on: &Named, node: &Node, wish: &Wish) -> Result<Win> {
    let (base, allocated) = own_memory(node, wish);
    let failed = base.is_none();
    let base = base.unwrap_or(Base::BOTTOM);
    let exposure = expose(base, wish, on.comm.local().len());
    let told = Told::find(on, node, wish, (failed, base, &exposure))?;
    if let Some(error) = told.refusal(wish) {
        world()?.node().conceal(&exposure);
        allocated.iter().for_each(|base| _ = memory::release(base.pointer()));
        return Err(error);
    }
    let window = Arc::new(window(on, node, wish, &told, (base, allocated, exposure)));
    let handle = Win(WINDOWS.insert(window.clone()));
    window.handle.store(handle.0, Ordering::Relaxed);
    service::begin(world()?, &window);
    Ok(handle)
}

/// What ranks have told each other.
struct Told {
    /// Of the ranks of our node, in their order.
    near: Vec<Near>,
    /// Bytes of memory and of its unit: of each rank, or once if all ranks have as many.
    sizes: Vec<[i64; 2]>,
    /// How the network reaches each rank; empty: it reaches none.
    reach: Vec<Reach>,
    /// Network adapters may change words of the memory of some ranks.
    adapters_change: bool,
    /// All ranks have memory in common.
    is_common: bool,
    /// The first rank that has no memory left.
    failed: Option<i32>,
}

impl Told {
    /// Tells the others what this rank has. All ranks of a window mostly have as much memory, which a network
    /// mostly does not reach without their help: then they exchange the greatest of a few numbers, and
    /// nothing of each.
    fn find(
        on: &Named,
        node: &Node,
        wish: &Wish,
        (failed, base, exposure): (bool, Base, &Exposure),
    ) -> Result<Told> {
        let (size, unit, leader, own) = (wish.size, wish.unit, node.leader, Reach::own(base, exposure));
        // Greater for lower ranks.
        let failed = if failed { i64::from(i32::MAX - on.comm.rank()) } else { 0 };
        let near = gather(Near::own(base).numbers(), node.comm)?.iter().map(Near::of).collect();
        let flags = [!exposure.is_empty(), own.atomic != 0, !node.shares()].map(i64::from);
        let ends = [size, -size, unit, -unit, leader, -leader, failed, flags[0], flags[1], flags[2]];
        let all = comm::create::greatest(&on.comm, ends)?;
        let is_equal = |place: usize| all[place] == -all[place + 1];
        let sizes = match is_equal(0) && is_equal(2) {
            true => vec![[size, unit]],
            false => gather([size, unit], on.handle)?,
        };
        let reach = match all[7] {
            0 => Vec::new(),
            _ => gather(own.numbers(), on.handle)?.iter().map(Reach::of).collect(),
        };
        Ok(Told {
            near,
            sizes,
            reach,
            adapters_change: all[8] != 0,
            is_common: is_equal(4) && all[9] == 0,
            failed: (all[6] > 0).then(|| i32::MAX - all[6] as i32),
        })
    }

    /// Bytes of the memory of a rank and of its unit.
    fn size(&self, rank: i32) -> [i64; 2] {
        self.sizes[if self.sizes.len() == 1 { 0 } else { rank as usize }]
    }

    /// Why there cannot be such a window; the same in all ranks.
    fn refusal(&self, wish: &Wish) -> Option<Error> {
        if wish.flavor == Flavor::Shared && !self.is_common {
            let text = "the ranks of the communicator cannot share memory: make one of those that can with \
                        MPI_Comm_split_type";
            return Some(Class::RMA_SHARED.error(text));
        }
        let rank = self.failed?;
        let text = format!("rank {rank} has no {} B of memory left for the window", self.size(rank)[0]);
        Some(Class::NO_MEM.error(text))
    }
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

fn window(
    on: &Named,
    node: &Node,
    wish: &Wish,
    told: &Told,
    (base, allocated, exposure): (Base, Option<Base>, Exposure),
) -> Window {
    let ranks = on.comm.local().processes().zip(0..);
    let peers = Peers::new(ranks.map(|ids| peer(on, node, wish.flavor, told, ids)));
    let words = node.common.as_ref().map_or_else(Words::own, |common| Words::Common(common.clone()));
    let ranks = peers.len() as usize;
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
        asked: Marks::new(peers.len()),
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
        adapters_change: told.adapters_change,
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
fn peer(on: &Named, node: &Node, flavor: Flavor, told: &Told, (process, rank): (u32, i32)) -> Peer {
    let is_own = rank == on.comm.rank();
    let place = node.ranks.rank_of(process).map(|place| place as usize);
    let near = place.filter(|_| is_own || node.common.is_some());
    let seen = match (flavor, near) {
        (_, Some(place)) if is_own => Some(told.near[place].base()),
        (Flavor::Allocate | Flavor::Shared, Some(place)) => node.base(place),
        _ => None,
    };
    let copies = |world: &World| world.node().with(|engine| engine.inspect().copies(PeerId(process)));
    let is_found = || {
        let near = near.filter(|_| flavor == Flavor::Create && world().is_ok_and(copies));
        near.and_then(|place| told.near[place].readable())
    };
    let exposure = told.reach.get(rank as usize).map(Reach::exposure).filter(|one| !one.is_empty());
    let way = Way::of(seen, is_found, || exposure.is_some());
    let base = match (near, told.reach.get(rank as usize)) {
        (Some(place), _) => told.near[place].base as u64,
        (None, reach) => reach.map_or(0, |reach| reach.base as u64),
    };
    let exposure = exposure.filter(|_| matches!(way, Way::Network)).map(Box::new);
    let locks = if node.common.is_some() { near } else { near.map(|_| 0) };
    let [size, unit] = told.size(rank);
    Peer { size: size as u64, unit, base, way, exposure, locks }
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
    let flushed = window.flush(world, 0..window.peers.len(), true);
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
            None => self.peers.records().map(|(_, peer)| peer).find(|peer| peer.size > 0),
        };
        Ok(match peer {
            Some(Peer { way: Way::Direct(_), size: 0, unit, .. }) => (0, *unit, std::ptr::null_mut()),
            Some(Peer { way: Way::Direct(base), size, unit, .. }) => (*size as i64, *unit, base.pointer()),
            _ => (0, 1, std::ptr::null_mut()),
        })
    }
}
