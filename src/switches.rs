//! The switch of this host, as the user or Slurm names it.

use nmad_engine::profile::hash::fnv1a;
use nmad_words::setting::MPI_SWITCH;

/// Returns a number for the name of the switch of this host, equal on all hosts of this switch; `None` if
/// nobody names it.
///
/// # Errors
/// The text of the setting is no Unicode.
pub(crate) fn own() -> Result<Option<u32>, String> {
    let told = MPI_SWITCH.text()?.filter(|name| name != MPI_SWITCH.default && !name.is_empty());
    let host = rustix::system::uname();
    let slurm = || of_slurm(|name| std::env::var(name).ok(), &host.nodename().to_string_lossy());
    Ok(told.or_else(slurm).map(|name| number(&name)))
}

/// Returns the last switch on the way to this host, as Slurm says it to the processes that it starts: with
/// `topology/tree` `s0.s4.s8.n1` and `switch.switch.switch.node`. The node must be this one, since programs
/// may pass their environment on to other hosts.
fn of_slurm(variable: impl Fn(&str) -> Option<String>, host: &str) -> Option<String> {
    let [names, kinds] = ["SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN"].map(variable);
    let (names, kinds) = (names?, kinds?);
    let short = host.split('.').next()?;
    let (names, kinds): (Vec<&str>, Vec<&str>) = (names.split('.').collect(), kinds.split('.').collect());
    let is_here = names.len() == kinds.len() && (names.last(), kinds.last()) == (Some(&short), Some(&"node"));
    kinds.iter().rposition(|kind| *kind == "switch").filter(|_| is_here).map(|at| names[at].to_string())
}

/// If two names have one number, their switches count as one.
fn number(name: &str) -> u32 {
    fnv1a(name.as_bytes()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_names_the_last_switch_before_the_node() {
        let of = |names: &str, kinds: &str, host: &str| {
            let variable =
                |name: &str| Some(if name.ends_with("PATTERN") { kinds } else { names }.to_string());
            of_slurm(variable, host)
        };
        let three = "switch.switch.switch.node";
        assert_eq!(of("s0.s4.s8.n1", three, "n1").as_deref(), Some("s8"));
        assert_eq!(of("s0.s4.s8.n1", three, "n1.example.org").as_deref(), Some("s8"));
        assert_eq!(of("s0.s[4-5].s8.n1", three, "n1").as_deref(), Some("s8"));
        assert_eq!(of("n1", "node", "n1"), None, "no switches");
        assert_eq!(of("s0.s4.s8.n1", three, "n2"), None, "the environment of another host");
        assert_eq!(of("s0.n1", three, "n1"), None, "not what the pattern says");
        assert_eq!(of("s0.s1", "switch.switch", "s1"), None, "no node");
        assert_eq!(of_slurm(|_| None, "n1"), None);
        assert_ne!(number("s8"), number("s9"));
    }
}
