//! Everything that happens, as a hash (two runs are the same run if their hashes are) and, when somebody
//! wants to read it, as lines.

use std::fmt;

/// The record of one run.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    events: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// An empty record; `explain`: keep a line of text for each event.
    pub fn new(explain: bool) -> Self {
        Trace { hash: 0xcbf2_9ce4_8422_2325, events: 0, lines: explain.then(Vec::new) }
    }

    /// Notes an event at time `at_ns` on `host`: `facts` go into the hash, `text` is made only for
    /// readers.
    pub fn note(&mut self, at_ns: u64, host: usize, facts: &[u64], text: impl FnOnce() -> String) {
        self.events += 1;
        for &fact in [at_ns, host as u64].iter().chain(facts) {
            self.mix(fact);
        }
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{} h{host}  {}", Time(at_ns), text()));
        }
    }

    /// Takes bytes into the hash without a line of their own.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        for &byte in rest {
            self.mix(u64::from(byte));
        }
        self.mix(bytes.len() as u64);
    }

    fn mix(&mut self, fact: u64) {
        self.hash = (self.hash ^ fact).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Events noted.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The lines since the last call, if lines are kept.
    pub fn take_lines(&mut self) -> Vec<String> {
        self.lines.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// A point in virtual time that prints in microseconds, right-aligned.
#[derive(Debug, Clone, Copy)]
pub struct Time(pub u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9}.{:03} us", self.0 / 1000, self.0 % 1000)
    }
}
