//! The library's side: reads tables of functions, checks that they are complete, and calls them.

use crate::ABI;
use crate::layout::{
    CarriedFn, ChooseFn, FillFn, First, PlugIn, RawStrategy, RelearntFn, SplitFn, Turn, Waiting, Way,
};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::with_exposed_provenance_mut;

/// A complete table of functions: a strategy for any rank.
#[derive(Debug, Clone)]
pub struct Table {
    name: String,
    /// Address of the strategy's own state, which this side never dereferences.
    state: usize,
    fill: FillFn,
    split: SplitFn,
    carried: Option<CarriedFn>,
    choose: Option<ChooseFn>,
    relearnt: Option<RelearntFn>,
}

/// The strategies of a plug-in.
#[derive(Debug, Clone)]
pub struct Offered {
    /// Version that the plug-in states; may be empty.
    pub version: String,
    /// Its strategies.
    pub tables: Vec<Table>,
}

/// What [`Table::fill`] decides about.
#[derive(Debug, Clone, Copy)]
pub struct Fill<'a> {
    /// The receiving rank.
    pub rank: u32,
    /// The rail.
    pub rail: &'a Way<'a>,
    /// All entries that the rail may take.
    pub waiting: &'a [Waiting],
    /// Bytes of the packet.
    pub room: u64,
}

/// The value of `fill` for a failure, `SIZE_MAX` in C.
pub(crate) const FILL_FAILED: usize = usize::MAX;

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// It is NULL, has the size of no known version, has no valid name, or lacks a function.
    ///
    /// # Safety
    /// The pointer is NULL or points to as many bytes as its first field says; the name is text of C, and the
    /// functions do what `nmad.h` says, for as long as the process lives.
    pub unsafe fn read(at: *const RawStrategy) -> Result<Table, String> {
        if at.is_null() {
            return Err("strategy is NULL".into());
        }
        // SAFETY: its first field is there.
        let size = unsafe { at.cast::<usize>().read() };
        let known = [size_of::<First>(), size_of::<RawStrategy>()];
        let (first, relearnt) = match known.iter().position(|known| *known == size) {
            // SAFETY: the size says that this much is there.
            Some(0) => unsafe { (at.cast::<First>().read(), None) },
            Some(_) => {
                // SAFETY: the size says that all is there.
                let whole = unsafe { at.read() };
                (whole.first, whole.relearnt)
            }
            None => {
                let [least, most] = known;
                let why = "is that of no version of nmad_strategy_t";
                return Err(format!("size {size} {why} (known: {least}, {most})"));
            }
        };
        // SAFETY: NULL or text of C.
        let name = unsafe { text(first.name) }.ok_or("name of the strategy is NULL")?;
        if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!("'{name}' is no name: it must have letters, and no spaces"));
        }
        let (Some(fill), Some(split)) = (first.fill, first.split) else {
            return Err(format!("strategy '{name}' lacks a function: fill and split must not be NULL"));
        };
        let First { state, carried, choose, .. } = first;
        Ok(Table { name, state: state.expose_provenance(), fill, split, carried, choose, relearnt })
    }

    /// Returns the name that its author gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it chooses between ranks.
    pub fn chooses(&self) -> bool {
        self.choose.is_some()
    }

    /// Returns the places of the chosen entries, in their order in the packet.
    ///
    /// # Errors
    /// The strategy has failed, or its answer is no list of places.
    pub fn fill(&self, question: Fill<'_>) -> Result<Vec<usize>, String> {
        let Fill { rank, rail, waiting, room } = question;
        let count = waiting.len();
        let mut chosen = vec![usize::MAX; count];
        let taken = (self.fill)(self.state(), rank, rail, waiting.as_ptr(), count, room, chosen.as_mut_ptr());
        if taken == FILL_FAILED {
            return Err("it failed".into());
        }
        if taken > count {
            return Err(format!("it chose {taken} of {count} messages"));
        }
        chosen.truncate(taken);
        for (place, index) in chosen.iter().enumerate() {
            if *index >= count {
                return Err(format!("it chose message {index} of {count}"));
            }
            if chosen[..place].contains(index) {
                return Err(format!("it chose message {index} twice"));
            }
        }
        Ok(chosen)
    }

    /// Returns the bytes for each way; `None`: the rail that is idle first carries all of them.
    ///
    /// # Errors
    /// The strategy has failed.
    pub fn split(&self, rank: u32, len: u64, ways: &[Way<'_>]) -> Result<Option<Vec<u64>>, String> {
        let mut shares = vec![0; ways.len()];
        match (self.split)(self.state(), rank, len, ways.as_ptr(), ways.len(), shares.as_mut_ptr()) {
            0 => Ok(Some(shares)),
            1 => Ok(None),
            code => Err(format!("it failed with {code}")),
        }
    }

    /// Reports that a message that was split over so many ways has arrived.
    pub fn carried(&self, rank: u32, len: u64, ways: usize, took_ns: u64) {
        if let Some(carried) = self.carried {
            carried(self.state(), rank, len, ways, took_ns);
        }
    }

    /// Reports that forecasts have changed.
    pub fn relearnt(&self, rank: u32) {
        if let Some(relearnt) = self.relearnt {
            relearnt(self.state(), rank);
        }
    }

    /// Returns the place of the rank whose turn it is; `None`: the one that has waited longest.
    pub fn choose(&self, rail: u32, turns: &[Turn]) -> Option<usize> {
        let chosen = self.choose?(self.state(), rail, turns.as_ptr(), turns.len());
        Some(chosen).filter(|chosen| *chosen < turns.len())
    }

    fn state(&self) -> *mut c_void {
        with_exposed_provenance_mut(self.state)
    }
}

impl Offered {
    /// Reads what a plug-in returns.
    ///
    /// # Errors
    /// It is NULL, of another version of the interface, has no strategy, two of the same name, or one that
    /// [`Table::read`] refuses.
    ///
    /// # Safety
    /// The pointer is NULL or points to a `nmad_plugin_t` of the version in its first field, which lives as
    /// long as the process; the same holds for its texts and strategies, which [`Table::read`] may read.
    pub unsafe fn read(at: *const PlugIn) -> Result<Offered, String> {
        if at.is_null() {
            return Err("returns NULL from nmad_strategies()".into());
        }
        // SAFETY: every version begins with its number.
        let abi = unsafe { at.cast::<u32>().read() };
        if abi != ABI {
            return Err(format!(
                "was compiled for version {abi} of the interface, and this library has {ABI}: compile it \
                 with the nmad.h of NewMadeleine {}",
                env!("CARGO_PKG_VERSION")
            ));
        }
        // SAFETY: the table has this version.
        let PlugIn { count, version, strategies, .. } = unsafe { at.read() };
        if count == 0 || strategies.is_null() {
            return Err("offers no strategy: count is 0, or strategies is NULL".into());
        }
        let mut tables: Vec<Table> = Vec::new();
        let mut at = strategies;
        for _ in 0..count {
            // SAFETY: `count` of them lie one behind the other, each as long as it says.
            let (table, size) = unsafe { (Table::read(at), at.cast::<usize>().read()) };
            let table = table.map_err(|why| format!("offers what is no strategy: {why}"))?;
            if tables.iter().any(|other| other.name == table.name) {
                return Err(format!("offers two strategies with the name '{}'", table.name));
            }
            tables.push(table);
            at = at.wrapping_byte_add(size);
        }
        // SAFETY: NULL or text of C.
        Ok(Offered { version: unsafe { text(version) }.unwrap_or_default(), tables })
    }
}

/// Copies a text; bytes that are not UTF-8 are replaced.
///
/// # Safety
/// The pointer is NULL or points to text that ends with a zero byte.
unsafe fn text(at: *const c_char) -> Option<String> {
    // SAFETY: not NULL, so it is text.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}
