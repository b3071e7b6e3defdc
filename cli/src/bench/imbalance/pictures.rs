//! P5's figures, drawn from what was measured.
//!
//! | file | figures of P5 |
//! |---|---|
//! | PLACE-PROGRAM-degrees.svg | 6, 7: time of an iteration over the length, by degree |
//! | PLACE-PROGRAM-variants.svg | 16, 17, 18: the same by variant, at the highest degree |
//! | PLACE-minife.svg | 13, 14, 15, 19, 20: time of an iteration of the conjugate gradient |

use nmad_bench::plot::{Dot, DotGroup, PlotError, Role, Series, dots_svg, latency_svg};
use nmad_compare::{CompareError, Exercise, Measured, OURS};
use std::fs;
use std::path::Path;

use super::figures::{Group, groups};

/// Makes the folder, before time is spent on measuring.
pub(super) fn prepare(folder: &Path) -> Result<(), CompareError> {
    let failed = |source| CompareError::File { what: "make the folder", path: folder.into(), source };
    fs::create_dir_all(folder).map_err(failed)
}

/// Draws everything for which there are figures.
pub(super) fn draw(all: &[Measured], folder: &Path) -> Result<(), CompareError> {
    let groups = groups(all);
    let mut places: Vec<&str> = groups.iter().map(|group| group.place).collect();
    places.dedup();
    for place in places {
        let here: Vec<&Group<'_>> = groups.iter().filter(|group| group.place == place).collect();
        for program in ["nooverlap", "overlap"] {
            let toys: Vec<_> = here.iter().copied().filter(|g| g.exercise.program == program).collect();
            let most = toys.iter().map(|group| group.exercise.degree).max().unwrap_or(0);
            let is_plain = |exercise: &Exercise| exercise.variant == "plain";
            let by_degree = curves(&toys, is_plain, |exercise| format!("degree {}", exercise.degree));
            let by_variant = curves(&toys, |e| e.degree == most, |exercise| exercise.variant.clone());
            for (kind, series) in [("degrees", by_degree), ("variants", by_variant)] {
                if !series.is_empty() {
                    let title = format!("{program} at {place}: time of an iteration, by longest message");
                    write(folder, &format!("{place}-{program}-{kind}.svg"), latency_svg(&title, &series))?;
                }
            }
        }
        let bricks: Vec<_> = here.iter().copied().filter(|group| !group.exercise.is_toy()).collect();
        if !bricks.is_empty() {
            let title = format!("conjugate gradient at {place}: time of an iteration");
            let picture = dots_svg(&title, &bricks.iter().map(|group| dots(group)).collect::<Vec<_>>());
            write(folder, &format!("{place}-minife.svg"), picture)?;
        }
    }
    Ok(())
}

/// A curve for each contestant and each label.
fn curves(
    groups: &[&Group<'_>],
    is_shown: impl Fn(&Exercise) -> bool,
    label: impl Fn(&Exercise) -> String,
) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for group in groups.iter().filter(|group| is_shown(group.exercise)) {
        for who in group.names() {
            let Some(summary) = group.of(who, |measured| measured.iteration_us) else { continue };
            let label = format!("{who}, {}", label(group.exercise));
            let point = (group.exercise.size, summary.median).into();
            match all.iter_mut().find(|series| series.label == label) {
                Some(series) => series.points.push(point),
                None => all.push(Series {
                    role: if who == OURS { Role::Main } else { Role::Plain },
                    label,
                    points: vec![point],
                }),
            }
        }
    }
    all
}

fn dots(group: &Group<'_>) -> DotGroup {
    let dot = |who: &str| {
        let summary = group.of(who, |measured| measured.iteration_us)?;
        Some(Dot { label: who.into(), is_main: who == OURS, summary })
    };
    DotGroup { label: group.exercise.to_string(), dots: group.names().into_iter().filter_map(dot).collect() }
}

fn write(folder: &Path, name: &str, picture: Result<String, PlotError>) -> Result<(), CompareError> {
    let path = folder.join(name);
    let failed = |source| CompareError::File { what: "write", path: path.clone(), source };
    let picture = picture.map_err(|error| failed(std::io::Error::other(error)))?;
    nmad_words::file::write(&path, picture).map_err(failed)
}
