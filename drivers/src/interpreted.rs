//! Detects whether this process runs under valgrind, which reports reads of uninitialised memory and system
//! calls that it does not know.

/// Part of the names of the libraries that valgrind preloads into each process (`LD_PRELOAD`).
const PRELOADED: &[u8] = b"vgpreload_";

/// Returns whether this process runs under valgrind. Valgrind does not see what other processes write into
/// this process's memory, and does not know the latest system calls: single copies and such calls are then
/// disabled.
pub fn by_valgrind() -> bool {
    std::env::var_os("LD_PRELOAD").is_some_and(|list| names_valgrind(list.as_encoded_bytes()))
}

fn names_valgrind(list: &[u8]) -> bool {
    list.windows(PRELOADED.len()).any(|part| part == PRELOADED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrind_is_known_by_what_it_has_loaded() {
        let valgrind = "/usr/libexec/valgrind/vgpreload_core-amd64-linux.so:/usr/lib/libx.so";
        assert!(names_valgrind(valgrind.as_bytes()));
        assert!(!names_valgrind(b"/usr/lib/libasan.so") && !names_valgrind(b""));
    }
}
