//! What a message contains: a function of which message it is, so that any byte in the wrong place shows.

/// Writes the `len` bytes of message `id` into `out`, replacing what was there.
pub fn payload(id: u64, len: usize, out: &mut Vec<u8>) {
    out.clear();
    out.reserve(len + 8);
    let base = (id + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    for i in 0..len.div_ceil(8) as u64 {
        let x = base.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        out.extend_from_slice(&(x ^ (x >> 31)).to_le_bytes());
    }
    out.truncate(len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_differ_and_a_shorter_one_is_a_prefix() {
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        payload(1, 100, &mut a);
        payload(2, 100, &mut b);
        payload(1, 33, &mut c);
        assert_ne!(a, b);
        assert_eq!(a[..33], c[..]);
    }
}
