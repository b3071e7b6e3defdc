//! Hosts, rails and addresses, for people and for programs.

use crate::{Inside, RailState, Testbed, TestbedError, address, address6};
use nmad_words::say;

/// The output about each host: number, name, command prefix, rails.
pub(super) struct Layout {
    hosts: Vec<HostLayout>,
}

struct HostLayout {
    index: u32,
    name: String,
    prefix: Vec<String>,
    rails: Vec<RailState>,
}

impl Layout {
    /// Of a testbed just built.
    pub(super) fn of(testbed: &Testbed) -> Result<Layout, TestbedError> {
        let hosts = testbed.hosts().iter().map(|host| {
            let (index, name, prefix) = (host.index(), host.name().to_owned(), host.prefix());
            Ok(HostLayout { index, name, prefix, rails: host.rails()? })
        });
        Ok(Layout { hosts: hosts.collect::<Result<_, TestbedError>>()? })
    }

    /// Of the testbed this program runs in.
    pub(super) fn of_inside(inside: &Inside) -> Result<Layout, TestbedError> {
        let hosts = inside.hosts.iter().map(|host| {
            let (index, name, prefix) = (host.index, host.name.clone(), host.prefix.clone());
            Ok(HostLayout { index, name, prefix, rails: host.rails()? })
        });
        Ok(Layout { hosts: hosts.collect::<Result<_, TestbedError>>()? })
    }

    pub(super) fn print(&self, json: bool) {
        say(if json { self.json() } else { self.table() });
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{:<8} {:<5} {:<5} {:<9} {:<5} {:<15} IPv6\n",
            "host", "rail", "state", "rate", "MTU", "IPv4"
        );
        for host in &self.hosts {
            for (number, rail) in (0..).zip(&host.rails) {
                let (v4, v6) = (address(host.index, number), address6(host.index, number));
                let (state, rate) = (state(rail), rail.rate.to_string());
                let line = format!(
                    "{:<8} {:<5} {state:<5} {rate:<9} {:<5} {:<15} {v6}\n",
                    host.name,
                    rail.name,
                    rail.mtu,
                    v4.to_string()
                );
                text.push_str(&line);
            }
        }
        text
    }

    /// Written by hand: every string in it is ours but the program's path.
    fn json(&self) -> String {
        let hosts = self.hosts.iter().map(|host| {
            let rails = (0..).zip(&host.rails).map(|(number, rail)| {
                format!(
                    r#"{{"name":"{}","state":"{}","rate":"{}","mtu":{},"ipv4":"{}","ipv6":"{}"}}"#,
                    rail.name,
                    state(rail),
                    rail.rate,
                    rail.mtu,
                    address(host.index, number),
                    address6(host.index, number)
                )
            });
            let prefix = host.prefix.iter().map(|word| quoted(word));
            let (prefix, rails) = (join(prefix), join(rails));
            format!(r#"{{"name":"{}","prefix":[{prefix}],"rails":[{rails}]}}"#, host.name)
        });
        let version = nmad_words::JSON_SCHEMA;
        format!("{{\"schema\":{version},\"kind\":\"testbed\",\"hosts\":[{}]}}\n", join(hosts))
    }
}

fn state(rail: &RailState) -> &'static str {
    if rail.up { "up" } else { "down" }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

fn quoted(word: &str) -> String {
    let escape = |letter: char| match letter {
        '"' | '\\' => format!("\\{letter}"),
        letter if letter.is_control() => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    format!("\"{}\"", word.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rate;

    fn layout() -> Layout {
        let (name, rate) = ("r0".to_owned(), Rate::Limited(4_000_000_000));
        let rail = RailState { name, up: true, rate, mtu: 1500 };
        let prefix = vec!["/odd\"path".to_owned(), "7".to_owned()];
        Layout { hosts: vec![HostLayout { index: 1, name: "host1".to_owned(), prefix, rails: vec![rail] }] }
    }

    #[test]
    fn the_table_has_a_line_for_each_rail_of_a_host() {
        let table = layout().table();
        let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["host1", "r0", "up", "4gbit", "1500", "10.88.0.2", "fd88::2"]);
    }

    #[test]
    fn json_escapes_the_path_of_the_program() {
        let json = layout().json();
        let expected = r#"{"name":"host1","prefix":["/odd\"path","7"],"rails":[{"name":"r0","#;
        assert!(json.starts_with(r#"{"schema":1,"kind":"testbed","hosts":["#), "{json}");
        assert!(json.contains(expected), "{json}");
    }
}
