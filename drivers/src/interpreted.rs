//! Whether another program interprets this process: valgrind, which tells of memory that is used before it
//! was written, and of calls of the system that it does not know.

/// Part of the names of the files that valgrind has each of its processes load (`LD_PRELOAD`).
const PRELOADED: &[u8] = b"vgpreload_";

/// Whether it is valgrind. It sees neither what other processes write here, nor knows the latest calls of the
/// system: single copies and such calls are done without.
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
