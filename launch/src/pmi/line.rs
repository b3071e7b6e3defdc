//! Lines of PMI-1, `cmd=NAME key=value key=value`, and the buffer that splits bytes into lines.

use super::LINE_MAX;

/// A parsed line. The words are borrowed and in the order of the line, which has a dozen at most.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The word behind `cmd=`.
    pub command: &'a str,
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    /// Splits a line without its newline.
    ///
    /// # Errors
    /// The error as text: no `cmd=` at the start, or a word without `=`.
    pub fn parse(text: &'a str) -> Result<Line<'a>, String> {
        let mut words = text.split_ascii_whitespace();
        let command = match words.next().and_then(|word| word.split_once('=')) {
            Some(("cmd", command)) if !command.is_empty() => command,
            _ => return Err("it does not begin with cmd=".into()),
        };
        let mut pairs = Vec::new();
        for word in words {
            match word.split_once('=') {
                Some(pair) => pairs.push(pair),
                // Messages for the user (`msg=key not found`) contain blanks, against the grammar.
                None if pairs.iter().any(|(name, _)| name.ends_with("msg")) => {}
                None => return Err(format!("{word:?} is not of the form key=value")),
            }
        }
        Ok(Line { command, words: pairs })
    }

    /// Returns the value of a word, if the line has it.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.words.iter().find(|(found, _)| *found == name).map(|&(_, value)| value)
    }

    /// Returns the value of a required word.
    ///
    /// # Errors
    /// Names the missing word.
    pub fn need(&self, name: &str) -> Result<&'a str, String> {
        self.get(name).ok_or_else(|| format!("{}= is missing", name))
    }

    /// Returns the value of a required number.
    ///
    /// # Errors
    /// Names the word that is missing or no number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        let text = self.need(name)?;
        text.parse().map_err(|_| format!("{name}={text} is not a number"))
    }
}

/// A buffer that splits bytes into lines. Bounded: a line longer than [`LINE_MAX`] is an error.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Number of bytes that were already searched for a newline.
    searched: usize,
}

impl LineBuffer {
    /// Adds bytes that were read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next complete line, without its newline. `None`: more bytes are needed.
    ///
    /// # Errors
    /// A line is too long or not text; the line is dropped.
    pub fn next_line(&mut self) -> Result<Option<String>, String> {
        let Some(at) = self.bytes[self.searched..].iter().position(|&b| b == b'\n') else {
            self.searched = self.bytes.len();
            if self.searched <= LINE_MAX {
                return Ok(None);
            }
            self.bytes.clear();
            self.searched = 0;
            return Err(format!("a line is longer than {LINE_MAX} bytes"));
        };
        let line: Vec<u8> = self.bytes.drain(..=self.searched + at).collect();
        self.searched = 0;
        match String::from_utf8(line) {
            Ok(mut line) => {
                line.truncate(line.trim_end_matches(['\n', '\r', '\0']).len());
                Ok(Some(line))
            }
            Err(_) => Err("a line is not text".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_words() {
        let line = Line::parse("cmd=put kvsname=kvs_1 key=card-0 value=a=b#c ").unwrap();
        assert_eq!(line.command, "put");
        assert_eq!(line.get("value"), Some("a=b#c"));
        assert_eq!(line.get("rc"), None);
        assert!(line.number::<u32>("key").unwrap_err().contains("key=card-0 is not a number"));
    }

    #[test]
    fn a_message_may_have_blanks() {
        let line = Line::parse("cmd=get_result rc=-1 msg=no such key here value=x").unwrap();
        assert_eq!(line.get("rc"), Some("-1"));
        assert_eq!(line.get("value"), Some("x"));
    }

    #[test]
    fn says_what_is_wrong() {
        for bad in ["", "   ", "put key=a", "cmd=", "mcmd=spawn", "cmd=put nonsense"] {
            assert!(Line::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn lines_come_in_pieces() {
        let mut buffer = LineBuffer::default();
        buffer.push(b"cmd=in");
        assert_eq!(buffer.next_line(), Ok(None));
        buffer.push(b"it\ncmd=x\n\xff\ncmd=");
        assert_eq!(buffer.next_line(), Ok(Some("cmd=init".into())));
        assert_eq!(buffer.next_line(), Ok(Some("cmd=x".into())));
        assert!(buffer.next_line().unwrap_err().contains("not text"));
        assert_eq!(buffer.next_line(), Ok(None));
    }

    #[test]
    fn a_line_has_a_limit() {
        let mut buffer = LineBuffer::default();
        buffer.push(&vec![b'a'; LINE_MAX + 1]);
        assert!(buffer.next_line().unwrap_err().contains("longer"));
        buffer.push(b"\ncmd=ok\n");
        assert_eq!(buffer.next_line(), Ok(Some(String::new())));
        assert_eq!(buffer.next_line(), Ok(Some("cmd=ok".into())));
    }
}
