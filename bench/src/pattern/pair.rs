//! The two ranks of a benchmark.
use newmadeleine::Session;

use super::BenchError;

/// What the ranks agree on travels with this tag.
const TALK: u64 = 0x7461_6c6b;
/// Longest text that the ranks tell each other.
const TALK_LEN: usize = 16 << 10;

/// Two ranks of a session: the lower one is active.
#[derive(Clone, Copy)]
pub struct Pair<'s> {
    /// The session between them.
    pub session: &'s Session,
    /// The rank of the other one.
    pub other: u32,
}

impl<'s> Pair<'s> {
    /// The pair that a session is.
    ///
    /// # Errors
    /// [`BenchError::Job`] if the job has not two ranks.
    pub fn of(session: &'s Session) -> Result<Pair<'s>, BenchError> {
        match session.size() {
            2 => Ok(Pair { session, other: 1 - session.rank() }),
            size => Err(BenchError::Job(format!(
                "this wants 2 ranks, and the job has {size}: start it by `nmad run -n 2`, or without a job"
            ))),
        }
    }

    /// Whether this rank measures.
    pub fn is_active(&self) -> bool {
        self.session.rank() < self.other
    }

    /// Tells the other rank a text; it has to [`Pair::hear`].
    ///
    /// # Errors
    /// The other rank is gone.
    pub fn tell(&self, text: &str) -> Result<(), BenchError> {
        Ok(self.session.send(self.other, TALK, text.as_bytes())?)
    }

    /// Tells a text of any length; the other rank has to [`Pair::hear_long`].
    ///
    /// # Errors
    /// The other rank is gone.
    pub fn tell_long(&self, text: &str) -> Result<(), BenchError> {
        self.tell(&text.len().to_string())?;
        Ok(self.session.send(self.other, TALK, text.as_bytes())?)
    }

    /// A text of any length.
    ///
    /// # Errors
    /// The other rank is gone.
    pub fn hear_long(&self) -> Result<String, BenchError> {
        let len = self.hear()?.parse().unwrap_or(0);
        let mut buffer = vec![0; len];
        self.session.recv(self.other, TALK, &mut buffer)?;
        Ok(String::from_utf8_lossy(&buffer).into_owned())
    }

    /// What the other rank tells.
    ///
    /// # Errors
    /// The other rank is gone.
    pub fn hear(&self) -> Result<String, BenchError> {
        let mut buffer = vec![0; TALK_LEN];
        let message = self.session.recv(self.other, TALK, &mut buffer)?;
        Ok(String::from_utf8_lossy(&buffer[..message.len]).into_owned())
    }
}
