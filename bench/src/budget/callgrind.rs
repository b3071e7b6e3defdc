//! Instructions that callgrind has counted, in all and inside of libraries of others.
//!
//! Its file is read as it is written with `--compress-strings=no --compress-pos=no`: lines of costs below the
//! object (`ob=`) and function that they are of. Behind a line `calls=` stands what a call cost in all, also
//! inside of what it called, whose object is named if it is another one (`cob=`).

/// Counted instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// All of them.
    pub all: u64,
    /// Those in calls that others make into the libraries.
    pub libraries: u64,
}

/// Reads a file. Libraries are those whose path has one of these names in it. None: it is no such file.
pub fn read(text: &str, names: &[&str]) -> Option<Counted> {
    let is_library = |path: &str| names.iter().any(|name| path.contains(name));
    let (mut all, mut libraries) = (None, 0);
    // Whether the present object is a library, and whether the object that is called is one.
    let (mut is_inside, mut enters) = (false, None);
    let mut is_call = false;
    for line in text.lines() {
        if let Some(count) = line.strip_prefix("summary: ") {
            all = count.trim().parse().ok();
        } else if let Some(path) = line.strip_prefix("ob=") {
            is_inside = is_library(path);
        } else if let Some(path) = line.strip_prefix("cob=") {
            enters = Some(is_library(path));
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if std::mem::take(&mut is_call) && enters.take() == Some(true) && !is_inside {
            libraries += line.split(' ').nth(1)?.parse::<u64>().ok()?;
        }
    }
    all.map(|all| Counted { all, libraries })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_into_libraries_count_with_all_that_they_call_and_once() {
        let text = "events: Ir\nsummary: 1000\n\nob=/bin/program\nfl=a.rs\nfn=send\n3 400\n\
                    cob=/lib/libibverbs.so.1\ncfn=post\ncalls=2 7\n3 250\ncfn=copy\ncalls=1 7\n3 50\n\
                    cob=/lib/libc.so.6\ncfn=memcpy\ncalls=1 7\n3 20\n\n\
                    ob=/lib/libibverbs.so.1\nfn=post\n7 100\n\
                    cob=/lib/librxe.so\ncfn=ring\ncalls=2 9\n7 150\n\n\
                    ob=/lib/librxe.so\nfn=ring\n9 150\n";
        assert_eq!(read(text, &["libibverbs", "librxe"]), Some(Counted { all: 1000, libraries: 250 }));
        assert_eq!(read(text, &["libc.so"]), Some(Counted { all: 1000, libraries: 20 }));
        assert_eq!(read("no such file", &[]), None);
    }
}
