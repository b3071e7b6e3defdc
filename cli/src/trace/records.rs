//! One rank's trace: an object of JSON on each line, as `nmad_drivers::around::trace` writes it.

use serde::Deserialize;
use std::path::Path;

/// One thing that passed between the engine and a rail.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Record {
    /// When, on a clock that all rails and ranks of one machine share.
    pub(crate) at_ns: u64,
    /// Name of the rail.
    pub(crate) rail: String,
    /// The recorded event.
    pub(crate) what: What,
    /// The other rank.
    pub(crate) peer: u32,
    /// Number of the packet or chunk on its link.
    pub(crate) number: u32,
    /// Bytes.
    pub(crate) len: u64,
    /// What a packet carries, or why a link was lost.
    #[serde(default)]
    pub(crate) text: String,
}

/// See `nmad_drivers::around::trace::What`; what a later version may add is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) enum What {
    PostPacket,
    PostChunk,
    Sent,
    Arrived,
    Landed,
    #[serde(untagged)]
    Other(String),
}

impl What {
    pub(crate) fn name(&self) -> &str {
        match self {
            What::PostPacket => "PostPacket",
            What::PostChunk => "PostChunk",
            What::Sent => "Sent",
            What::Arrived => "Arrived",
            What::Landed => "Landed",
            What::Other(name) => name,
        }
    }
}

/// All that one rank wrote, in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Records {
    /// Name of the file, without its folder.
    pub(crate) name: String,
    pub(crate) list: Vec<Record>,
}

impl Records {
    pub(crate) fn read(path: &Path) -> Result<Records, String> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            format!(
                "cannot read {}: {error} (NMAD_TRACE=FILE makes each rank write FILE.RANK)",
                path.display()
            )
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Records::parse(name, &text).map_err(|why| format!("{}: {why}", path.display()))
    }

    pub(crate) fn parse(name: String, text: &str) -> Result<Records, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let record = |(number, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| format!("line {} is no trace: {error}", number + 1))
        };
        let mut list: Vec<Record> = lines.map(record).collect::<Result<_, _>>()?;
        // Rails are written one after the other.
        list.sort_by_key(|record| record.at_ns);
        Ok(Records { name, list })
    }

    /// Names of the rails, sorted.
    pub(crate) fn rails(&self) -> Vec<String> {
        let mut rails: Vec<String> = self.list.iter().map(|record| record.rail.clone()).collect();
        rails.sort();
        rails.dedup();
        rails
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_put_in_order() {
        let text = r#"{"at_ns":20,"rail":"tcp/r0","what":"Sent","peer":1,"number":3,"len":8,"text":""}
            {"at_ns":10,"rail":"tcp/r1","what":"Connect","peer":1,"number":0,"len":0}"#;
        let records = Records::parse("t.0".into(), text).unwrap();
        assert_eq!(records.list[0].what, What::Other("Connect".into()));
        assert_eq!(records.list[1].what, What::Sent);
        assert_eq!(records.rails(), ["tcp/r0", "tcp/r1"]);
    }

    #[test]
    fn what_is_no_trace_says_which_line() {
        let error = Records::parse("t".into(), "\n{\"at_ns\":1}").unwrap_err();
        assert!(error.starts_with("line 2 is no trace"), "{error}");
    }
}
