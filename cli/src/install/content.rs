//! What an installation consists of: the one list, which the Python wheel takes over.

use nmad_mpi_table::{Abi, fortran, header};

/// One file or link, by its path below the prefix.
pub(super) struct Item {
    pub(super) path: String,
    pub(super) what: What,
}

/// Where it comes from.
pub(super) enum What {
    /// This very program.
    Program,
    /// Another name of the program `nmad` beside it.
    Name {
        /// The subcommand that it means, where there are no links.
        means: &'static str,
    },
    /// A shared library that cargo leaves beside this program under its `stem` (`libnmad`).
    Library {
        /// Without `.so`.
        stem: &'static str,
        /// The name under which programs load it.
        loaded: String,
    },
    /// Another name of the file `of` beside it, the library that programs load.
    Link {
        /// Its name.
        of: String,
    },
    /// Text.
    Text(String),
}

/// Part of the name of the library that changes when programs must be linked anew.
pub(super) fn abi() -> String {
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    if major == "0" { format!("0.{minor}") } else { major.to_string() }
}

/// Paths and texts of manual pages and completions.
pub(crate) type Manual = Vec<(String, String)>;

/// Everything.
pub(super) fn items(manual: Manual) -> Vec<Item> {
    let item = |path: &str, what: What| Item { path: path.into(), what };
    let text = |path: &str, text: &str| item(path, What::Text(text.into()));
    let mut items = vec![
        item("bin/nmad", What::Program),
        item("bin/mpiexec", What::Name { means: "run" }),
        item("bin/mpirun", What::Name { means: "run" }),
        item("bin/mpicc", What::Name { means: "mpicc" }),
        item("bin/mpicxx", What::Name { means: "mpicxx" }),
        item("bin/mpic++", What::Name { means: "mpicxx" }),
        item("bin/mpifort", What::Name { means: "mpifort" }),
        item("bin/mpif90", What::Name { means: "mpifort" }),
        item("bin/mpif77", What::Name { means: "mpifort" }),
        text("include/nmad.h", include_str!("../../share/include/nmad.h")),
        item("include/mpi.h", What::Text(header::text(Abi::Standard))),
        item("include/mpich/mpi.h", What::Text(header::text(Abi::Mpich))),
        item("include/mpif.h", What::Text(fortran::header::text(Abi::Standard))),
        item("include/mpich/mpif.h", What::Text(fortran::header::text(Abi::Mpich))),
    ];
    items.extend(library("libnmad", &abi(), env!("CARGO_PKG_VERSION")));
    items.extend(mpi("libmpi_abi", "libmpi_abi.so.1"));
    items.extend(mpi("libmpi", "libmpi.so.12"));
    items.extend(mpi("libmpifort_abi", "libmpifort_abi.so.1"));
    items.extend(mpi("libmpifort", "libmpifort.so.12"));
    // Debian's names for the same.
    let link = |path: &str, of: &str| item(path, What::Link { of: of.into() });
    items.extend([link("lib/libmpich.so.12", "libmpi.so.12"), link("lib/libmpich.so", "libmpich.so.12")]);
    items.extend([
        link("lib/libmpichfort.so.12", "libmpifort.so.12"),
        link("lib/libmpichfort.so", "libmpichfort.so.12"),
    ]);
    let templates = [
        ("lib/pkgconfig/nmad.pc", include_str!("../../share/nmad.pc.in")),
        ("lib/pkgconfig/mpi.pc", include_str!("../../share/pkgconfig/mpi.pc.in")),
        ("lib/pkgconfig/mpich.pc", include_str!("../../share/pkgconfig/mpich.pc.in")),
        ("lib/cmake/nmad/nmad-config.cmake", include_str!("../../share/nmad-config.cmake.in")),
        (
            "lib/cmake/nmad/nmad-config-version.cmake",
            include_str!("../../share/nmad-config-version.cmake.in"),
        ),
    ];
    items.extend(templates.map(|(path, template)| item(path, What::Text(fill(template)))));
    items.extend(manual.into_iter().map(|(path, text)| item(&path, What::Text(text))));
    items.extend(DOCUMENTS.iter().map(|(name, words)| text(&format!("share/doc/nmad/{name}"), words)));
    items
}

/// A library under the name that programs load (`.so.ABI`), that of its version, and that of the linker.
fn library(stem: &'static str, abi: &str, version: &str) -> [Item; 3] {
    let loaded = format!("{stem}.so.{abi}");
    let file = What::Library { stem, loaded: loaded.clone() };
    [
        Item { path: format!("lib/{stem}.so.{version}"), what: file },
        Item { path: format!("lib/{loaded}"), what: What::Link { of: format!("{stem}.so.{version}") } },
        Item { path: format!("lib/{stem}.so"), what: What::Link { of: loaded } },
    ]
}

/// A library of MPI: the binary interface fixes the name that programs load.
fn mpi(stem: &'static str, loaded: &str) -> [Item; 2] {
    let file = What::Library { stem, loaded: loaded.into() };
    [
        Item { path: format!("lib/{loaded}"), what: file },
        Item { path: format!("lib/{stem}.so"), what: What::Link { of: loaded.into() } },
    ]
}

fn fill(template: &str) -> String {
    template.replace("@VERSION@", env!("CARGO_PKG_VERSION")).replace("@ABI@", &abi())
}

const DOCUMENTS: &[(&str, &str)] = &[
    ("LICENSE-APACHE", include_str!("../../share/LICENSE-APACHE")),
    ("LICENSE-MIT", include_str!("../../share/LICENSE-MIT")),
    ("c.md", include_str!("../../share/docs/c.md")),
    ("collectives.md", include_str!("../../share/docs/collectives.md")),
    ("compare.md", include_str!("../../share/docs/compare.md")),
    ("encrypt.md", include_str!("../../share/docs/encrypt.md")),
    ("failover.md", include_str!("../../share/docs/failover.md")),
    ("files.md", include_str!("../../share/docs/files.md")),
    ("fortran.md", include_str!("../../share/docs/fortran.md")),
    ("imbalance.md", include_str!("../../share/docs/imbalance.md")),
    ("install.md", include_str!("../../share/docs/install.md")),
    ("json.md", include_str!("../../share/docs/json.md")),
    ("json.schema.json", include_str!("../../share/docs/json.schema.json")),
    ("machines.md", include_str!("../../share/docs/machines.md")),
    ("messages.md", include_str!("../../share/docs/messages.md")),
    ("mpi.md", include_str!("../../share/docs/mpi.md")),
    ("one-sided.md", include_str!("../../share/docs/one-sided.md")),
    ("papers.md", include_str!("../../share/docs/papers.md")),
    ("processes.md", include_str!("../../share/docs/processes.md")),
    ("progress.md", include_str!("../../share/docs/progress.md")),
    ("python.md", include_str!("../../share/docs/python.md")),
    ("ranks-die.md", include_str!("../../share/docs/ranks-die.md")),
    ("rdma.md", include_str!("../../share/docs/rdma.md")),
    ("run.md", include_str!("../../share/docs/run.md")),
    ("settings.md", include_str!("../../share/docs/settings.md")),
    ("simulator.md", include_str!("../../share/docs/simulator.md")),
    ("strategy.md", include_str!("../../share/docs/strategy.md")),
    ("testbed.md", include_str!("../../share/docs/testbed.md")),
    ("tools.md", include_str!("../../share/docs/tools.md")),
    ("trace.md", include_str!("../../share/docs/trace.md")),
    ("tune.md", include_str!("../../share/docs/tune.md")),
    ("udp.md", include_str!("../../share/docs/udp.md")),
    ("wire.md", include_str!("../../share/docs/wire.md")),
    ("examples/CMakeLists.txt", include_str!("../../share/examples/CMakeLists.txt")),
    ("examples/heat-mpif.f90", include_str!("../../share/fortran/heat-mpif.f90")),
    ("examples/heat-mpi.f90", include_str!("../../share/fortran/heat-mpi.f90")),
    ("examples/heat-f08.f90", include_str!("../../share/fortran/heat-f08.f90")),
    ("examples/hello.c", include_str!("../../share/examples/hello.c")),
    ("examples/hello.py", include_str!("../../share/examples/hello.py")),
    ("examples/loop.c", include_str!("../../share/examples/loop.c")),
    ("examples/pieces.c", include_str!("../../share/examples/pieces.c")),
    ("examples/restart.c", include_str!("../../share/mpi/restart.c")),
    ("examples/service.c", include_str!("../../share/examples/service.c")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_there_twice_and_all_stay_below_the_prefix() {
        let paths: Vec<String> = items(Manual::new()).into_iter().map(|item| item.path).collect();
        let distinct: std::collections::BTreeSet<&String> = paths.iter().collect();
        assert_eq!(distinct.len(), paths.len());
        assert!(paths.iter().all(|path| !path.starts_with('/') && !path.contains("..")), "{paths:?}");
    }

    #[test]
    fn links_of_documents_lead_to_documents() {
        for (name, text) in DOCUMENTS.iter().filter(|(name, _)| name.ends_with(".md")) {
            let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
            let is_near = |target: &&str| target.ends_with(".md") && !target.starts_with("https:");
            for target in targets.filter(is_near) {
                assert!(DOCUMENTS.iter().any(|(other, _)| other == &target), "{name}: {target}");
            }
        }
    }

    #[test]
    fn templates_are_filled() {
        for item in items(Manual::new()) {
            let What::Text(text) = item.what else { continue };
            assert!(!text.contains("@VERSION@") && !text.contains("@ABI@"), "{}", item.path);
        }
    }
}
