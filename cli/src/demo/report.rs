//! What the demonstration shows of its figures: a table or JSON, and a picture.

use nmad_bench::pattern::Row;
use nmad_bench::plot::{Point, Role, Series, bandwidth_svg};
use nmad_bench::stats::{Summary, bytes, number};
use nmad_bench::table::Table;
use serde::Serialize;

use super::args::DemoArgs;
use crate::output::{say_json, say_line};

/// The label of plain sockets, which have no strategy.
pub(super) const PLAIN: &str = "plain";

/// How data is moved in one line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) strategy: &'static str,
    /// The only rail that is used; none: all of them.
    pub(super) rail: Option<usize>,
    /// With it, the driver that uses it and the number that the session gives it.
    pub(super) driven: Option<(String, u8)>,
    /// Messages on the way at once.
    pub(super) in_flight: usize,
}

impl Case {
    /// A strategy over all rails, one message at a time.
    pub(super) fn of(strategy: &'static str) -> Case {
        Case { strategy, rail: None, driven: None, in_flight: 1 }
    }
}

/// One line of the table: the rates reached at each message size.
struct Curve {
    label: String,
    rails: Vec<String>,
    drivers: Vec<String>,
    strategy: &'static str,
    in_flight: usize,
    points: Vec<(usize, Summary)>,
}

/// An object of `--json`. The names of the fields are relied upon.
#[derive(Serialize)]
struct Line<'a> {
    rails: &'a [String],
    /// None: plain sockets.
    drivers: &'a [String],
    strategy: &'a str,
    bytes: usize,
    mb_per_s: f64,
    share_of_sum: f64,
    in_flight: usize,
}

/// All figures of a run.
pub(super) struct Figures<'a> {
    args: &'a DemoArgs,
    /// By which interfaces are used.
    drivers: Vec<String>,
    curves: Vec<Curve>,
}

impl<'a> Figures<'a> {
    pub(super) fn new(args: &'a DemoArgs, drivers: Vec<String>) -> Figures<'a> {
        Figures { args, drivers, curves: Vec::new() }
    }

    /// Takes what was reached with one size in each case.
    pub(super) fn row(&mut self, cases: &[Case], row: &Row) {
        for (case, entry) in cases.iter().zip(&row.entries) {
            let summary = entry.summary();
            let label = self.label(case);
            match self.curves.iter_mut().find(|curve| curve.label == label) {
                Some(curve) => curve.points.push((row.len, summary)),
                None => {
                    let (rails, drivers) = (self.rails(case), self.drivers(case));
                    let (&Case { strategy, in_flight, .. }, points) = (case, vec![(row.len, summary)]);
                    self.curves.push(Curve { label, rails, drivers, strategy, in_flight, points });
                }
            }
        }
    }

    fn rails(&self, case: &Case) -> Vec<String> {
        let names = self.args.rail_names();
        case.rail.map_or_else(|| names.clone(), |rail| vec![names[rail].clone()])
    }

    fn drivers(&self, case: &Case) -> Vec<String> {
        match case {
            Case { strategy: PLAIN, .. } => Vec::new(),
            Case { driven: Some((driver, _)), .. } => vec![driver.clone()],
            _ => self.drivers.clone(),
        }
    }

    fn label(&self, case: &Case) -> String {
        let rails = self.rails(case).join(" + ");
        match case {
            Case { strategy: PLAIN, .. } => format!("plain sockets, {rails}"),
            Case { driven: Some((driver, _)), .. } => format!("{rails} alone, {driver}"),
            Case { in_flight: 1, strategy, .. } => (*strategy).to_string(),
            Case { in_flight, strategy, .. } => format!("{strategy}, {in_flight} in flight"),
        }
    }

    /// Prints everything and writes the picture.
    pub(super) fn show(&self) -> Result<(), String> {
        if self.args.json {
            self.curves.iter().for_each(|curve| self.lines(curve));
        } else {
            self.tables();
        }
        let path = self.args.out.join("bandwidth.svg");
        let (rails, drivers) = (self.args.rail_names().join(" + "), self.drivers.join(" and "));
        let title = format!("One way over {rails} by {drivers}");
        let svg = bandwidth_svg(&title, &self.series()).map_err(|error| error.to_string())?;
        nmad_words::file::write(&path, svg)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        if !self.args.json {
            say_line(format_args!("bandwidth over message size: {}", path.display()));
        }
        Ok(())
    }

    /// The part of what plain sockets reach over all rails at once with messages of the same size.
    fn share(&self, len: usize, mb_per_s: f64) -> f64 {
        let is_sum = |curve: &&Curve| curve.strategy == PLAIN && curve.rails.len() == self.args.rails.len();
        let points = self.curves.iter().find(is_sum).map_or(&[][..], |curve| &curve.points);
        let sum = points.iter().find(|(other, _)| *other == len).map_or(0.0, |(_, sum)| sum.median);
        if sum > 0.0 { mb_per_s / sum } else { 0.0 }
    }

    fn lines(&self, curve: &Curve) {
        for &(bytes, Summary { median: mb_per_s, .. }) in &curve.points {
            let share_of_sum = self.share(bytes, mb_per_s);
            let &Curve { ref rails, ref drivers, strategy, in_flight, .. } = curve;
            say_json("demo", &Line { rails, drivers, strategy, bytes, mb_per_s, share_of_sum, in_flight });
        }
    }

    fn tables(&self) {
        let sizes: Vec<String> = self
            .curves
            .first()
            .map_or_else(Vec::new, |c| c.points.iter().map(|p| bytes(p.0 as u64)).collect());
        let mut header = vec![""];
        header.extend(sizes.iter().map(String::as_str));
        let drivers = self.drivers.join(" and ");
        let mut rates = Table::new(format!("one way by {drivers}, MB/s (medians)"), &header);
        let title = "share of the sum (plain sockets on all rails at once, messages of the same size)";
        let mut shares = Table::new(title, &header);
        for curve in &self.curves {
            let cells = |figure: &dyn Fn(usize, f64) -> String| {
                let figures = curve.points.iter().map(|(len, rate)| figure(*len, rate.median));
                std::iter::once(curve.label.clone()).chain(figures).collect::<Vec<_>>()
            };
            rates.row(cells(&|_, rate| number(rate)));
            shares.row(cells(&|len, rate| format!("{:.2}", self.share(len, rate))));
        }
        say_line(rates);
        say_line(shares);
        say_line(
            "greedy and aggregate_fastest balance whole messages: a message alone on its way uses one rail\n",
        );
        if let Some(text) = self.verdict() {
            say_line(text);
        }
    }

    /// What the default strategy reaches, at its largest size.
    fn verdict(&self) -> Option<String> {
        let auto = self.curves.iter().find(|curve| curve.strategy == "auto")?;
        let (len, rate) = auto.points.last()?;
        let share = 100.0 * self.share(*len, rate.median);
        let (size, rate) = (bytes(*len as u64), number(rate.median));
        Some(format!(
            "auto, the default, was told no ratio: it measured the rails and reaches, at {size}, {rate} \
             MB/s, {share:.0} % of the sum\n"
        ))
    }

    /// Curves that lie on top of others (one message on one rail) are left out of the picture.
    fn series(&self) -> Vec<Series> {
        let is_drawn = |curve: &&Curve| match curve.strategy {
            PLAIN => curve.rails.len() > 1,
            "aggregate" => false,
            "greedy" | "aggregate_fastest" => curve.in_flight > 1,
            "fifo" => curve.rails.len() == 1,
            _ => true,
        };
        let point = |(len, rate): &(usize, Summary)| Point {
            len: *len as u64,
            value: rate.median,
            quartiles: Some((rate.lower, rate.upper)),
        };
        let series = |curve: &Curve| Series {
            label: curve.label.clone(),
            role: match curve.strategy {
                PLAIN => Role::Baseline,
                "auto" => Role::Main,
                _ => Role::Plain,
            },
            points: curve.points.iter().map(point).collect(),
        };
        self.curves.iter().filter(is_drawn).map(series).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reached_is_compared_with_the_sum_at_the_same_size() {
        let rails = ["4gbit", "2gbit"].map(|rate| rate.parse().expect("a rate")).to_vec();
        let driver = crate::driver::DriverArgs::default();
        let out = "x".into();
        let args = DemoArgs { json: false, out, quick: false, rails, here: false, driver, part: None };
        let curve = |strategy: &'static str, rails: usize, rates: [f64; 2]| Curve {
            label: strategy.into(),
            rails: args.rail_names()[..rails].to_vec(),
            drivers: Vec::new(),
            strategy,
            in_flight: 1,
            points: [1 << 20, 64 << 20]
                .into_iter()
                .zip(rates.map(|rate| Summary::of(&[rate]).expect("a figure")))
                .collect(),
        };
        let curves = vec![
            curve(PLAIN, 1, [90.0, 90.0]),
            curve(PLAIN, 2, [200.0, 100.0]),
            curve("auto", 2, [50.0, 95.0]),
        ];
        let figures = Figures { args: &args, drivers: Vec::new(), curves };
        assert_eq!((figures.share(1 << 20, 50.0), figures.share(64 << 20, 50.0)), (0.25, 0.5));
        let verdict = figures.verdict().expect("there is one");
        assert!(verdict.contains("at 64 MiB, 95.0 MB/s, 95 % of the sum"), "{verdict}");
    }
}
