//! The options of MPICH's and Open MPI's launchers and their meanings here, as data.
//!
//! The standard only has `-n`. Names have one dash here; users write one or two.

/// Meaning of an option of another launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Our option with this prefix, with the next word as its value.
    Value(&'static str),
    /// Our option.
    Flag(&'static str),
    /// Always in effect here.
    Granted,
    /// Without effect here, since it tunes the other launcher; it has this number of values.
    Ignored(usize),
    /// Refused with this advice, since it would change where or how ranks run.
    Remedy(&'static str),
}

use Meaning::{Flag, Granted, Ignored, Remedy, Value};

/// Names and meanings. Options of the same spelling with two dashes are in [`super::RunArgs`].
const OPTIONS: [(&str, Meaning); 106] = [
    // How many ranks, and where.
    ("-np", Value("--ranks=")),
    ("--n", Value("--ranks=")),
    ("-hosts", Value("--hosts=")),
    ("-host", Value("--hosts=")),
    ("-H", Value("--hosts=")),
    ("-hostfile", Value("--hostfile=")),
    ("-machinefile", Value("--hostfile=")),
    ("-f", Value("--hostfile=")),
    ("-ppn", Value("--ppn=")),
    ("-perhost", Value("--ppn=")),
    ("-npernode", Value("--ppn=")),
    ("-N", Value("--ppn=")),
    ("-pernode", Flag("--ppn=1")),
    ("-map-by", Value("--map-by=")),
    ("-byslot", Flag("--map-by=slot")),
    ("-bynode", Flag("--map-by=node")),
    ("-cpus-per-rank", Value("--map-by=slot:PE=")),
    ("-cpus-per-proc", Value("--map-by=slot:PE=")),
    ("-bind-to", Value("--bind-to=")),
    ("-bind", Value("--bind-to=")),
    ("-binding", Value("--bind-to=")),
    ("-bind-to-core", Flag("--bind-to=core")),
    ("-bind-to-socket", Flag("--bind-to=socket")),
    ("-bind-to-none", Flag("--bind-to=none")),
    ("-report-bindings", Flag("--report-bindings")),
    ("-display-map", Flag("--report-bindings")),
    ("-display-devel-map", Flag("--report-bindings")),
    ("-print-rank-map", Flag("--report-bindings")),
    ("-oversubscribe", Flag("--oversubscribe")),
    ("-nooversubscribe", Remedy("ranks may always outnumber slots and cores; -n says how many there are")),
    ("-use-hwthread-cpus", Remedy("take --bind-to hwthread")),
    ("-nolocal", Remedy("name the machines that are to have ranks with -hosts or -f")),
    ("-rankfile", Remedy(RANKFILE)),
    ("-rf", Remedy(RANKFILE)),
    ("-cpu-set", Remedy(CPU_SET)),
    ("-cpu-list", Remedy(CPU_SET)),
    ("-npersocket", Remedy("take -ppn N --map-by socket, with the N of a whole machine")),
    // How ranks are started.
    ("-launcher", Value("--launcher=")),
    ("-bootstrap", Value("--launcher=")),
    ("-launcher-exec", Value("--launcher-exec=")),
    ("-bootstrap-exec", Value("--launcher-exec=")),
    ("-prefix", Value("--prefix=")),
    ("-wdir", Value("--wdir=")),
    ("-wd", Value("--wdir=")),
    ("-genvlist", Value("--genvlist=")),
    ("-envlist", Value("--genvlist=")),
    ("-genvnone", Flag("--genvnone")),
    ("-envnone", Flag("--genvnone")),
    ("-genvall", Granted),
    ("-envall", Granted),
    ("-allow-run-as-root", Granted),
    ("-initial-errhandler", Value("--initial-errhandler=")),
    ("-hosts-from", Value("--hosts-from=")),
    ("-driver", Value("--driver=")),
    ("-iface", Value("--rails=")),
    ("-rails", Value("--rails=")),
    ("-preload-binary", Remedy("the program has to be on all machines, at the same path or in PATH")),
    // How the job ends.
    ("-timeout", Value("--timeout=")),
    ("-disable-auto-cleanup", Flag("--ft")),
    ("-enable-recovery", Flag("--keep-going")),
    ("-continuous", Flag("--keep-going")),
    ("-enable-auto-cleanup", Granted),
    ("-disable-recovery", Granted),
    ("-print-all-exitcodes", Ignored(0)),
    ("-report-state-on-timeout", Ignored(0)),
    ("-get-stack-traces", Ignored(0)),
    // Input and output.
    ("-s", Value("--stdin=")),
    ("-stdin", Value("--stdin=")),
    ("-l", Flag("--tag-output")),
    ("-prepend-rank", Flag("--tag-output")),
    ("-tag-output", Flag("--tag-output")),
    ("-timestamp-output", Flag("--timestamp-output")),
    ("-prepend-pattern", Remedy("take -l, which begins each line with the number of its rank in brackets")),
    ("-output-filename", Value("--output-filename=")),
    ("-outfile-pattern", Value("--outfile=")),
    ("-outfile", Value("--outfile=")),
    ("-errfile-pattern", Value("--errfile=")),
    ("-errfile", Value("--errfile=")),
    ("-merge-stderr-to-stdout", Remedy("put 2>&1 behind the command")),
    ("-xml", Remedy("take -l for lines with the number of their rank")),
    ("-xterm", Remedy("start a terminal as the program: xterm -e PROG ARGS")),
    // Answers.
    ("-version", Flag("--version")),
    ("-V", Flag("--version")),
    ("-info", Flag("--version")),
    ("-help", Flag("--help")),
    // Options that only tune other launchers.
    ("-gmca", Ignored(2)),
    ("-prtemca", Ignored(2)),
    ("-pmixmca", Ignored(2)),
    ("-gpmixmca", Ignored(2)),
    ("-tune", Ignored(1)),
    ("-am", Ignored(1)),
    ("-personality", Ignored(1)),
    ("-rmk", Ignored(1)),
    ("-demux", Ignored(1)),
    ("-topolib", Ignored(1)),
    ("-usize", Ignored(1)),
    ("-ckpoint-interval", Ignored(1)),
    ("-pmi-port", Ignored(0)),
    ("-nameserver", Ignored(1)),
    ("-verbose", Ignored(0)),
    ("-v", Ignored(0)),
    ("-display-allocation", Ignored(0)),
    ("-display-topo", Ignored(0)),
    ("-disable-hostname-propagation", Ignored(0)),
    ("-enable-hostname-propagation", Ignored(0)),
    ("-q", Granted),
];

const RANKFILE: &str = "ranks are placed by -hosts or -f with slots, --map-by and --bind-to; \
                        --report-bindings shows where each is";

const CPU_SET: &str = "ranks stay within the processors of mpiexec: `taskset -c LIST mpiexec ...`";

/// Returns the meaning of an option of other launchers.
pub fn meaning(option: &str) -> Option<Meaning> {
    let single = one_dash(option);
    OPTIONS.iter().find(|(name, _)| [single, option].contains(name)).map(|(_, meaning)| *meaning)
}

/// Returns the option with one dash instead of two, except options of one letter.
pub fn one_dash(option: &str) -> &str {
    let single = option.strip_prefix('-').filter(|rest| rest.starts_with('-') && rest.len() > 2);
    single.unwrap_or(option)
}

/// Returns the prefix of our option for a parameter of Open MPI's components (`--mca NAME VALUE`).
pub fn mca(name: &str) -> Option<&'static str> {
    Some(match name {
        "btl_tcp_if_include" => "--rails=",
        "plm_rsh_agent" | "plm_ssh_agent" => "--launcher-exec=",
        "hwloc_base_binding_policy" => "--bind-to=",
        "rmaps_base_mapping_policy" => "--map-by=",
        _ => return None,
    })
}

/// Returns the meaning of a word of Open MPI 5's `--output` or `--display`.
pub fn directive(option: &str, word: &str) -> Option<Meaning> {
    Some(match (one_dash(option), word) {
        ("-output", "tag" | "rank" | "tag-detailed" | "tag-fullname") => Flag("--tag-output"),
        ("-output", "timestamp") => Flag("--timestamp-output"),
        ("-output", "merge" | "merge-stderr-to-stdout") => Remedy("put 2>&1 behind the command"),
        ("-output", "xml") => Remedy("take --output tag"),
        ("-output", "raw") => Granted,
        ("-display", "map" | "map-devel" | "bind" | "bindings") => Flag("--report-bindings"),
        ("-display", "allocation" | "topo" | "parseable" | "parsable") => Granted,
        ("-rank-by", "slot" | "fill" | "core" | "hwthread") => Granted,
        ("-rank-by", "node" | "span") => Remedy("take --map-by node, which numbers ranks so as well"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_mean_existing_options() {
        let mut names: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OPTIONS.len());
        for (name, meaning) in OPTIONS {
            if let Value(ours) | Flag(ours) = meaning {
                let is_known = super::super::spelling::is_ours(ours.trim_start_matches('-'));
                assert!(is_known, "{name} means {ours}");
            }
        }
    }
}
