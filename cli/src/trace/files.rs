//! Accesses of files: which way they went, who called the file system for them, predicted and actual times.

use nmad_bench::table::Table;
use std::collections::{BTreeMap, BTreeSet};

use super::records::{Access, Records};
use super::show::us;

/// Key of a row: file, access and way.
type Key<'a> = (&'a str, &'a str, &'a str);

/// Accesses of one file, kind and way.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    ranks: BTreeSet<u32>,
    owners: BTreeSet<u32>,
    count: u64,
    pieces: u64,
    bytes: u64,
    predicted_ns: u64,
    actual_ns: u64,
}

impl Sum {
    fn add(&mut self, rank: u32, access: &Access) {
        self.ranks.insert(rank);
        self.owners.extend(&access.owners);
        self.count += 1;
        self.pieces += access.pieces;
        self.bytes += access.len;
        self.predicted_ns += access.predicted_ns;
        self.actual_ns += access.until_ns.saturating_sub(access.at_ns);
    }
}

fn sums(all: &[Records]) -> BTreeMap<Key<'_>, Sum> {
    let mut sums: BTreeMap<Key<'_>, Sum> = BTreeMap::new();
    for records in all {
        for access in &records.accesses {
            let key = (&*access.file, &*access.access, &*access.way);
            sums.entry(key).or_default().add(records.rank, access);
        }
    }
    sums
}

/// Returns the table of the files; `None` if none was accessed.
pub(super) fn table(all: &[Records]) -> Option<Table> {
    let sums = sums(all);
    if sums.is_empty() {
        return None;
    }
    let header = [
        "file",
        "access",
        "way",
        "owners",
        "ranks",
        "count",
        "pieces",
        "bytes",
        "predicted, us",
        "actual, us",
    ];
    let mut table =
        Table::new("files: accesses of the ranks, and their total times", &header).words([0, 1, 2, 3]);
    for ((file, kind, way), sum) in sums {
        table.row([
            file.into(),
            kind.into(),
            way.into(),
            listed(&sum.owners),
            sum.ranks.len().to_string(),
            sum.count.to_string(),
            sum.pieces.to_string(),
            sum.bytes.to_string(),
            us(sum.predicted_ns),
            us(sum.actual_ns),
        ]);
    }
    Some(table)
}

/// Lists ranks; the first of them, if they are many.
fn listed(ranks: &BTreeSet<u32>) -> String {
    const MOST: usize = 8;
    let shown: Vec<String> = ranks.iter().take(MOST).map(u32::to_string).collect();
    let rest = ranks.len().saturating_sub(MOST);
    if rest > 0 { format!("{} and {rest} more", shown.join(" ")) } else { shown.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(rank: u32, accesses: &str) -> Records {
        Records::parse(format!("t.{rank}"), accesses).expect("a trace")
    }

    fn line(at_ns: u64, way: &str, owners: &str) -> String {
        format!(
            "{{\"at_ns\":{at_ns},\"access\":\"write\",\"file\":\"/x\",\"way\":\"{way}\",\"owners\":{owners},\
             \"pieces\":2,\"len\":10,\"predicted_ns\":50,\"until_ns\":{}}}\n",
            at_ns + 70
        )
    }

    #[test]
    fn accesses_of_all_ranks_add_up_by_their_way() {
        let first = line(5, "by owners", "[0]") + &line(90, "directly", "[0]");
        let all = [rank(0, &first), rank(1, &line(6, "by owners", "[0,1]"))];
        let sums = sums(&all);
        let by_owners = &sums[&("/x", "write", "by owners")];
        assert_eq!((by_owners.count, by_owners.pieces, by_owners.bytes), (2, 4, 20));
        assert_eq!((by_owners.predicted_ns, by_owners.actual_ns), (100, 140));
        assert_eq!(listed(&by_owners.owners), "0 1");
        assert_eq!(sums[&("/x", "write", "directly")].ranks.len(), 1);
        assert!(table(&all).is_some() && table(&[rank(0, "")]).is_none());
        assert_eq!(listed(&(0..10).collect()), "0 1 2 3 4 5 6 7 and 2 more");
    }
}
