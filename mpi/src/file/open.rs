//! How files are opened, closed and removed.

use super::layout;
use super::near::Here;
use super::page::{Line, Offer};
use super::pointer::{self, Shared};
use super::view::View;
use super::whole::told_with;
use super::{Amode, FILES, File, error_of, lock, service, share};
use crate::algorithm::check::number;
use crate::api;
use crate::comm::{self, Named};
use crate::error::{Class, Error, Result};
use crate::handle::{self, Comm, Info};
use crate::info;
use crate::objects;
use crate::task::{block_on, now};
use crate::world::world;
use newmadeleine::tell_user;
use nmad_file::Asking;
use nmad_file::asking::Owners;
use nmad_file::hints::NUMBERS;
use nmad_file::layout::Reason;
use nmad_file::{Cause, Desk, Disk, Fault, Hints, Layout, Near, Owner, near};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Prefixes by which programs name the file system for ROMIO: this library asks the system.
const PREFIXES: [&str; 9] = ["ufs", "nfs", "xfs", "lustre", "gpfs", "pvfs2", "panfs", "testfs", "beegfs"];

/// What a rank says about the file that it opens.
#[derive(Clone, Copy)]
struct Row {
    /// The class of what is wrong with its arguments.
    wrong: i64,
    amode: i64,
    name: i64,
    hints: [i64; NUMBERS],
    /// Words of the node ([`page`]).
    offer: [i64; 2],
}

const ROW: usize = 5 + NUMBERS;

impl Row {
    fn numbers(self) -> [i64; ROW] {
        let Row { wrong, amode, name, hints, offer } = self;
        let mut numbers = [wrong, amode, name].into_iter().chain(offer).chain(hints);
        std::array::from_fn(|_| numbers.next().unwrap_or_default())
    }

    fn of(numbers: [i64; ROW]) -> Row {
        let [wrong, amode, name, number, line, hints @ ..] = numbers;
        Row { wrong, amode, name, hints, offer: [number, line] }
    }
}

/// The path of a name.
fn path(name: &str) -> PathBuf {
    let bare =
        name.split_once(':').filter(|(prefix, _)| PREFIXES.contains(prefix)).map_or(name, |(_, path)| path);
    Path::new(bare).to_path_buf()
}

/// `MPI_File_open`
///
/// # Errors
/// An argument is wrong, or the system refuses the file, on any rank.
pub(crate) fn open(handle: Comm, name: &str, bits: i32, info: Info) -> Result<handle::File> {
    world()?;
    let old = comm::share(handle)?;
    if old.remote().is_some() {
        return Err(Class::COMM.error("files are opened by intracommunicators: this is an intercommunicator"));
    }
    let mut hints = layout::initial()?;
    let arguments = Amode::new(bits).and_then(|amode| {
        info::optional(info)?.iter().for_each(|info| hints.take(|key| info.get(key)));
        Ok(amode)
    });
    let offer = Offer::new(old.local(), old.rank() == 0);
    let row = Row {
        wrong: arguments.as_ref().map_or_else(|error| i64::from(error.class().0), |_| 0),
        amode: bits.into(),
        name: number(name).unwrap_or(0) as i64,
        hints: hints.numbers(),
        offer: offer.told,
    };
    let (mut own, all) = comm::create::same(handle, &row.numbers())?;
    let rows: Vec<Row> = all.as_chunks::<ROW>().0.iter().map(|numbers| Row::of(*numbers)).collect();
    let opened = Named::of(own).and_then(|on| {
        let amode = agreed(arguments, row, &rows, name)?;
        hints.agree(rows[0].hints);
        opened(on, &path(name), (amode, hints), (offer, &rows))
    });
    if opened.is_err() {
        api::comm_free(&mut own)?;
    }
    opened
}

/// Opens the file on all ranks, which have given the same.
fn opened(
    on: Named,
    path: &Path,
    (amode, hints): (Amode, Hints),
    (offer, rows): (Offer, &[Row]),
) -> Result<handle::File> {
    let nodes = comm::foreign::nodes(world()?, on.comm.local());
    let offers: Vec<[i64; 2]> = rows.iter().map(|row| row.offer).collect();
    let line = offer.take(&offers);
    let disk = open_disk(&on, path, (amode, &hints, &nodes), line);
    let assembled = disk.and_then(|disk| assemble(on, disk, (amode, hints, nodes), line));
    if let (Some(line), Err(_)) = (line, &assembled) {
        line.free();
    }
    assembled
}

/// Has the system open the file on all ranks; and where it ends, on the first rank, if the pointers begin
/// there.
fn open_disk(
    on: &Named,
    path: &Path,
    (amode, hints, nodes): (Amode, &Hints, &[u32]),
    line: Option<Line>,
) -> Result<(u64, Disk)> {
    let is_first = on.comm.rank() == 0;
    let mut opening = amode.opening(is_first);
    opening.mode = hints.mode;
    let open = || {
        let disk = Disk::open(path, opening)?;
        let end = if amode.appends() { disk.size()? } else { 0 };
        if let Some(line) = line.filter(|_| is_first) {
            pointer::begin(line, end as i64);
        }
        Ok((end, disk))
    };
    // The first rank creates the file. All others try at the same time, since most files are there; but on
    // another node the system may keep it in mind that there was none.
    let is_one_node = nodes.iter().all(|node| *node == nodes[0]);
    let may_come = |fault: &Fault| fault.cause == Cause::NoSuchFile && !is_first && amode.creates();
    let tried = (is_first || is_one_node).then(open).filter(|tried| !tried.as_ref().is_err_and(may_come));
    let is_done = tried.is_some();
    let (mut opened, failed) = apart(tried);
    let all = told(on, path, failed, [is_done.into()])?;
    if all.contains(&0) {
        let (now, failed) = apart(Some(opened.map_or_else(open, Ok)));
        told(on, path, failed, [1])?;
        opened = now;
    }
    opened.ok_or_else(|| Class::INTERN.error("an error that was told to all ranks is none"))
}

/// The value of an answer, and its error.
fn apart<T>(answer: Option<std::result::Result<T, Fault>>) -> (Option<T>, Option<Error>) {
    match answer.transpose() {
        Ok(value) => (value, None),
        Err(fault) => (None, Some(error_of(fault))),
    }
}

/// Tells all ranks whether the system has refused something to one of them, and a number of each.
fn told(on: &Named, path: &Path, failed: Option<Error>, mine: [i64; 1]) -> Result<Vec<i64>> {
    let (ends, words) = (comm::party(&on.comm), comm::party(&on.comm));
    block_on(told_with(path, failed, (&ends, &words), mine))
}

/// How all ranks open the file, if they give the same.
fn agreed(arguments: Result<Amode>, row: Row, rows: &[Row], name: &str) -> Result<Amode> {
    let amode = arguments?;
    if let Some(rank) = rows.iter().position(|other| other.wrong != 0) {
        return Err(elsewhere(rank, rows[rank].wrong, Path::new(name)));
    }
    if let Some(rank) = rows.iter().position(|other| other.amode != row.amode) {
        let text = format!("file {name}: rank {rank} opens it in another mode: all ranks must give the same");
        return Err(Class::NOT_SAME.error(text));
    }
    if let Some(rank) = rows.iter().position(|other| other.name != row.name) {
        let text = format!("file {name}: rank {rank} gives another name: all ranks must open the same file");
        return Err(Class::NOT_SAME.error(text));
    }
    Ok(amode)
}

/// The error of a rank whose own arguments and file are right.
fn elsewhere(rank: usize, class: i64, path: &Path) -> Error {
    let class = Class(class as i32);
    let meaning = class.meaning().unwrap_or("an error");
    class.error(format!("cannot open {}: rank {rank} reports: {meaning}", path.display()))
}

fn assemble(
    on: Named,
    (end, disk): (u64, Disk),
    (amode, hints, nodes): (Amode, Hints, Vec<u32>),
    line: Option<Line>,
) -> Result<handle::File> {
    let world = world()?;
    let end = end as i64;
    let (shared, word) = Shared::new(&on, end, line)?;
    let system = disk.system();
    let reason = Reason {
        is_atomic: false,
        is_coherent: system.is_coherent(nodes.iter().any(|node| *node != nodes[0])),
        writes: amode.writes(),
    };
    let layout = Layout::new(&hints, system.block, &nodes, &reason);
    let mode = layout::Mode::default();
    mode.set(&layout);
    let waiting = layout::waiting(&disk, &hints);
    let word = word.filter(|_| nodes.len() > 1 && reason.is_coherent);
    let file = Arc::new(File {
        on,
        amode,
        view: Mutex::new(Arc::new(View::of_bytes())),
        position: Mutex::new(end),
        shared,
        desk: Desk::new(Owner::new(layout.regions.unit(), waiting)),
        layout: Mutex::new(Arc::new(layout)),
        disk,
        near: Mutex::new(Near::new(waiting)),
        keeps: AtomicBool::new(false),
        mode,
        is_twice: AtomicBool::new(false),
        word,
        owners: Owners::default(),
        split: Mutex::default(),
        hints: Mutex::new(hints),
        nodes,
        errhandler: Mutex::new(super::errhandler_of(handle::File::NULL)),
        sums: Mutex::default(),
        accesses: AtomicU64::new(0),
        handle: AtomicU32::new(0),
    });
    let handle = handle::File(FILES.insert(file.clone()));
    file.handle.store(handle.0, Ordering::Relaxed);
    file.set_ways();
    file.explain();
    service::begin(world, &file);
    Ok(handle)
}

/// `MPI_File_close`
///
/// # Errors
/// A split access is under way, or the file cannot be removed that was to be.
pub(crate) fn close(handle: &mut handle::File) -> Result<()> {
    let file = share(*handle)?;
    if lock(&file.split).is_some() {
        let text = "a split collective access is under way: end it before the file is closed";
        return Err(file.error(Class::OTHER, text));
    }
    // All accesses have ended before the file may be removed.
    let near = now(near::push(&Here(&file))).map_err(error_of);
    let has_more = near.is_err()
        || file.amode.deletes()
        || !file.is_coherent()
        || file.goes_by_owners()
        || !file.desk.owner().cache.is_clean();
    let together = file.together(&[has_more.into()]);
    if together.as_ref().is_ok_and(|all| all.iter().all(|has_more| *has_more == 0)) {
        // No owner has anything, since no rank has asked one; and nothing has failed.
        file.tell_sums();
        return ended(file, handle);
    }
    let mut written = file.desk.owner().cache.hand_over(&file.disk);
    if !file.is_coherent() && file.amode.writes() {
        // A process of another node finds it when this call has returned there.
        written = written.and(file.disk.sync());
    }
    if let Err(lost) = together {
        // Others may go on: this process serves its regions as long as it is there, and keeps nothing back.
        let unit = file.layout().regions.unit();
        let mut owner = file.desk.owner();
        owner.cache.set(unit, 0);
        // Since it has written what it had, others may have asked it to write more.
        written = written.and(owner.cache.hand_over(&file.disk));
        drop(owner);
        if let Err(fault) = near.and(written.map_err(error_of)) {
            tell_user(format_args!("nmad: {fault}"));
        }
        FILES.remove(handle.0);
        *handle = handle::File::NULL;
        return Err(lost);
    }
    file.tell_sums();
    let removes = file.amode.deletes() && file.rank() == 0;
    let removed = if removes { Disk::delete(file.disk.path()) } else { Ok(()) };
    let told = file.told(near.and(written.and(removed).map_err(error_of)).err());
    ended(file, handle)?;
    told
}

/// Gives back what an open file has; no rank accesses it any more.
fn ended(file: Arc<File>, handle: &mut handle::File) -> Result<()> {
    service::end(world()?, &file);
    file.shared.free()?;
    FILES.remove(handle.0);
    *handle = handle::File::NULL;
    let mut own = file.on.handle;
    drop(file);
    api::comm_free(&mut own)
}

/// `MPI_File_delete`
///
/// # Errors
/// The system refuses it.
pub(crate) fn delete(name: &str, info: Info) -> Result<()> {
    info::optional(info)?;
    Disk::delete(&path(name)).map_err(error_of)
}

/// A handle for the group of a file's ranks.
///
/// # Errors
/// There is no such file.
pub(crate) fn group(file: handle::File) -> Result<handle::Group> {
    Ok(objects::hand_out_group(share(file)?.group()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_the_file_system_before_them() {
        for (name, expected) in [("ufs:/tmp/x", "/tmp/x"), ("/a:b", "/a:b"), ("data:1", "data:1"), ("x", "x")]
        {
            assert_eq!(path(name), Path::new(expected));
        }
    }
}
