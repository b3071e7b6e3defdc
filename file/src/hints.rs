//! Hints: keys with which programs change how a file is accessed. The library ignores keys that it does not
//! use, and does not report them as in force.

use crate::plan;
use crate::regions::Regions;
use std::fmt;

/// Bytes of a region without a hint. Writes of 8 MiB a rank in interleaved records of 4 KiB,
/// by owners, on ext4 and tmpfs with 2 and 4 ranks take 23 to 56 ms; with regions of a quarter
/// of this size 28 to 67, of four times 19 to 86 (lowest of 8, build without optimisation, two cores of an
/// EPYC beside other processes).
const REGION: u64 = 4 << 20;
/// Greatest size of a region in bytes: an owner has memory for two regions.
const REGION_MAX: u64 = 1 << 30;

/// Bytes that may wait in the memory of an owner to be written without a hint: as many as a region has, so
/// that records of several ranks in it can meet.
const WAITING: u64 = 4 << 20;
const WAITING_MAX: u64 = 1 << 30;

/// Numbers that say what ranks agree on.
pub const NUMBERS: usize = 7;

/// A hint about the way of accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Switch {
    /// The predicted cost decides.
    #[default]
    Automatic,
    /// By owners.
    Enable,
    /// Each process by itself.
    Disable,
}

impl Switch {
    fn of(text: &str) -> Option<Switch> {
        match text {
            "enable" | "true" => Some(Switch::Enable),
            "disable" | "false" => Some(Switch::Disable),
            "automatic" => Some(Switch::Automatic),
            _ => None,
        }
    }
}

/// The hint about accesses of one process.
fn alone(text: &str) -> Option<Switch> {
    match text {
        "owners" => Some(Switch::Enable),
        "direct" => Some(Switch::Disable),
        "automatic" => Some(Switch::Automatic),
        _ => None,
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Switch::Automatic => "automatic",
            Switch::Enable => "enable",
            Switch::Disable => "disable",
        })
    }
}

/// The hints of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    /// Number of owners.
    owners: Option<u64>,
    /// Bytes of a region.
    region: Option<u64>,
    /// The unit in which the file system distributes a file.
    stripe: Option<u64>,
    reads: Switch,
    writes: Switch,
    /// Whether accesses of one process go by owners.
    alone: Switch,
    /// Bytes that may wait in memory to be written.
    waiting: Option<u64>,
    /// Whether gaps between pieces are read with them.
    sieves: Switch,
    /// Whether short pieces are copied from and to mapped memory.
    maps: Switch,
    /// Whether reads, and writes, are direct I/O.
    uncached: [Switch; 2],
    /// Permissions of a file that is created.
    pub mode: Option<u32>,
}

impl Hints {
    /// Sets the hints from the values that the program has given for keys. Invalid values are ignored, as the
    /// standard says.
    pub fn take(&mut self, given: impl Fn(&str) -> Option<String>) {
        let number =
            |key: &str| given(key).and_then(|text| text.trim().parse().ok()).filter(|number| *number > 0);
        let switch = |key: &str| given(key).and_then(|text| Switch::of(text.trim()));
        let keep = |place: &mut Option<u64>, new: Option<u64>| *place = new.or(*place);
        keep(&mut self.owners, number("cb_nodes"));
        keep(&mut self.region, number("cb_buffer_size").map(|len| len.min(REGION_MAX)));
        keep(&mut self.stripe, number("striping_unit").filter(|unit| *unit <= REGION_MAX));
        let both = switch("collective_buffering");
        self.reads = switch("romio_cb_read").or(both).unwrap_or(self.reads);
        self.writes = switch("romio_cb_write").or(both).unwrap_or(self.writes);
        self.alone = given("nmad_indep_rw").and_then(|text| alone(text.trim())).unwrap_or(self.alone);
        keep(&mut self.waiting, given("nmad_buffer_size").and_then(|text| text.trim().parse().ok()));
        self.sieves = switch("romio_ds_read").unwrap_or(self.sieves);
        self.maps = switch("nmad_map").unwrap_or(self.maps);
        let [reads, writes] = self.uncached;
        self.uncached = [switch("direct_read").unwrap_or(reads), switch("direct_write").unwrap_or(writes)];
        let octal = |text: String| u32::from_str_radix(text.trim().trim_start_matches("0o"), 8).ok();
        self.mode = given("file_perm").and_then(octal).filter(|mode| *mode <= 0o777).or(self.mode);
    }

    /// Returns the hints as numbers, for the other ranks: all ranks use those of the first one.
    pub fn numbers(&self) -> [i64; NUMBERS] {
        let number = |number: Option<u64>| number.map_or(0, |number| number as i64);
        let waiting = self.waiting.map_or(-1, |bytes| bytes.min(WAITING_MAX) as i64);
        let [owners, region, stripe] = [self.owners, self.region, self.stripe].map(number);
        let [reads, writes, alone] = [self.reads, self.writes, self.alone].map(|switch| switch as i64);
        [owners, region, stripe, reads, writes, alone, waiting]
    }

    /// Sets the hints that must be the same on all ranks, from the numbers of the first rank.
    pub fn agree(&mut self, numbers: [i64; NUMBERS]) {
        let number = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
        let switch = |number: i64| {
            let all = [Switch::Automatic, Switch::Enable, Switch::Disable];
            all.into_iter().find(|each| *each as i64 == number).unwrap_or_default()
        };
        [self.owners, self.region, self.stripe] =
            [number(numbers[0]), number(numbers[1]), number(numbers[2])];
        [self.reads, self.writes, self.alone] = [numbers[3], numbers[4], numbers[5]].map(switch);
        self.waiting = u64::try_from(numbers[6]).ok();
    }

    /// Returns the hint about owners for accesses of one process.
    pub fn alone(&self) -> Switch {
        self.alone
    }

    /// Returns the bytes that may wait in the memory of an owner to be written.
    pub fn waiting(&self) -> u64 {
        self.waiting.unwrap_or(WAITING).min(WAITING_MAX)
    }

    /// Returns the hint about owners for collective reads or writes.
    pub fn exchanges(&self, reads: bool) -> Switch {
        if reads { self.reads } else { self.writes }
    }

    /// Returns the longest gap, in bytes, that is read together with the pieces around it.
    pub fn gap(&self) -> u64 {
        if self.sieves == Switch::Disable { 0 } else { plan::GAP }
    }

    /// Returns whether short pieces may be copied from and to mapped memory, given whether reads, and writes,
    /// are direct I/O: mapped memory is the system's cache, which direct I/O avoids.
    pub fn maps(&self, uncached: [bool; 2]) -> bool {
        self.maps != Switch::Disable && uncached == [false; 2]
    }

    /// Returns whether reads, and whether writes, are direct I/O where the file system has it.
    pub fn uncached(&self) -> [bool; 2] {
        self.uncached.map(|switch| switch == Switch::Enable)
    }

    /// Returns the regions of a file with blocks of `block` bytes, opened by ranks on these nodes.
    pub fn regions(&self, block: u64, nodes: &[u32]) -> Regions {
        let unit = self.region.unwrap_or(REGION);
        Regions::new(unit, self.stripe.unwrap_or(block), owners(self.owners, nodes))
    }

    /// Returns the keys in force and their values, for a file with blocks of `block` bytes, opened by ranks
    /// on these nodes; accesses of one rank go this `way`, and these reads and writes are direct I/O.
    pub fn told(
        &self,
        block: u64,
        nodes: &[u32],
        way: &str,
        uncached: [bool; 2],
    ) -> Vec<(&'static str, String)> {
        let regions = self.regions(block, nodes);
        let switch = |is_on| if is_on { Switch::Enable } else { Switch::Disable }.to_string();
        let mut told = vec![
            ("cb_nodes", regions.owners().len().to_string()),
            ("cb_buffer_size", regions.unit().to_string()),
            ("striping_unit", self.stripe.unwrap_or(block).to_string()),
            ("romio_cb_read", self.reads.to_string()),
            ("romio_cb_write", self.writes.to_string()),
            ("collective_buffering", (self.writes != Switch::Disable).to_string()),
            ("romio_ds_read", switch(self.gap() > 0)),
            // A write changes only the bytes of its pieces.
            ("romio_ds_write", switch(false)),
            ("romio_no_indep_rw", "false".into()),
            ("nmad_indep_rw", way.to_string()),
            ("nmad_buffer_size", self.waiting().to_string()),
            ("nmad_map", if self.maps(uncached) { "automatic" } else { "disable" }.into()),
            ("nb_proc", nodes.len().to_string()),
        ];
        let direct = ["direct_read", "direct_write"].into_iter().zip(uncached);
        told.extend(direct.filter(|(_, is_set)| *is_set).map(|(key, _)| (key, switch(true))));
        told.extend(self.mode.map(|mode| ("file_perm", format!("{mode:04o}"))));
        told
    }
}

/// Returns the owners: the first ranks of all nodes, then the second ones, and so on. Without a hint half of
/// the ranks of each node are owners, since the exchange needs the time of the other half.
fn owners(wanted: Option<u64>, nodes: &[u32]) -> Vec<i32> {
    let turn = |rank: usize| nodes[..rank].iter().filter(|node| **node == nodes[rank]).count();
    let all = |node: u32| nodes.iter().filter(|other| **other == node).count();
    let mut ranks: Vec<(usize, usize)> = (0..nodes.len()).map(|rank| (turn(rank), rank)).collect();
    ranks.sort_unstable();
    let count = match wanted {
        Some(wanted) => usize::try_from(wanted).unwrap_or(usize::MAX).clamp(1, nodes.len()),
        None => ranks.iter().filter(|(turn, rank)| *turn < all(nodes[*rank]).div_ceil(2)).count(),
    };
    ranks.into_iter().take(count.max(1)).map(|(_, rank)| rank as i32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given<'a>(entries: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |key| entries.iter().find(|(name, _)| *name == key).map(|(_, value)| value.to_string())
    }

    #[test]
    fn owners_are_spread_over_nodes() {
        let nodes = [7, 7, 7, 9, 9, 9];
        assert_eq!(owners(None, &nodes), [0, 3, 1, 4]);
        assert_eq!(owners(Some(1), &nodes), [0]);
        assert_eq!(owners(Some(2), &nodes), [0, 3]);
        assert_eq!(owners(Some(100), &nodes).len(), 6);
        assert_eq!(owners(None, &[3]), [0]);
    }

    #[test]
    fn values_that_mean_nothing_change_nothing() {
        let mut hints = Hints::default();
        hints.take(given(&[
            ("cb_nodes", "-3"),
            ("cb_buffer_size", "many"),
            ("romio_cb_read", "perhaps"),
            ("file_perm", "999"),
            ("striping_factor", "4"),
        ]));
        assert_eq!(hints, Hints::default());
        hints.take(given(&[
            ("cb_nodes", "2"),
            ("collective_buffering", "false"),
            ("romio_cb_read", "enable"),
        ]));
        assert_eq!((hints.exchanges(true), hints.exchanges(false)), (Switch::Enable, Switch::Disable));
        let mut other = Hints::default();
        other.agree(hints.numbers());
        assert_eq!(other, hints);
        hints.take(given(&[("file_perm", "0640"), ("romio_ds_read", "disable")]));
        assert_eq!((hints.mode, hints.gap()), (Some(0o640), 0));
        hints.take(given(&[("nmad_indep_rw", "owners"), ("nmad_buffer_size", "0")]));
        assert_eq!((hints.alone(), hints.waiting()), (Switch::Enable, 0));
        let mut other = Hints::default();
        other.agree(hints.numbers());
        assert_eq!((other.alone(), other.waiting()), (Switch::Enable, 0));
        hints.take(given(&[("direct_read", "true")]));
        assert_eq!(
            (hints.uncached(), hints.maps([false; 2]), hints.maps([true, false])),
            ([true, false], true, false)
        );
        let told = hints.told(4096, &[1, 1, 1, 2], "owners", [true, false]);
        assert!(!told.iter().any(|(key, _)| *key == "direct_write"));
        for entry in [
            ("cb_nodes", "2"),
            ("file_perm", "0640"),
            ("romio_ds_read", "disable"),
            ("nb_proc", "4"),
            ("nmad_indep_rw", "owners"),
            ("direct_read", "enable"),
        ] {
            assert!(told.iter().any(|(key, value)| (*key, value.as_str()) == entry), "{entry:?}");
        }
    }
}
