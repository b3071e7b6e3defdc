//! Every figure as a line of JSON, written as soon as it is known: a run that was interrupted continues.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::CompareError;
use crate::contestant::Described;
use crate::facts::Facts;
use crate::machine::Machine;
use crate::plan::Cell;

/// Of the file; a program that writes others counts up.
const FORMAT: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Record {
    /// A run begins, or continues.
    Begin { format: u32, machine: Machine, contestants: Vec<Described> },
    /// A figure.
    Cell(Figure),
    /// A cell that could not be measured.
    Failed {
        round: u32,
        who: String,
        #[serde(flatten)]
        cell: Cell,
        why: String,
    },
}

/// What one contestant took for one cell in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) round: u32,
    pub(crate) who: String,
    #[serde(flatten)]
    pub(crate) cell: Cell,
    /// Microseconds an operation: the median of the samples, the lowest and the highest.
    pub(crate) us: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Cores that others used just before.
    pub(crate) busy: f64,
    /// Circumstances; none of first messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) facts: Option<Facts>,
}

/// The file, and what it has.
pub(crate) struct Store {
    path: PathBuf,
    file: File,
    pub(crate) figures: Vec<Figure>,
    done: HashSet<(u32, String, Cell)>,
    /// Cells that have no figure, by contestant, and why.
    pub(crate) failed: HashMap<(String, Cell), String>,
    /// All that have taken turns, in this order.
    pub(crate) contestants: Vec<Described>,
}

impl Store {
    /// Opens the file, with what an earlier run has left unless a fresh one is wanted.
    pub(crate) fn open(
        path: &Path,
        is_fresh: bool,
        machine: &Machine,
        contestants: &[Described],
    ) -> Result<Store, CompareError> {
        let text = match fs::read(path) {
            Ok(bytes) if !is_fresh => String::from_utf8(bytes).map_err(|_| CompareError::Damaged {
                what: "it is not text; --fresh starts over".into(),
                path: path.into(),
            })?,
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(CompareError::file("read", path)(error));
            }
            _ => String::new(),
        };
        let file = nmad_words::file::append(path).map_err(CompareError::file("write to", path))?;
        let mut store = Store {
            path: path.into(),
            file,
            figures: Vec::new(),
            done: HashSet::new(),
            failed: HashMap::new(),
            contestants: Vec::new(),
        };
        // A line that was cut off when the run was is measured again.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        store.file.set_len(whole as u64).map_err(CompareError::file("write to", path))?;
        store.load(&text[..whole], machine)?;
        store.join(contestants)?;
        let contestants = contestants.to_vec();
        store.append(&Record::Begin { format: FORMAT, machine: machine.clone(), contestants })?;
        Ok(store)
    }

    fn load(&mut self, text: &str, here: &Machine) -> Result<(), CompareError> {
        for (index, line) in text.lines().enumerate() {
            match serde_json::from_str(line) {
                Ok(Record::Begin { format, machine, contestants }) => {
                    if format != FORMAT {
                        return Err(self.other("another version of this program".into()));
                    }
                    if machine != *here {
                        return Err(self.other(format!("another machine ({})", machine.host)));
                    }
                    self.join(&contestants)?;
                }
                Ok(Record::Cell(figure)) => self.take(figure),
                Ok(Record::Failed { who, cell, why, .. }) => drop(self.failed.insert((who, cell), why)),
                Err(error) => {
                    let what = format!("line {} is damaged ({error}); --fresh starts over", index + 1);
                    return Err(CompareError::Damaged { what, path: self.path.clone() });
                }
            }
        }
        Ok(())
    }

    /// Adds contestants; one that is known must be what it was.
    fn join(&mut self, contestants: &[Described]) -> Result<(), CompareError> {
        for new in contestants {
            match self.contestants.iter().find(|known| known.name == new.name) {
                Some(known) if known.identity != new.identity => {
                    return Err(self.other(format!("another {} ({})", known.name, known.identity)));
                }
                Some(_) => {}
                None => self.contestants.push(new.clone()),
            }
        }
        Ok(())
    }

    fn other(&self, what: String) -> CompareError {
        CompareError::Other { what, path: self.path.clone() }
    }

    fn take(&mut self, figure: Figure) {
        self.failed.remove(&(figure.who.clone(), figure.cell.clone()));
        if self.done.insert((figure.round, figure.who.clone(), figure.cell.clone())) {
            self.figures.push(figure);
        }
    }

    pub(crate) fn is_done(&self, round: u32, who: &str, cell: &Cell) -> bool {
        self.done.contains(&(round, who.to_string(), cell.clone()))
    }

    /// Takes and writes a figure.
    pub(crate) fn add(&mut self, figure: Figure) -> Result<(), CompareError> {
        self.append(&Record::Cell(figure.clone()))?;
        self.take(figure);
        Ok(())
    }

    /// Takes and writes that there is none.
    pub(crate) fn fail(&mut self, round: u32, who: &str, cell: &Cell, why: &str) -> Result<(), CompareError> {
        let (who, cell, why) = (who.to_string(), cell.clone(), why.to_string());
        self.failed.insert((who.clone(), cell.clone()), why.clone());
        self.append(&Record::Failed { round, who, cell, why })
    }

    /// Figures by cell and contestant.
    pub(crate) fn by_cell(&self) -> HashMap<&Cell, BTreeMap<&str, Vec<&Figure>>> {
        let mut cells: HashMap<&Cell, BTreeMap<&str, Vec<&Figure>>> = HashMap::new();
        for figure in &self.figures {
            cells.entry(&figure.cell).or_default().entry(&figure.who).or_default().push(figure);
        }
        cells
    }

    fn append(&mut self, record: &Record) -> Result<(), CompareError> {
        let line = serde_json::to_string(record).map_err(|error| CompareError::Damaged {
            what: format!("a figure cannot be written: {error}"),
            path: self.path.clone(),
        })?;
        self.write(&(line + "\n"))
    }

    fn write(&mut self, text: &str) -> Result<(), CompareError> {
        self.file.write_all(text.as_bytes()).map_err(CompareError::file("write to", &self.path))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn cell(pattern: &str, bytes: u64) -> Cell {
        Cell { place: "node2".into(), pattern: pattern.into(), variant: "-".into(), bytes }
    }

    pub(crate) fn figure(who: &str, cell: Cell, round: u32, us: f64) -> Figure {
        Figure { round, who: who.into(), cell, us, low: us, high: us, busy: 0.0, facts: None }
    }

    pub(crate) fn who(name: &str) -> Described {
        Described { name: name.into(), version: "1".into(), identity: "1".into() }
    }

    fn open(path: &Path, is_fresh: bool, identity: &str) -> Result<Store, CompareError> {
        let ours = Described { identity: identity.into(), ..who("ours") };
        Store::open(path, is_fresh, &Machine::default(), &[ours])
    }

    #[test]
    fn what_was_measured_is_there_again_even_after_a_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        let mut store = open(&path, false, "1").unwrap();
        store.add(figure("ours", cell("pingpong", 8), 1, 1.5)).unwrap();
        store.fail(1, "mpich", &cell("pingpong", 8), "crashed").unwrap();
        store.write("{\"kind\":\"cell\",\"round\":1,\"wh").unwrap();
        drop(store);
        let mut store = open(&path, false, "1").unwrap();
        assert!(
            store.is_done(1, "ours", &cell("pingpong", 8)) && !store.is_done(2, "ours", &cell("pingpong", 8))
        );
        assert_eq!((store.figures.len(), store.failed.len()), (1, 1));
        // Measured after all.
        store.add(figure("mpich", cell("pingpong", 8), 2, 2.0)).unwrap();
        assert!(store.failed.is_empty());
        drop(store);
        assert_eq!(open(&path, false, "1").unwrap().figures.len(), 2);
        let damaged = fs::read_to_string(&path).unwrap().replacen("\"us\"", "\"su\"", 1);
        fs::write(&path, damaged).unwrap();
        let error = open(&path, false, "1").map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("line 2 is damaged"), "{error}");
        assert!(open(&path, true, "1").unwrap().figures.is_empty());
    }

    #[test]
    fn figures_of_something_else_are_not_mixed_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        drop(open(&path, false, "1").unwrap());
        let error = open(&path, false, "2").map(|_| ()).unwrap_err();
        assert!(
            error.to_string().contains("another ours") && error.to_string().contains("--fresh"),
            "{error}"
        );
        let elsewhere = Machine { host: "b".into(), ..Machine::default() };
        let error = Store::open(&path, false, &elsewhere, &[who("ours")]).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("another machine"), "{error}");
    }
}
