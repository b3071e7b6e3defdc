//! The table of wrong input in docs/settings.md: a command in the first cell; in the last one what it prints,
//! and its exit code.

/// A row of such a table.
pub(super) struct Typed {
    pub(super) line: usize,
    pub(super) command: String,
    /// Texts that it prints; `...` in them stands for any text.
    pub(super) texts: Vec<String>,
    pub(super) code: i32,
}

/// The rows below the header that names what is typed, of which the first cell is a command.
pub(super) fn rows(page: &str) -> Vec<Typed> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| !line.starts_with("| typed |"));
    lines.skip(2).take_while(|(_, line)| line.starts_with('|')).filter_map(row).collect()
}

fn row((number, line): (usize, &str)) -> Option<Typed> {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let [typed, now] = cells[..] else { return None };
    let command = typed.strip_prefix('`')?.strip_suffix('`')?;
    if command.contains('`') || !["nmad", "mpiexec"].iter().any(|name| command.contains(name)) {
        return None;
    }
    let texts = now.split('`').skip(1).step_by(2).map(str::to_string).collect();
    let code = now.rsplit(", ").next()?.trim().parse().ok()?;
    Some(Typed { line: number + 1, command: command.into(), texts, code })
}

#[test]
fn rows_with_a_command_are_taken() {
    let rows = ["| `X=1 nmad info` | `X: ...`, 2 |", "| a file | 1 |"].join("\n");
    let rows = super::typed::rows(&format!("| typed | result |\n|---|---|\n{rows}\n"));
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].line, &*rows[0].command, rows[0].code), (3, "X=1 nmad info", 2));
    assert_eq!(rows[0].texts, ["X: ..."]);
}
