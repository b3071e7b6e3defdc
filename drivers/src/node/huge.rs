//! Transparent huge pages: detects whether the system provides them to memory that requests them, and
//! requests them.

use rustix::mm::{Advice, madvise};
use std::fs::read_to_string;
use std::sync::OnceLock;

/// Folder of the kernel's settings.
const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

/// Kind of memory; each has its own setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Private memory of one process.
    Private,
    /// Memory shared by processes.
    Shared,
}

/// Size of a huge page in bytes, if the system provides them to memory of this kind.
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
    // Newer kernels have a setting for each page size, which may refer to the global one (`inherit`).
    let own = read_to_string(format!("{SETTINGS}/hugepages-{}kB/{file}", len >> 10)).unwrap_or_default();
    let all = read_to_string(format!("{SETTINGS}/{file}")).unwrap_or_default();
    let setting = chosen(&own).filter(|&word| word != "inherit").or_else(|| chosen(&all))?;
    (gives(setting) && len.is_power_of_two()).then_some(len)
}

/// The selected word, which is in brackets.
fn chosen(setting: &str) -> Option<&str> {
    Some(setting.split_once('[')?.1.split_once(']')?.0)
}

/// Returns whether memory that requests huge pages gets them.
fn gives(setting: &str) -> bool {
    matches!(setting, "always" | "madvise" | "advise" | "within_size" | "force")
}

/// Requests huge pages for memory that begins at a multiple of their size; false: the system does not
/// support this.
pub fn ask(start: *mut u8, len: usize) -> bool {
    // SAFETY: changes the pages behind the memory, but not its content.
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
