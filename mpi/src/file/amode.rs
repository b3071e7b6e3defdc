//! How a file is opened: the bits of `MPI_File_open`, with the numbers of the standard's binary interface.

use super::Kind;
use crate::error::{Class, Result};
use nmad_file::Opening;

/// The bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amode(i32);

impl Amode {
    const APPEND: i32 = 1;
    const CREATE: i32 = 2;
    const DELETE_ON_CLOSE: i32 = 4;
    const EXCL: i32 = 8;
    const RDONLY: i32 = 16;
    const RDWR: i32 = 32;
    const SEQUENTIAL: i32 = 64;
    const WRONLY: i32 = 256;

    /// Checks which bits come together.
    ///
    /// # Errors
    /// Class AMODE if not exactly one of read, write and both is there, or bits contradict each other.
    pub(super) fn new(bits: i32) -> Result<Amode> {
        let amode = Amode(bits);
        let ways = [Self::RDONLY, Self::RDWR, Self::WRONLY].into_iter().filter(|bit| amode.has(*bit)).count();
        if ways != 1 {
            let text = format!(
                "the mode has {ways} of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR: it must have one"
            );
            return Err(Class::AMODE.error(text));
        }
        let wrong = |text: &str| Err(Class::AMODE.error(text));
        if amode.has(Self::RDONLY) && (amode.has(Self::CREATE) || amode.has(Self::EXCL)) {
            return wrong("MPI_MODE_RDONLY does not go with MPI_MODE_CREATE or MPI_MODE_EXCL");
        }
        if amode.has(Self::RDWR) && amode.has(Self::SEQUENTIAL) {
            return wrong("MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL");
        }
        Ok(amode)
    }

    fn has(self, bit: i32) -> bool {
        self.0 & bit != 0
    }

    pub(crate) fn bits(self) -> i32 {
        self.0
    }

    pub(super) fn reads(self) -> bool {
        !self.has(Self::WRONLY)
    }

    pub(super) fn writes(self) -> bool {
        !self.has(Self::RDONLY)
    }

    pub(super) fn is_sequential(self) -> bool {
        self.has(Self::SEQUENTIAL)
    }

    pub(super) fn creates(self) -> bool {
        self.has(Self::CREATE)
    }

    pub(super) fn appends(self) -> bool {
        self.has(Self::APPEND)
    }

    pub(super) fn deletes(self) -> bool {
        self.has(Self::DELETE_ON_CLOSE)
    }

    /// How the system opens it: the first rank creates the file, all others find it.
    pub(super) fn opening(self, is_first: bool) -> Opening {
        Opening {
            reads: self.reads(),
            writes: self.writes(),
            creates: is_first && self.has(Self::CREATE),
            is_exclusive: is_first && self.has(Self::EXCL),
            mode: None,
        }
    }

    /// Whether an access is what the file was opened for.
    ///
    /// # Errors
    /// Class READ_ONLY or ACCESS.
    pub(super) fn check(self, kind: Kind) -> Result<()> {
        match kind {
            Kind::Write if !self.writes() => {
                Err(Class::READ_ONLY.error("the file was opened with MPI_MODE_RDONLY: it cannot be written"))
            }
            Kind::Read if !self.reads() => {
                Err(Class::ACCESS.error("the file was opened with MPI_MODE_WRONLY: it cannot be read"))
            }
            _ => Ok(()),
        }
    }

    /// Whether places in the file can be named.
    ///
    /// # Errors
    /// Class UNSUPPORTED_OPERATION in sequential mode.
    pub(super) fn check_random(self) -> Result<()> {
        if self.is_sequential() {
            let text =
                "the file was opened with MPI_MODE_SEQUENTIAL: only the shared file pointer may be used";
            return Err(Class::UNSUPPORTED_OPERATION.error(text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_contradict_each_other_are_refused() {
        for wrong in [
            0,
            Amode::CREATE,
            Amode::RDONLY | Amode::WRONLY,
            Amode::RDONLY | Amode::CREATE,
            Amode::RDONLY | Amode::EXCL,
            Amode::RDWR | Amode::SEQUENTIAL,
        ] {
            assert_eq!(Amode::new(wrong).unwrap_err().class(), Class::AMODE, "{wrong}");
        }
        let amode = Amode::new(Amode::WRONLY | Amode::CREATE | Amode::EXCL).unwrap();
        assert!(amode.opening(true).is_exclusive && !amode.opening(false).creates);
        assert_eq!(amode.check(Kind::Read).unwrap_err().class(), Class::ACCESS);
        let amode = Amode::new(Amode::RDONLY | Amode::SEQUENTIAL).unwrap();
        assert_eq!(amode.check(Kind::Write).unwrap_err().class(), Class::READ_ONLY);
        assert_eq!(amode.check_random().unwrap_err().class(), Class::UNSUPPORTED_OPERATION);
    }
}
