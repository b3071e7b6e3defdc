//! Data of chunks that is read straight into its receive region and decrypted there.
//!
//! One `readv` reads many records: their data to its places in the region, and the tags and lengths between
//! into buffers, the *seams*. So the region may have data that is not authenticated yet; only authenticated
//! data is reported.

use super::{HEAD, LONGEST, around, each};
use crate::tcp::stream::Broken;
use arrayvec::ArrayVec;
use nmad_seal::{TAG, Unsealer};
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, readv};
use std::io::IoSliceMut;

/// Records that one call reads, at most. Their 256 KiB are still in the L2 cache when they are decrypted.
const RECORDS: usize = 16;
/// Bytes between the data of two records: a tag and a head.
const SEAM: usize = TAG + HEAD;

/// The records of a chunk from the first one on that is not decrypted yet. The caller passes the memory for
/// their data, which is contiguous, to each function.
#[derive(Debug)]
pub struct Direct {
    /// The seams before the data of each record, and behind that of the last one.
    seams: [[u8; SEAM]; RECORDS + 1],
    /// Number of bytes that have arrived.
    have: usize,
}

impl Default for Direct {
    fn default() -> Self {
        Direct { seams: [[0; SEAM]; RECORDS + 1], have: 0 }
    }
}

impl Direct {
    /// Returns whether bytes have arrived that are not decrypted.
    pub fn has_part(&self) -> bool {
        self.have > 0
    }

    /// Stores the beginning of the first record, which was read elsewhere.
    ///
    /// # Errors
    /// The record is longer than its data.
    pub fn begin(&mut self, part: &[u8], data: &mut [u8]) -> Result<(), Broken> {
        let len = data.len().min(LONGEST);
        if part.len() >= around(len) {
            return Err(Broken::Forged);
        }
        let (head, rest) = part.split_at(HEAD.min(part.len()));
        let (body, tag) = rest.split_at(len.min(rest.len()));
        self.seams[0][TAG..TAG + head.len()].copy_from_slice(head);
        data[..body.len()].copy_from_slice(body);
        self.seams[1][..tag.len()].copy_from_slice(tag);
        self.have = part.len();
        Ok(())
    }

    /// Moves the incomplete first record to `partial`, because the region is about to be closed.
    pub fn leave(&mut self, data: &[u8], partial: &mut Vec<u8>) {
        let (have, len) = (std::mem::take(&mut self.have), data.len().min(LONGEST));
        let behind_head = have.saturating_sub(HEAD);
        partial.extend_from_slice(&self.seams[0][TAG..][..have.min(HEAD)]);
        partial.extend_from_slice(&data[..behind_head.min(len)]);
        partial.extend_from_slice(&self.seams[1][..behind_head.saturating_sub(len)]);
    }

    /// Reads once: records, and the bytes behind the chunk into `behind`. Returns the bytes read (zero: the
    /// peer has closed) and the bytes requested.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read(
        &mut self,
        fd: BorrowedFd<'_>,
        data: &mut [u8],
        behind: &mut [u8],
    ) -> Result<(usize, usize), Errno> {
        let mut parts: ArrayVec<IoSliceMut<'_>, { 2 * RECORDS + 2 }> = ArrayVec::new();
        let mut left = data.len();
        let [first, seams @ ..] = &mut self.seams;
        parts.push(IoSliceMut::new(&mut first[TAG..]));
        for (data, seam) in data.chunks_mut(LONGEST).zip(seams) {
            left -= data.len();
            parts.push(IoSliceMut::new(data));
            parts.push(IoSliceMut::new(if left == 0 { &mut seam[..TAG] } else { seam }));
        }
        if left == 0 {
            parts.push(IoSliceMut::new(behind));
        }
        let mut parts = &mut parts[..];
        IoSliceMut::advance_slices(&mut parts, self.have);
        let asked = parts.iter().map(|part| part.len()).sum();
        let got = readv(fd, parts)?;
        self.have += got;
        Ok((got, asked))
    }

    /// Decrypts the records that have arrived entirely. Returns the length of their data.
    ///
    /// # Errors
    /// A record has a wrong tag, or not the length that the chunk requires.
    pub fn open(&mut self, data: &mut [u8], unsealer: &mut Unsealer) -> Result<usize, Broken> {
        let (mut count, mut opened) = (0, 0);
        for data in data.chunks(LONGEST) {
            if self.have >= HEAD && u32::from_le_bytes(*head(&self.seams[count])) as usize != data.len() {
                return Err(Broken::Forged);
            }
            let Some(have) = self.have.checked_sub(around(data.len())) else { break };
            (self.have, opened, count) = (have, opened + data.len(), count + 1);
        }
        if !decrypt(unsealer, &mut data[..opened], &self.seams[..count + 1]) {
            return Err(Broken::Forged);
        }
        // The next record becomes the first one.
        self.seams.copy_within(count..(count + 2).min(RECORDS + 1), 0);
        Ok(opened)
    }

    /// Returns the number of bytes that were read behind the chunk, once all of it is decrypted.
    pub fn take_behind(&mut self) -> usize {
        std::mem::take(&mut self.have)
    }
}

/// Returns the head of the record behind a seam.
fn head(seam: &[u8; SEAM]) -> &[u8; HEAD] {
    seam.last_chunk().expect("it ends with a head")
}

/// Decrypts records, each of which has its data between two seams; returns whether all tags are right.
fn decrypt(unsealer: &mut Unsealer, data: &mut [u8], seams: &[[u8; SEAM]]) -> bool {
    let seams =
        seams.windows(2).map(|pair| (head(&pair[0]), pair[1].first_chunk().expect("it begins with a tag")));
    let mut records = data.chunks_mut(LONGEST).zip(seams);
    while records.len() > 0 {
        // One record does not need the list; nor does the first one under a new key, which must come first.
        let mut done = Some(0);
        if records.len() > 1 {
            let numbered = unsealer.numbers(records.len()).zip(&mut records);
            done = each(numbered, |(number, (data, (head, tag)))| number.open(head, data, tag));
        }
        let is_right = match done {
            Some(0) => {
                records.next().is_none_or(|(data, (head, tag))| unsealer.open_next_apart(head, data, tag))
            }
            done => done.is_some(),
        };
        if !is_right {
            return false;
        }
    }
    true
}
