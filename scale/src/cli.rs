//! The part of the command `nmad sim` that runs collectives at scale.

use super::case::Case;
use super::fabric::{FABRICS, Fabric};
use super::golden;
use super::packet;
use super::regret::{self, Cell};
use super::stage::{Placement, Stage};
use super::start;
use super::times::{self, Row};
use super::windows;
use clap::{Args, ValueEnum};
use nmad_mpi_base::algorithm::choice::Family;
use nmad_words::{JSON_SCHEMA, USAGE, is_heard, say_line, tell_user};
use std::path::PathBuf;
use std::process::ExitCode;

/// Collectives of many ranks in virtual time
#[derive(Debug, Args)]
pub struct Scale {
    /// Instead of seeds: collectives of up to 100,000 ranks: their times, the regret of the choice of
    /// algorithms, or the model beside the packet-level simulator; the start of a job; or windows
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "times",
        conflicts_with_all = ["seed", "explain", "golden"])]
    scale: Option<What>,
    /// With --scale: this collective only, for example allreduce
    #[arg(long, value_name = "NAME", requires = "scale", value_parser = family)]
    family: Option<Family>,
    /// With --scale: the network between hosts: fat-tree, dragonfly or two-rails
    #[arg(long, value_name = "NAME", requires = "scale", default_value = "fat-tree", value_parser = fabric)]
    fabric: &'static Fabric,
    /// With --scale: bytes of the vector or of the block of each rank, for example 64KiB; the default is
    /// 1KiB for times, and 8 B to 8 MiB for regret
    #[arg(long, value_name = "SIZE", requires = "scale", value_parser = size)]
    size: Option<u64>,
    /// With --scale: this number of ranks only, for example 100000
    #[arg(long, value_name = "NUMBER", requires = "scale",
        value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    ranks: Option<u32>,
    /// With --scale: where ranks are: block, round-robin, or scattered: hosts by turns of their switches
    #[arg(long, value_name = "NAME", requires = "scale", default_value = "block", value_parser = placement)]
    placement: Placement,
    /// With --scale regret: run algorithms with up to so many messages; 17 million take 6 GB and minutes
    #[arg(long, value_name = "NUMBER", requires = "scale", default_value_t = regret::MESSAGES_MAX)]
    messages: usize,
    /// With --scale: draw times against ranks into this file
    #[arg(long, value_name = "FILE", requires = "scale")]
    svg: Option<PathBuf>,
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Time against ranks
    Times,
    /// What the chosen algorithm takes longer than the best
    Regret,
    /// The model beside the packet-level simulator
    Model,
    /// The start of a job, until its first allreduce
    Start,
    /// Windows, partitioned messages and splits
    Windows,
}

fn family(text: &str) -> Result<Family, String> {
    one_of("collective", Family::ALL.iter().map(|family| (family.name(), *family)), text)
}

fn fabric(text: &str) -> Result<&'static Fabric, String> {
    one_of("fabric", FABRICS.iter().map(|fabric| (fabric.name, fabric)), text)
}

fn placement(text: &str) -> Result<Placement, String> {
    one_of("placement", Placement::NAMED.into_iter(), text)
}

/// The value with a name.
fn one_of<T>(what: &str, all: impl Iterator<Item = (&'static str, T)>, name: &str) -> Result<T, String> {
    let mut names = Vec::new();
    for (known, value) in all {
        if known == name {
            return Ok(value);
        }
        names.push(known);
    }
    Err(format!("there is no such {what} (known: {})", names.join(", ")))
}

/// Whole elements of eight bytes.
fn size(text: &str) -> Result<u64, String> {
    match nmad_words::parse_size(text)? {
        len if len > 0 && len.is_multiple_of(8) => Ok(len),
        len => Err(format!("{len} B are not a multiple of 8 B, the size of an element")),
    }
}

impl Scale {
    /// Runs it if it is asked for, and prints JSON or text, or writes the golden files.
    pub fn run(&self, (json, bless): (bool, bool)) -> Option<ExitCode> {
        let what = self.scale?;
        if bless {
            return Some(golden::write());
        }
        if self.svg.is_some() && what != What::Times {
            tell_user(format_args!("nmad sim: --svg draws times: leave {what:?} out"));
            return Some(ExitCode::from(USAGE));
        }
        let is_narrowed = self.family.is_some() || self.size.is_some();
        if what == What::Start && (is_narrowed || self.ranks.is_some()) {
            tell_user("nmad sim: the start of a job has one table: leave --family, --size and --ranks out");
            return Some(ExitCode::from(USAGE));
        }
        if what == What::Windows && is_narrowed {
            tell_user("nmad sim: windows have one table: leave --family and --size out");
            return Some(ExitCode::from(USAGE));
        }
        Some(match what {
            What::Times => self.times(json),
            What::Regret => self.regret(json),
            What::Model => self.model(json),
            What::Start => start::run(json),
            What::Windows => windows::run(json, &self.ranks(&windows::RANKS)),
        })
    }

    fn families(&self) -> impl Iterator<Item = Family> {
        Family::ALL.iter().copied().filter(|family| self.family.is_none_or(|asked| asked == *family))
    }

    /// A case with the placement that was asked for.
    fn placed(&self, case: Case) -> Case {
        Case { stage: Stage { placement: self.placement, ..case.stage }, ..case }
    }

    fn ranks(&self, usual: &[usize]) -> Vec<usize> {
        self.ranks.map_or(usual.to_vec(), |ranks| vec![ranks as usize])
    }

    fn times(&self, json: bool) -> ExitCode {
        let (mut rows, len) = (Vec::new(), self.size.unwrap_or(1 << 10));
        let ranks = self.ranks(&times::RANKS);
        let cases = self.families().flat_map(|family| times::cases(self.fabric, family, len, &ranks));
        for case in cases.take_while(|_| is_heard()) {
            let row = Row::of(self.placed(case));
            if json {
                say_line(object(&case, row.chosen, &times::heads().zip(row.us.clone()).collect::<Vec<_>>()));
            }
            rows.push(row);
        }
        let text = times::text(self.fabric, len, &rows);
        if !json {
            say_line(text.trim_end());
        }
        match self.svg.as_ref().map(|path| (path, nmad_words::file::write(path, times::drawn(&text)))) {
            Some((path, Err(why))) => {
                tell_user(format_args!("nmad sim: {}: {why}", path.display()));
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        }
    }

    fn regret(&self, json: bool) -> ExitCode {
        let mut cells = Vec::new();
        let (ranks, lens) =
            (self.ranks(&regret::RANKS), self.size.map_or(regret::LENS.to_vec(), |len| vec![len]));
        let cases = self.families().flat_map(|family| regret::cases(self.fabric, family, &ranks, &lens));
        for case in cases.take_while(|_| is_heard()) {
            let cell = Cell::of(self.placed(case), self.messages);
            if json {
                let us = cell.times.iter().map(|(name, ns)| (*name, Some(ns / 1e3))).collect::<Vec<_>>();
                say_line(object(&case, cell.chosen, &us));
            }
            cells.push(cell);
        }
        if !json {
            say_line(regret::text(self.fabric, &cells).trim_end());
        }
        ExitCode::SUCCESS
    }

    fn model(&self, json: bool) -> ExitCode {
        let families: Vec<Family> = self.families().collect();
        let text = packet::table(&families, &mut |case, name, [packet, model]| {
            if json {
                let us =
                    [("packet-level", packet), ("model", model)].map(|(n, ns)| (n, Some(ns as f64 / 1e3)));
                say_line(object(case, name, &us));
            }
        });
        if !json {
            say_line(text.trim_end());
        }
        ExitCode::SUCCESS
    }
}

/// A row as a JSON object.
fn object(case: &Case, chosen: &str, us: &[(&str, Option<f64>)]) -> String {
    let of = |(name, us): (&str, Option<f64>)| {
        let us = us.map_or("null".into(), |us| format!("{us:.3}"));
        format!("\"{name}\":{us}")
    };
    let us: Vec<String> = us.iter().copied().map(of).collect();
    let predicted = case.algorithms().into_iter().map(|(name, ns)| of((name, Some(ns / 1e3))));
    let (family, fabric, ranks) = (case.family.name(), case.stage.fabric.name, case.stage.ranks);
    format!(
        "{{\"schema\":{JSON_SCHEMA},\"kind\":\"scale\",\"collective\":\"{family}\",\"fabric\":\"{fabric}\",\
         \"ranks\":{ranks},\"bytes\":{},\"algorithm\":\"{chosen}\",\"predicted_us\":{{{}}},\"us\":{{{}}}}}",
        case.len,
        predicted.collect::<Vec<_>>().join(","),
        us.join(",")
    )
}
