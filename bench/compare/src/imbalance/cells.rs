//! Which exercises are run: programs, variants, degrees and sizes, by place.

use serde::Serialize;
use std::fmt;
use std::fmt::Write;

use crate::CompareError;
use crate::course;
use crate::launch::Cores;
use crate::place::{PLACES, Place, WIDE_PLACES};
use crate::plan::bytes;

/// The programs, as the user writes them.
pub const PROGRAMS: [&str; 5] = ["nooverlap", "overlap", "minife", "minife-overlap", FLOOD];
/// The program that sends many messages before any receive is posted. It has one variant, and runs only where
/// the user names it.
pub const FLOOD: &str = "flood";
/// Most bytes of all messages of a rank in an iteration: they have memory of their own.
const MESSAGES_MAX: u64 = 1 << 30;
/// Their variants: as they are, with parallel sends (P5 figure 12), with fragments (section 5.2), with both.
pub const VARIANTS: [&str; 4] = ["plain", "parallel", "fragments", "both"];

/// What the user asks for; an empty list means the usual ones.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Of [`PROGRAMS`].
    pub programs: Vec<String>,
    /// Of [`VARIANTS`].
    pub variants: Vec<String>,
    /// Names of places.
    pub places: Vec<String>,
    /// Numbers of targets of each rank; without any one, and all others.
    pub degrees: Vec<u32>,
    /// Messages to each target; none: one, and of a flood 1,024.
    pub messages: Option<u32>,
    /// Longest messages of the toys, in bytes.
    pub sizes: Vec<u64>,
    /// Elements along an edge of the conjugate gradient's brick.
    pub elements: Vec<u64>,
}

/// One program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Exercise {
    /// Of [`PROGRAMS`].
    pub program: String,
    /// Of [`VARIANTS`].
    pub variant: String,
    /// Number of targets of each rank; zero for the conjugate gradient, whose partition decides.
    pub degree: u32,
    /// Messages to each of them; zero for the conjugate gradient.
    pub messages: u32,
    /// Toys: longest message in bytes. Conjugate gradient: elements along an edge of the brick.
    pub size: u64,
}

impl Exercise {
    /// Whether it is one of the toys.
    pub fn is_toy(&self) -> bool {
        !self.program.starts_with("minife")
    }

    /// Its size, as a person writes it.
    pub fn size_text(&self) -> String {
        if self.is_toy() { bytes(self.size) } else { format!("{0}x{0}x{0}", self.size) }
    }

    /// Bytes of the messages of a rank; zero for the conjugate gradient.
    fn own_bytes(&self) -> u64 {
        u64::from(self.degree) * u64::from(self.messages) * self.size
    }

    fn has_threads(&self) -> bool {
        matches!(&*self.variant, "parallel" | "both")
    }
}

impl fmt::Display for Exercise {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.program, self.variant)?;
        if self.is_toy() {
            write!(out, " degree {}", self.degree)?;
        }
        write!(out, " {}", self.size_text())
    }
}

/// What one job runs.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) place: &'static Place,
    /// Several threads of each rank send.
    pub(super) has_threads: bool,
    pub(super) exercises: Vec<Exercise>,
}

impl course::Batch for Batch {
    fn place(&self) -> &'static Place {
        self.place
    }

    fn cores(&self) -> Cores {
        if self.has_threads { Cores::Any } else { Cores::Own }
    }

    fn list(&self) -> String {
        let mut list = String::new();
        for (number, exercise) in self.exercises.iter().enumerate() {
            let Exercise { program, variant, degree, messages, size } = exercise;
            let _ = writeln!(list, "{number} {program} {variant} {degree} {messages} {size}");
        }
        list
    }

    fn cell(&self, number: usize) -> Option<String> {
        self.exercises.get(number).map(Exercise::to_string)
    }
}

/// The names of the places where the programs may run.
pub fn place_names() -> Vec<&'static str> {
    all_places().map(|place| place.name).collect()
}

fn all_places() -> impl Iterator<Item = &'static Place> {
    PLACES.iter().chain(WIDE_PLACES)
}

/// Refuses a word that is not among those that are known.
pub(crate) fn check<'a>(
    what: &str,
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), CompareError> {
    if known.clone().any(|other| other == word) {
        return Ok(());
    }
    let known = known.collect::<Vec<_>>().join(", ");
    Err(CompareError::Argument(format!("there is no {what} '{word}'; there are {known}")))
}

impl Plan {
    /// Whether there is anything to run, before time is spent on it.
    ///
    /// # Errors
    /// It names something that there is not.
    pub fn check(&self) -> Result<(), CompareError> {
        self.batches().map(drop)
    }

    /// The jobs, in the order in which they run.
    ///
    /// # Errors
    /// It names something that there is not.
    pub(super) fn batches(&self) -> Result<Vec<Batch>, CompareError> {
        self.programs.iter().try_for_each(|word| check("program", word, PROGRAMS.into_iter()))?;
        self.variants.iter().try_for_each(|word| check("variant", word, VARIANTS.into_iter()))?;
        self.places.iter().try_for_each(|word| check("place", word, place_names().into_iter()))?;
        let mut batches = Vec::new();
        for place in all_places().filter(|place| self.places.iter().any(|name| name == place.name)) {
            let exercises = self.exercises(place)?;
            let (threads, plain): (Vec<_>, Vec<_>) = exercises.into_iter().partition(Exercise::has_threads);
            for (has_threads, exercises) in [(false, plain), (true, threads)] {
                if !exercises.is_empty() {
                    batches.push(Batch { place, has_threads, exercises });
                }
            }
        }
        match batches.is_empty() {
            true => Err(CompareError::Argument("nothing is measured: no place, size or program".into())),
            false => Ok(batches),
        }
    }

    fn exercises(&self, place: &Place) -> Result<Vec<Exercise>, CompareError> {
        let others = place.ranks - 1;
        if let Some(degree) = self.degrees.iter().find(|degree| **degree == 0 || **degree > others) {
            return Err(CompareError::Argument(format!(
                "a rank cannot send to {degree} others at {}, where there are {others}",
                place.name
            )));
        }
        let mut degrees = match self.degrees.is_empty() {
            true => vec![1, others],
            false => self.degrees.clone(),
        };
        degrees.dedup();
        let mut all = Vec::new();
        for (program, variant) in self
            .programs
            .iter()
            .flat_map(|program| self.variants.iter().map(move |variant| (program, variant)))
            .filter(|(program, variant)| *program != FLOOD || *variant == "plain")
        {
            let messages = self.messages.unwrap_or(if program == FLOOD { 1024 } else { 1 });
            let of = |degree, messages, size| Exercise {
                program: program.clone(),
                variant: variant.clone(),
                degree,
                messages,
                size,
            };
            match of(0, 0, 0).is_toy() {
                true => all.extend(
                    degrees
                        .iter()
                        .flat_map(|&degree| self.sizes.iter().map(move |&size| (degree, size)))
                        .map(|(degree, size)| of(degree, messages, size)),
                ),
                false => all.extend(self.elements.iter().map(|&size| of(0, 0, size))),
            }
        }
        match all.iter().find(|exercise| exercise.own_bytes() > MESSAGES_MAX) {
            Some(exercise) => Err(CompareError::Argument(format!(
                "{exercise}: {} messages of each rank need {} at both ends, and {} is the most: \
                 fewer --messages, or a shorter --size",
                exercise.degree * exercise.messages,
                bytes(exercise.own_bytes()),
                bytes(MESSAGES_MAX)
            ))),
            None => Ok(all),
        }
    }
}
