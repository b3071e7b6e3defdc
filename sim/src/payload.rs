//! What a message contains: a function of which message it is, so that any byte in the wrong place shows.

/// Writes the `len` bytes of message `id` into `out`, replacing what was there.
pub fn payload(id: u64, len: usize, out: &mut Vec<u8>) {
    let whole = len.next_multiple_of(8);
    // Without optimisation `resize` writes byte by byte, so it only adds the last few.
    if out.len() + 8 < whole {
        *out = vec![0; whole];
    }
    out.resize(whole, 0);
    let mut x = (id + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let (words, _) = out.as_chunks_mut();
    for word in words {
        *word = (x ^ (x >> 31)).to_le_bytes();
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    out.truncate(len);
}
