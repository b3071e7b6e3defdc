//! Tables: on a terminal aligned by display width, plain characters, no colour; and in a page of HTML.
//!
//! Without colour the same text is right on a terminal, in a file and in a page of documentation.
use std::fmt::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, presets};
use nmad_words::escaped;

/// A table that is filled row by row and then displayed.
///
/// The first column is aligned to the left (it names the row), all others to the right (they are figures)
/// unless [`Table::words`] says that they are not.
#[derive(Clone, Debug)]
pub struct Table {
    title: String,
    columns: usize,
    words: Vec<usize>,
    inner: comfy_table::Table,
}

impl Table {
    /// An empty table. The title stands above it on a line of its own, unless it is empty.
    pub fn new(title: impl Into<String>, header: &[&str]) -> Table {
        let mut inner = comfy_table::Table::new();
        inner.load_style(presets::NOTHING);
        inner.set_content_arrangement(ContentArrangement::Disabled);
        inner.set_header(header);
        Table { title: title.into(), columns: header.len(), words: vec![0], inner }
    }

    /// Aligns these columns to the left: they hold words, not figures.
    pub fn words(mut self, columns: impl IntoIterator<Item = usize>) -> Table {
        self.words.extend(columns);
        self
    }

    /// Adds a row. Missing cells are left empty, cells beyond the header are left out.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) -> &mut Table {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).take(self.columns).collect();
        cells.resize(self.columns, String::new());
        self.inner.add_row(cells);
        self
    }

    /// The same as a heading and a table of HTML; cells of words have the class `w`.
    pub fn html(&self) -> String {
        let mut out = String::new();
        if !self.title.is_empty() {
            let _ = writeln!(out, "<h2>{}</h2>", escaped(&self.title));
        }
        let rows = self.inner.row_iter().map(|row| ("td", row));
        out += "<table>\n";
        for (element, row) in self.inner.header().map(|row| ("th", row)).into_iter().chain(rows) {
            out += "<tr>";
            for (index, cell) in row.cell_iter().enumerate() {
                let class = if self.words.contains(&index) { " class=\"w\"" } else { "" };
                let _ = write!(out, "<{element}{class}>{}</{element}>", escaped(&cell.content()));
            }
            out += "</tr>\n";
        }
        out + "</table>\n"
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut inner = self.inner.clone();
        for (index, column) in inner.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            column.set_cell_alignment(if self.words.contains(&index) {
                CellAlignment::Left
            } else {
                CellAlignment::Right
            });
        }
        if !self.title.is_empty() {
            writeln!(f, "{}", self.title)?;
        }
        for line in inner.lines() {
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_aligned_to_the_right() {
        let mut table = Table::new("rails", &["rail", "MB/s"]);
        table.row(["r0", "500"]).row(["r1 slow", "35"]);
        assert_eq!(table.to_string(), "rails\nrail     MB/s\nr0        500\nr1 slow    35\n");
    }

    #[test]
    fn words_are_aligned_to_the_left() {
        let mut table = Table::new("", &["a", "name", "n"]).words([1]);
        table.row(["x", "y", "1"]).row(["x", "longer", "22"]);
        assert_eq!(table.to_string(), "a  name     n\nx  y        1\nx  longer  22\n");
    }

    #[test]
    fn width_is_that_of_the_screen_not_of_the_bytes() {
        let mut table = Table::new("", &["x", "y"]);
        table.row(["\u{b5}s", "1"]).row(["\u{6f22}", "2"]);
        assert_eq!(table.to_string(), "x   y\n\u{b5}s  1\n\u{6f22}  2\n");
    }

    #[test]
    fn in_a_page_it_has_the_same_cells() {
        let mut table = Table::new("a < b", &["rail", "MB/s"]);
        table.row(["r0 & r1", "500"]);
        let rows = "<tr><th class=\"w\">rail</th><th>MB/s</th></tr>\n\
                    <tr><td class=\"w\">r0 &amp; r1</td><td>500</td></tr>\n";
        assert_eq!(table.html(), format!("<h2>a &lt; b</h2>\n<table>\n{rows}</table>\n"));
    }

    #[test]
    fn rows_are_cut_or_filled_to_the_header() {
        let mut table = Table::new("", &["a", "b"]);
        table.row(["1"]).row(["1", "2", "3"]);
        assert_eq!(table.to_string(), "a  b\n1\n1  2\n");
    }
}
