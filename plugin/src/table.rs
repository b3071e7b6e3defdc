//! The library's side: reads tables of functions, checks that they are complete, and calls their functions.

use crate::ABI;
use crate::layout::{
    CarriedFn, ChooseFn, FillFn, First, PlugIn, RawStrategy, RelearntFn, SplitFn, Turn, Waiting, Way,
};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::with_exposed_provenance_mut;

/// A complete table of functions: one strategy, for all ranks.
#[derive(Debug, Clone)]
pub struct Table {
    name: String,
    /// Address of the strategy's own state; the library never dereferences it.
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

/// Arguments of [`Table::fill`].
#[derive(Debug, Clone, Copy)]
pub struct Fill<'a> {
    /// The receiving rank.
    pub rank: u32,
    /// The rail.
    pub rail: &'a Way<'a>,
    /// All entries that the rail may carry.
    pub waiting: &'a [Waiting],
    /// Free bytes in the packet.
    pub room: u64,
}

/// Result of `fill` that reports a failure, `SIZE_MAX` in C.
pub(crate) const FILL_FAILED: usize = usize::MAX;

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// The pointer is NULL, or the table has an unknown size, an invalid name, or lacks a function.
    ///
    /// # Safety
    /// The pointer is NULL, or points to a table with the size that its first field states, whose name is
    /// NULL or a C string. Until the process ends, its functions behave as `nmad.h` specifies.
    pub unsafe fn read(at: *const RawStrategy) -> Result<Table, String> {
        if at.is_null() {
            return Err("strategy is NULL".into());
        }
        // SAFETY: every table has the first field.
        let size = unsafe { at.cast::<usize>().read() };
        let known = [size_of::<First>(), size_of::<RawStrategy>()];
        let (first, relearnt) = match known.iter().position(|known| *known == size) {
            // SAFETY: the table has the size of `First`.
            Some(0) => unsafe { (at.cast::<First>().read(), None) },
            Some(_) => {
                // SAFETY: the table has the size of `RawStrategy`.
                let whole = unsafe { at.read() };
                (whole.first, whole.relearnt)
            }
            None => {
                let [least, most] = known;
                return Err(format!(
                    "nmad_strategy_t has no version of size {size} (known: {least}, {most})"
                ));
            }
        };
        // SAFETY: the name is NULL or a C string.
        let name = unsafe { text(first.name) }.ok_or("name of the strategy is NULL")?;
        if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!("'{name}' is not a valid name: it must have letters, and no spaces"));
        }
        let (Some(fill), Some(split)) = (first.fill, first.split) else {
            return Err(format!("strategy '{name}' lacks a function: fill and split must not be NULL"));
        };
        let First { state, carried, choose, .. } = first;
        Ok(Table { name, state: state.expose_provenance(), fill, split, carried, choose, relearnt })
    }

    /// Returns the name of the strategy.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the strategy chooses between ranks.
    pub fn chooses(&self) -> bool {
        self.choose.is_some()
    }

    /// Returns the indices of the chosen entries, in packet order.
    ///
    /// # Errors
    /// The strategy has failed, or has chosen an entry twice or one that does not exist.
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

    /// Returns the bytes for each way; `None`: the rail that is idle first carries the whole message.
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

    /// Reports that a message that was split over `ways` rails has arrived, `took_ns` after the split.
    pub fn carried(&self, rank: u32, len: u64, ways: usize, took_ns: u64) {
        if let Some(carried) = self.carried {
            carried(self.state(), rank, len, ways, took_ns);
        }
    }

    /// Reports that predictions have changed.
    pub fn relearnt(&self, rank: u32) {
        if let Some(relearnt) = self.relearnt {
            relearnt(self.state(), rank);
        }
    }

    /// Returns the index of the chosen rank in `turns`; `None`: the rank that has waited longest.
    pub fn choose(&self, rail: u32, turns: &[Turn]) -> Option<usize> {
        let chosen = self.choose?(self.state(), rail, turns.as_ptr(), turns.len());
        Some(chosen).filter(|chosen| *chosen < turns.len())
    }

    fn state(&self) -> *mut c_void {
        with_exposed_provenance_mut(self.state)
    }
}

impl Offered {
    /// Reads the table that a plug-in returns.
    ///
    /// # Errors
    /// The pointer is NULL, or the table has another version of the interface, no strategy, two with the
    /// same name, or one that [`Table::read`] rejects.
    ///
    /// # Safety
    /// The pointer is NULL or points to an `nmad_plugin_t` of the version in its first field. The table,
    /// its strings and its strategies live until the process ends, and the strategies fulfil the
    /// conditions of [`Table::read`].
    pub unsafe fn read(at: *const PlugIn) -> Result<Offered, String> {
        if at.is_null() {
            return Err("returns NULL from nmad_strategies()".into());
        }
        // SAFETY: tables of all versions begin with the version.
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
            // SAFETY: the array has `count` elements, each with the size in its first field.
            let (table, size) = unsafe { (Table::read(at), at.cast::<usize>().read()) };
            let table = table.map_err(|why| format!("offers an invalid strategy: {why}"))?;
            if tables.iter().any(|other| other.name == table.name) {
                return Err(format!("offers two strategies with the name '{}'", table.name));
            }
            tables.push(table);
            at = at.wrapping_byte_add(size);
        }
        // SAFETY: the version is NULL or a C string.
        Ok(Offered { version: unsafe { text(version) }.unwrap_or_default(), tables })
    }
}

/// Copies a C string, and replaces bytes that are not UTF-8; `None` for NULL.
///
/// # Safety
/// The pointer is NULL or points to a C string.
unsafe fn text(at: *const c_char) -> Option<String> {
    // SAFETY: it is not NULL, so it is a C string.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}
