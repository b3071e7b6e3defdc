//! Huge pages: whether the system gives them to memory that asks for them (transparent huge pages), and how
//! to ask.

use rustix::mm::{Advice, madvise};
use std::fs::read_to_string;
use std::sync::OnceLock;

/// Where the system says it.
const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

/// What memory is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Memory of one process.
    Private,
    /// Memory that processes share.
    Shared,
}

/// Bytes of a huge page, if the system gives them to memory of this kind.
pub fn page(kind: Kind) -> Option<usize> {
    static PAGES: [OnceLock<Option<usize>>; 2] = [OnceLock::new(), OnceLock::new()];
    *PAGES[kind as usize].get_or_init(|| look(kind))
}

fn look(kind: Kind) -> Option<usize> {
    let len: usize = read_to_string(format!("{SETTINGS}/hpage_pmd_size")).ok()?.trim().parse().ok()?;
    let file = match kind {
        Kind::Private => "enabled",
        Kind::Shared => "shmem_enabled",
    };
    // Newer systems have a setting for each size of pages, which may leave it to the one for all.
    let own = read_to_string(format!("{SETTINGS}/hugepages-{}kB/{file}", len >> 10)).unwrap_or_default();
    let all = read_to_string(format!("{SETTINGS}/{file}")).unwrap_or_default();
    let setting = chosen(&own).filter(|&word| word != "inherit").or_else(|| chosen(&all))?;
    (gives(setting) && len.is_power_of_two()).then_some(len)
}

/// The word in brackets.
fn chosen(setting: &str) -> Option<&str> {
    Some(setting.split_once('[')?.1.split_once(']')?.0)
}

/// Whether memory that asks has huge pages.
fn gives(setting: &str) -> bool {
    matches!(setting, "always" | "madvise" | "advise" | "within_size" | "force")
}

/// Asks for huge pages in memory that begins on one; false: the system does not know what is meant.
pub fn ask(start: *mut u8, len: usize) -> bool {
    // SAFETY: changes which pages hold the bytes, and no byte.
    unsafe { madvise(start.cast(), len, Advice::LinuxHugepage) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_decides() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("always inherit madvise never"), None);
        assert!(gives("advise") && !gives("never") && !gives("deny"));
    }
}
