//! The blocks of a page: commands, and fenced text.
//!
//! Comments in front of a block, each in a line of its own:
//!
//! - `<!-- not run: WHY -->`: no command of the block can run in a test;
//! - `<!-- not run "TEXT": WHY -->`: those that contain TEXT cannot;
//! - `<!-- needs "TOOL" -->`: runs where there is this tool;
//! - `<!-- within "PREFIX" -->`: each command runs in a shell that PREFIX starts;
//! - `<!-- ends with "TEXT": CODE -->`: the exit code, other than 0, of a command that contains TEXT;
//! - `<!-- printed by "TEXT" -->`: the fenced block is the output of the last command before it that
//!   contains TEXT; `<!-- printed by "TEXT": other figures -->`: but for its numbers;
//! - `<!-- file "NAME" -->`: the fenced block is a file that commands of the page read or run.

/// An indented or fenced block, with the comments in front of it.
pub(super) struct Block {
    /// The number of its first line.
    pub(super) line: usize,
    pub(super) kind: Kind,
    pub(super) text: String,
    marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Commands,
    Fenced,
}

/// `<!-- NAME "TEXT": REST -->`
struct Mark {
    name: String,
    text: String,
    rest: String,
}

/// The result that a fenced block promises.
pub(super) struct Promise<'a> {
    /// A part of the command.
    pub(super) command: &'a str,
    pub(super) with_other_figures: bool,
}

const MARKS: [&str; 6] = ["not run", "needs", "within", "ends with", "printed by", "file"];

fn mark(line: &str) -> Option<Mark> {
    let inner = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let name = MARKS.into_iter().find(|name| inner.starts_with(name))?;
    let after = inner[name.len()..].trim();
    let (text, rest) = match after.strip_prefix('"').and_then(|after| after.split_once('"')) {
        Some((text, rest)) => (text, rest),
        None => ("", after),
    };
    let rest = rest.trim_start_matches(':').trim();
    Some(Mark { name: name.into(), text: text.into(), rest: rest.into() })
}

/// All blocks of a page, from top to bottom.
pub(super) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut marks = Vec::new();
    let mut lines = page.lines().enumerate().peekable();
    let mut is_after_text = false;
    while let Some((number, line)) = lines.next() {
        let start = |kind, text, marks| Block { line: number + 1, kind, text, marks };
        if let Some(mark) = mark(line) {
            marks.push(mark);
            is_after_text = false;
        } else if line.trim().is_empty() {
            is_after_text = false;
        } else if line.trim_start().starts_with("```") {
            let inside =
                lines.by_ref().map(|(_, line)| line).take_while(|line| !line.trim_start().starts_with("```"));
            let text: Vec<&str> = inside.collect();
            blocks.push(start(Kind::Fenced, text.join("\n"), std::mem::take(&mut marks)));
        } else if line.starts_with("    ") && !is_after_text {
            let mut text = vec![&line[4..]];
            while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with("    ")) {
                text.push(&line[4..]);
            }
            blocks.push(start(Kind::Commands, text.join("\n"), std::mem::take(&mut marks)));
        } else {
            is_after_text = true;
            marks.clear();
        }
    }
    blocks
}

impl Block {
    fn marked<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Mark> {
        self.marks.iter().filter(move |mark| mark.name == name)
    }

    /// Whether each mark that names commands names one of this block, and gives a reason.
    pub(super) fn check_marks(&self) -> Result<(), String> {
        for mark in self.marked("not run").chain(self.marked("ends with")) {
            if !self.commands().iter().any(|(_, command)| command.contains(&mark.text)) {
                return Err(format!("no command of the block contains {:?}", mark.text));
            }
            if mark.rest.is_empty() {
                return Err(format!("the comment `{} {:?}` gives no reason", mark.name, mark.text));
            }
        }
        Ok(())
    }

    /// The commands of an indented block with the numbers of their lines; without the comments behind them.
    pub(super) fn commands(&self) -> Vec<(usize, String)> {
        let mut commands: Vec<(usize, String)> = Vec::new();
        let mut goes_on = false;
        for (number, line) in self.text.lines().enumerate() {
            let words = line.split(" #").next().unwrap_or_default().trim();
            if words.is_empty() || words.starts_with('#') {
                continue;
            }
            let part = words.strip_suffix('\\').unwrap_or(words).trim();
            match commands.last_mut().filter(|_| goes_on) {
                Some((_, command)) => *command += &format!(" {part}"),
                None => commands.push((self.line + number, part.into())),
            }
            goes_on = words.ends_with('\\');
        }
        commands
    }

    /// Why a command is not run.
    pub(super) fn not_run(&self, command: &str) -> Option<String> {
        self.marked("not run").find(|mark| command.contains(&mark.text)).map(|mark| mark.rest.clone())
    }

    pub(super) fn needs(&self) -> Vec<&str> {
        self.marked("needs").map(|mark| mark.text.as_str()).collect()
    }

    /// What starts the shell that its commands run in.
    pub(super) fn around(&self) -> &str {
        self.marked("within").next().map_or("", |mark| &mark.text)
    }

    pub(super) fn exit_code(&self, command: &str) -> i32 {
        let mark = self.marked("ends with").find(|mark| command.contains(&mark.text));
        mark.map_or(0, |mark| mark.rest.parse().expect("an exit code"))
    }

    /// The name and the text of the file that it is.
    pub(super) fn file(&self) -> Option<(&str, &str)> {
        let mark = self.marked("file").next()?;
        Some((&mark.text, &self.text))
    }

    pub(super) fn printed_by(&self) -> Option<Promise<'_>> {
        let mark = self.marked("printed by").next()?;
        Some(Promise { command: &mark.text, with_other_figures: mark.rest == "other figures" })
    }
}

#[test]
fn a_page_is_taken_apart() {
    let page = [
        "Text",
        "    that goes on.",
        "",
        "<!-- not run \"slow\": takes a minute -->",
        "",
        "    quick | \\",
        "        wc   # counts",
        "    slow",
        "",
        "<!-- printed by \"quick\": other figures -->",
        "```text",
        "1 2 3",
        "```",
    ];
    let blocks = blocks(&page.join("\n"));
    assert_eq!(blocks.iter().map(|block| block.kind).collect::<Vec<_>>(), [Kind::Commands, Kind::Fenced]);
    let commands = blocks[0].commands();
    assert_eq!(commands, [(6, "quick | wc".to_string()), (8, "slow".to_string())]);
    assert_eq!(blocks[0].not_run("slow").as_deref(), Some("takes a minute"));
    assert_eq!(blocks[0].not_run("quick"), None);
    let promise = blocks[1].printed_by().expect("it is marked");
    assert_eq!((promise.command, promise.with_other_figures), ("quick", true));
    assert!(blocks[0].check_marks().is_ok());
}
