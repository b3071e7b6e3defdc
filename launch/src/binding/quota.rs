//! The CPU quota of the process's control groups, which applies beside the cpuset.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Mount point of the control groups.
const FOLDER: &str = "/sys/fs/cgroup";

/// Returns the number of processors that the control groups let this process use at the same time, at least
/// 1; `usize::MAX` without a limit.
pub fn processors() -> usize {
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    limit(Path::new(FOLDER), &groups)
}

/// Returns the lowest limit of all groups of this process and of the groups that contain them.
fn limit(folder: &Path, groups: &str) -> usize {
    let mut least = usize::MAX;
    for line in groups.lines() {
        let mut words = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (words.next(), words.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.is_empty() {
            least = upwards(&folder.join(path), folder)
                .filter_map(|group| second(&group))
                .fold(least, usize::min);
        } else if controllers.split(',').any(|name| name == "cpu") {
            let root = folder.join(controllers);
            least =
                upwards(&root.join(path), &root).filter_map(|group| first(&group)).fold(least, usize::min);
        }
    }
    least
}

/// Returns a folder and its parents up to `root`. In a container the path of a group may not exist; then
/// the group is `root`.
fn upwards(group: &Path, root: &Path) -> impl Iterator<Item = PathBuf> {
    let root = root.to_owned();
    let all: Vec<PathBuf> = group.ancestors().map(Path::to_owned).collect();
    all.into_iter().take_while(move |folder| folder.starts_with(&root))
}

/// Returns the limit of a group of version 2: `cpu.max` contains `QUOTA PERIOD`, or `max PERIOD`.
fn second(group: &Path) -> Option<usize> {
    let text = read_to_string(group.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    share(quota, period)
}

/// Returns the limit of a group of version 1; a quota of -1 means none.
fn first(group: &Path) -> Option<usize> {
    let quota = read_to_string(group.join("cpu.cfs_quota_us")).ok()?;
    let period = read_to_string(group.join("cpu.cfs_period_us")).ok()?;
    share(quota.trim(), period.trim())
}

fn share(quota: &str, period: &str) -> Option<usize> {
    let (quota, period): (usize, usize) = (quota.parse().ok()?, period.parse().ok()?);
    Some(quota.checked_div(period)?.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_group_around_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).expect("folders");
        assert_eq!(limit(root.path(), "0::/a/b\n"), usize::MAX);
        std::fs::write(inner.join("cpu.max"), "max 100000\n").expect("a file");
        std::fs::write(root.path().join("a/cpu.max"), "250000 100000\n").expect("a file");
        assert_eq!(limit(root.path(), "0::/a/b\n"), 2);
        std::fs::write(inner.join("cpu.max"), "50000 100000\n").expect("a file");
        assert_eq!(limit(root.path(), "0::/a/b\n"), 1, "half a processor is one rank's");
        assert_eq!(limit(root.path(), "0::/elsewhere\n"), usize::MAX);
    }

    #[test]
    fn groups_of_the_first_version_are_read_as_well() {
        let root = tempfile::tempdir().expect("a folder");
        let group = root.path().join("cpu,cpuacct/job");
        std::fs::create_dir_all(&group).expect("folders");
        for (file, text) in [("cpu.cfs_quota_us", "300000\n"), ("cpu.cfs_period_us", "100000\n")] {
            std::fs::write(group.join(file), text).expect("a file");
        }
        assert_eq!(limit(root.path(), "4:cpu,cpuacct:/job\n1:memory:/job\n"), 3);
        std::fs::write(group.join("cpu.cfs_quota_us"), "-1\n").expect("a file");
        assert_eq!(limit(root.path(), "4:cpu,cpuacct:/job\n"), usize::MAX);
    }
}
