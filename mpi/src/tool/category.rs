//! How variables and events are grouped.

use super::performance::{ALL as PERFORMANCE, Performance};
use super::{Binding, event};
use newmadeleine::setting::{ALL as ALL_SETTINGS, Reader};

/// A category.
pub struct Category {
    /// Its name.
    pub name: &'static str,
    /// Its contents, in words.
    pub about: &'static str,
    has: Has,
}

/// What belongs to a category.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    /// These categories.
    Categories(&'static [i32]),
    /// Settings, those of MPI or the others.
    Settings {
        of_mpi: bool,
    },
    /// Performance variables with this binding.
    Performance(Binding),
    Events,
}

/// All of them.
pub(crate) const ALL: [Category; 6] = [
    Category { name: "nmad", about: "Everything of NewMadeleine", has: Has::Categories(&[1, 3, 4, 5]) },
    Category {
        name: "nmad_settings",
        about: "Settings of rails, strategies and launchers",
        has: Has::Settings { of_mpi: false },
    },
    Category { name: "nmad_mpi_settings", about: "Settings of MPI", has: Has::Settings { of_mpi: true } },
    Category {
        name: "nmad_rails",
        about: "What the rails of this process have carried",
        has: Has::Performance(Binding::Nothing),
    },
    Category {
        name: "nmad_peers",
        about: "Messages to and from the processes of a communicator",
        has: Has::Performance(Binding::Comm),
    },
    Category { name: "nmad_events", about: "What programs can be called for", has: Has::Events },
];

impl Category {
    /// Control variables in it.
    pub(crate) fn controls(&self) -> Vec<i32> {
        let Has::Settings { of_mpi } = self.has else { return Vec::new() };
        let names = (0..).zip(ALL_SETTINGS);
        names
            .filter(|(_, setting)| (setting.reader == Reader::Mpi) == of_mpi)
            .map(|(index, _)| index)
            .collect()
    }

    /// Performance variables in it.
    pub(crate) fn performances(&self) -> Vec<i32> {
        let Has::Performance(binding) = self.has else { return Vec::new() };
        let is_in = |(_, each): &(i32, &Performance)| each.binding() == binding;
        (0..).zip(&PERFORMANCE).filter(is_in).map(|(index, _)| index).collect()
    }

    /// Categories in it.
    pub(crate) fn categories(&self) -> Vec<i32> {
        match self.has {
            Has::Categories(list) => list.to_vec(),
            Has::Settings { of_mpi: false } => vec![2],
            _ => Vec::new(),
        }
    }

    /// Events in it.
    pub(crate) fn events(&self) -> Vec<i32> {
        if self.has == Has::Events { (0..event::ALL.len() as i32).collect() } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_in_one_category() {
        let all = |of: fn(&Category) -> Vec<i32>| {
            let mut all: Vec<i32> = ALL.iter().flat_map(of).collect();
            all.sort_unstable();
            all
        };
        let up_to = |count: usize| (0..count as i32).collect::<Vec<i32>>();
        assert_eq!(all(Category::controls), up_to(ALL_SETTINGS.len()));
        assert_eq!(all(Category::performances), up_to(PERFORMANCE.len()));
        assert_eq!(all(Category::events), up_to(event::ALL.len()));
        assert_eq!(all(Category::categories), up_to(ALL.len())[1..]);
    }
}
