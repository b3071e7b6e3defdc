//! Properties of file systems: whether machines see each other's writes at once, and the block size.

use rustix::fs::{StatFs, statfs};
use std::path::Path;

/// A file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct System {
    /// Its name.
    pub name: &'static str,
    /// Who sees what others write.
    pub coherence: Coherence,
    /// Bytes of a block.
    pub block: u64,
}

/// Who sees at once what a process writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coherence {
    /// Every process of the machine; other machines do not have this file system.
    Node,
    /// Every process of every machine.
    Cluster,
    /// Every process of the machine; other machines when the file is closed or synchronised. Writes of two
    /// machines to one page may undo each other.
    Close,
}

impl Coherence {
    /// Returns the promise in words.
    pub fn text(self) -> &'static str {
        match self {
            Coherence::Node => {
                "processes of this machine see each other's writes at once; other machines cannot access it"
            }
            Coherence::Cluster => "processes of all machines see each other's writes at once",
            Coherence::Close => "machines see each other's writes when a file is closed or synchronised",
        }
    }
}

/// The number that a file system has in Linux (`statfs`), its name, and its promise.
const KNOWN: [(u64, &str, Coherence); 20] = [
    (0xef53, "ext4", Coherence::Node),
    (0x5846_5342, "xfs", Coherence::Node),
    (0x9123_683e, "btrfs", Coherence::Node),
    (0x0102_1994, "tmpfs", Coherence::Node),
    (0x8584_58f6, "ramfs", Coherence::Node),
    (0x794c_7630, "overlay", Coherence::Node),
    (0x2fc1_2fc1, "zfs", Coherence::Node),
    (0xf2f5_2010, "f2fs", Coherence::Node),
    (0x4d44, "vfat", Coherence::Node),
    (0x0bd0_0bd0, "lustre", Coherence::Cluster),
    (0x4750_4653, "gpfs", Coherence::Cluster),
    (0x00c3_6400, "ceph", Coherence::Cluster),
    (0x1983_0326, "beegfs", Coherence::Cluster),
    (0x0116_1970, "gfs2", Coherence::Cluster),
    (0x6969, "nfs", Coherence::Close),
    (0x517b, "smb", Coherence::Close),
    (0xff53_4d42, "cifs", Coherence::Close),
    (0xfe53_4d42, "smb2", Coherence::Close),
    (0x0102_1997, "9p", Coherence::Close),
    (0x6573_5546, "fuse", Coherence::Close),
];

/// Bytes of a page, the least unit in which machines keep parts of a file.
const PAGE: u64 = 4096;

impl System {
    /// That of an open file. One that is not known promises as little as NFS.
    pub(crate) fn of(stat: &StatFs) -> System {
        // The type is signed on some machines.
        let number = stat.f_type as u64 & 0xffff_ffff;
        let known = KNOWN.iter().find(|(known, ..)| *known == number);
        let (name, coherence) =
            known.map_or(("unknown", Coherence::Close), |(_, name, promise)| (name, *promise));
        let block = u64::try_from(stat.f_bsize).unwrap_or(PAGE).clamp(PAGE, 16 << 20);
        System { name, coherence, block }
    }

    /// Returns the file system of a file or folder; `None` if the system does not name it.
    pub fn at(path: &Path) -> Option<System> {
        statfs(path).ok().map(|stat| System::of(&stat))
    }

    /// Whether it is known to show maps and system calls the same bytes, at little cost.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.name, "ext4" | "xfs" | "btrfs" | "tmpfs")
    }

    /// Whether processes on one machine, or on several, see each other's writes at once.
    pub fn is_coherent(&self, on_several_nodes: bool) -> bool {
        !on_several_nodes || self.coherence == Coherence::Cluster
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_machine_sees_its_own_writes_and_several_only_those_of_cluster_file_systems() {
        let of = |name| {
            let (_, name, coherence) = KNOWN.into_iter().find(|known| known.1 == name).expect("it is known");
            System { name, coherence, block: PAGE }
        };
        assert!(of("nfs").is_coherent(false) && !of("nfs").is_coherent(true));
        assert!(of("lustre").is_coherent(true) && !of("ext4").is_coherent(true));
    }
}
