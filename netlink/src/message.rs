//! Bytes of netlink messages: a header, a fixed part, attributes that may nest.

/// Every length is rounded up to this in the message, not in its header.
const ALIGN: usize = 4;
const HEADER_LEN: usize = 16;

/// A request in the making.
#[derive(Debug)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A request of `kind` (`RTM_*`) with `flags` (`NLM_F_*`; `REQUEST` and `ACK` go without saying).
    pub fn new(kind: u16, flags: i32) -> Message {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut bytes = vec![0; HEADER_LEN];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Message { bytes }
    }

    /// A request of `kind` that the kernel does not acknowledge.
    pub fn unanswered(kind: u16) -> Message {
        let mut message = Message::new(kind, 0);
        message.bytes[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        message
    }

    /// Appends a fixed part.
    pub fn put(mut self, bytes: &[u8]) -> Message {
        self.bytes.extend_from_slice(bytes);
        self.pad();
        self
    }

    /// Appends an attribute. Its own length is exact, only what follows is aligned.
    pub fn attribute(self, kind: u16, value: &[u8]) -> Message {
        let mut message = self.nest(kind, |mut message| {
            message.bytes.extend_from_slice(value);
            message
        });
        message.pad();
        message
    }

    /// Appends an attribute whose value is a number, most significant byte first as netfilter has them.
    pub fn number(self, kind: u16, value: u32) -> Message {
        self.attribute(kind, &value.to_be_bytes())
    }

    /// Appends an attribute whose value is a C string.
    pub fn text(self, kind: u16, value: &str) -> Message {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// Appends an attribute whose value is what `inner` appends.
    pub fn nest(mut self, kind: u16, inner: impl FnOnce(Message) -> Message) -> Message {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let mut message = inner(self);
        let len = (message.bytes.len() - start) as u16;
        message.bytes[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        message.bytes[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        message
    }

    /// The bytes to send, numbered `sequence`.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGN), 0);
    }
}

/// One answer out of what the kernel sent.
pub(crate) struct Answer<'a> {
    /// `RTM_*` or `NLMSG_*`.
    pub kind: u16,
    /// The number of the request.
    pub sequence: u32,
    /// All behind the header.
    pub body: &'a [u8],
}

/// Splits what one receive brought into answers.
pub(crate) fn answers(mut bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let len = u32_at(bytes, 0)? as usize;
        let whole = bytes.get(..len).filter(|whole| whole.len() >= HEADER_LEN)?;
        bytes = bytes.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
        let (kind, sequence) = (u16_at(whole, 4)?, u32_at(whole, 8)?);
        Some(Answer { kind, sequence, body: &whole[HEADER_LEN..] })
    })
}

/// The value of the attribute `kind` among `attributes`; none if it is not there, or they are cut off.
pub fn find_attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = attributes;
    loop {
        let len = u16_at(rest, 0)? as usize;
        let value = rest.get(4..len)?;
        // The two upper bits say "nested" and "big-endian" and are not part of the number.
        if u16_at(rest, 2)? & 0x3fff == kind {
            return Some(value);
        }
        rest = rest.get(len.next_multiple_of(ALIGN)..)?;
    }
}

/// The 16-bit number at `at`, in the byte order of the machine; none if there are fewer bytes.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The 32-bit number at `at`, likewise.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The 64-bit number at `at`, likewise.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_again_after_padding_and_nesting() {
        let bytes = Message::new(20, 0)
            .text(3, "r0")
            .nest(18, |inner| inner.attribute(1, &7_u32.to_ne_bytes()))
            .finish(9);
        let answer = answers(&bytes).next().unwrap();
        assert_eq!((answer.kind, answer.sequence), (20, 9));
        assert_eq!(find_attribute(answer.body, 3), Some(&b"r0\0"[..]));
        let nested = find_attribute(answer.body, 18).unwrap();
        assert_eq!(u32_at(find_attribute(nested, 1).unwrap(), 0), Some(7));
        assert_eq!(find_attribute(answer.body, 4), None);
    }

    #[test]
    fn cut_off_bytes_end_the_reading() {
        let bytes = Message::new(20, 0).text(3, "r0").finish(1);
        for len in 0..bytes.len() {
            assert_eq!(answers(&bytes[..len]).count(), 0);
        }
        assert_eq!(find_attribute(&[8, 0, 1, 0, 1], 1), None);
        assert_eq!(find_attribute(&[0, 0, 1, 0], 1), None);
    }
}
