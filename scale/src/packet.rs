//! Schedules in the packet-level simulator, with one shipping engine for each rank, to measure the error of
//! this crate's model. For few ranks, each on a host of its own behind one switch.

use super::case::Case;
use super::fabric::FLAT;
use super::job::Job;
use super::rounds::round_ns;
use super::stage::{Placement, Stage, Watch};
use nmad_mpi_base::algorithm::choice::Family;
use nmad_mpi_base::algorithm::schedule::{Builder, Schedule};
use nmad_sim::golden::table::{Table, size, us};

/// A collective of ranks on hosts of their own.
pub fn case(family: Family, ranks: usize, len: u64) -> Case {
    let stage = Stage { fabric: &FLAT, ranks, cores: 1, placement: Placement::Block };
    Case { stage, family, len }
}

/// Ranks and bytes of the comparison.
const RANKS: [usize; 3] = [2, 5, 8];
const LENS: [u64; 3] = [8, 4 << 10, 256 << 10];

/// All algorithms of some collectives in both; `each` hears of every one: its nanoseconds in the packet-level
/// simulator, and in the model.
pub fn table(families: &[Family], each: &mut dyn FnMut(&Case, &'static str, [u64; 2])) -> String {
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    for &family in families {
        let lens = if family == Family::Barrier { &LENS[..1] } else { &LENS[..] };
        for (ranks, len) in RANKS.iter().flat_map(|&ranks| lens.iter().map(move |&len| (ranks, len))) {
            let case = case(family, ranks, len);
            for (name, _) in case.algorithms() {
                let times = compared_ns(&case, name);
                each(&case, name, times);
                let [packet, model] = times.map(|ns| ns as f64);
                let error = 100.0 * (model / packet - 1.0);
                errors.push(error.abs());
                rows.push([
                    family.name().to_string(),
                    name.into(),
                    ranks.to_string(),
                    size(len as usize),
                    us(times[0]),
                    us(times[1]),
                    format!("{error:+.0}"),
                ]);
            }
        }
    }
    errors.sort_by(f64::total_cmp);
    let at = |part: usize| errors.get(errors.len() * part / 100).copied().unwrap_or(0.0);
    let mut table = Table::new("The model of collectives beside the packet-level simulator", FLAT.title);
    table.note(
        "One rank a host. us: what the collective adds to the time between two meetings of all ranks, with \
         the engine that ships and in the model.",
    );
    table.rows(&["collective", "algorithm", "ranks", "bytes", "packets us", "model us", "%"], &rows);
    table.note(&format!(
        "{} rows; the model is off by {:.0} % in the median, by at most {:.0} % in nine of ten.",
        errors.len(),
        at(50),
        at(90)
    ));
    table.finish()
}

/// Nanoseconds that a case takes by an algorithm in the packet-level simulator and in the model of this
/// crate: what it adds to the time between two meetings of all hosts.
///
/// # Panics
/// A run does not end: then the engine or the algorithm is broken.
pub fn compared_ns(case: &Case, name: &str) -> [u64; 2] {
    let mut schedules = Vec::new();
    case.schedules(name, |schedule| {
        schedules.push(schedule);
        true
    });
    let nothing: Vec<Schedule> = schedules.iter().map(|_| Builder::default().finish()).collect();
    let cards = case.stage.fabric.cards();
    let packet = round_ns(&cards, &schedules, &order(case, &schedules)).saturating_sub(round_ns(
        &cards,
        &nothing,
        &vec![Vec::new(); nothing.len()],
    ));
    [packet, modelled_ns(case, &schedules).saturating_sub(modelled_ns(case, &nothing))]
}

/// The schedules of a meeting.
fn meeting(case: &Case) -> Vec<Schedule> {
    let mut meeting = Vec::new();
    let barrier = Case { family: Family::Barrier, ..*case };
    barrier.schedules("dissemination", |schedule| {
        meeting.push(schedule);
        true
    });
    meeting
}

/// A round of the model: two of them less one.
fn modelled_ns(case: &Case, schedules: &[Schedule]) -> u64 {
    let meeting = meeting(case);
    let time = |rounds: usize| {
        let mut job = Job::default();
        for (own, met) in schedules.iter().zip(&meeting) {
            job.add(&[own, met].repeat(rounds));
        }
        job.connect().and_then(|()| case.watched(&job, &mut ())).unwrap_or_else(|why| panic!("{why}")).ps
    };
    (time(2) - time(1)) / 1000
}

/// In which order messages end on each rank.
struct Order(Vec<Vec<usize>>);

impl Watch for Order {
    fn local(&mut self, _: usize, _: usize) {}
    fn leave(&mut self, _: u32, rank: usize, step: usize) {
        self.0[rank].push(step);
    }
    fn arrive(&mut self, _: u32, rank: usize, step: usize) {
        self.0[rank].push(step);
    }
}

/// In which order a rank waits for its messages: that in which the model ends them.
fn order(case: &Case, schedules: &[Schedule]) -> Vec<Vec<usize>> {
    let (mut job, mut order) = (Job::default(), Order(vec![Vec::new(); schedules.len()]));
    schedules.iter().for_each(|schedule| job.add(&[schedule]));
    job.connect().and_then(|()| case.watched(&job, &mut order)).unwrap_or_else(|why| panic!("{why}"));
    order.0
}
