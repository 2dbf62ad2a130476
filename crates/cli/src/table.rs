//! Tables of text, as wide as what is in them.
//!
//! What is in a cell may come from anybody: names and values of programs, templates and files. A cell is made from
//! text in one way only, and that shows control characters as text, so that nothing in it can begin a line, move
//! the cursor or turn what follows.

use nimbus_core::printable_line;

use crate::style::{Terminal, TextStyle};

/// Rows whose cells are below each other, two blanks apart.
pub(crate) struct TextTable {
    terminal: Terminal,
    lines: Vec<TableLine>,
}

enum TableLine {
    Heading(Vec<TableCell>),
    Row(Vec<TableCell>),
    /// Goes across all columns.
    Remark(TextStyle, String),
}

/// Text in a table, on one line.
pub(crate) struct TableCell {
    text: String,
    tone: Option<TextStyle>,
    right: bool,
}

impl TableCell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self {
            text: printable_line(text.as_ref()).into_owned(),
            tone: None,
            right: false,
        }
    }

    pub(crate) fn painted(mut self, tone: TextStyle) -> Self {
        self.tone = Some(tone);
        self
    }

    /// Below the end of the others, as numbers are.
    pub(crate) fn right(mut self) -> Self {
        self.right = true;
        self
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }

    /// Nothing follows the last cell of a row, so it needs no blanks after it.
    fn padded(&self, width: usize, is_last: bool) -> String {
        match (self.right, is_last) {
            (true, _) => format!("{:>width$}", self.text),
            (false, true) => self.text.clone(),
            (false, false) => format!("{:<width$}", self.text),
        }
    }
}

impl TextTable {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self {
            terminal,
            lines: Vec::new(),
        }
    }

    pub(crate) fn heading(&mut self, cells: impl IntoIterator<Item = TableCell>) {
        self.lines
            .push(TableLine::Heading(cells.into_iter().collect()));
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = TableCell>) {
        self.lines.push(TableLine::Row(cells.into_iter().collect()));
    }

    pub(crate) fn remark(&mut self, tone: TextStyle, text: &str) {
        let text = printable_line(text).into_owned();
        self.lines.push(TableLine::Remark(tone, text));
    }

    /// All lines, each with its end.
    pub(crate) fn text(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for line in &self.lines {
            let shown = match line {
                TableLine::Heading(cells) => {
                    let plain = joined(cells, &widths, |_, cell| cell);
                    self.terminal.paint(TextStyle::Heading, &plain)
                }
                TableLine::Row(cells) => joined(cells, &widths, |tone, cell| match tone {
                    Some(tone) => self.terminal.paint(tone, &cell),
                    None => cell,
                }),
                TableLine::Remark(tone, remark) => self.terminal.paint(*tone, remark),
            };
            text.push_str(&shown);
            text.push('\n');
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = Vec::new();
        for line in &self.lines {
            let (TableLine::Heading(cells) | TableLine::Row(cells)) = line else {
                continue;
            };
            if widths.len() < cells.len() {
                widths.resize(cells.len(), 0);
            }
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.width());
            }
        }
        widths
    }
}

fn joined(
    cells: &[TableCell],
    widths: &[usize],
    paint: impl Fn(Option<TextStyle>, String) -> String,
) -> String {
    let shown = cells.iter().zip(widths).enumerate();
    let shown = shown.map(|(at, (cell, &width))| {
        let is_last = at + 1 == cells.len();
        paint(cell.tone, cell.padded(width, is_last))
    });
    shown.collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(color: bool) -> TextTable {
        TextTable::new(Terminal {
            interactive: color,
            color,
        })
    }

    #[test]
    fn cells_are_below_each_other() {
        let mut table = table(false);
        table.heading([TableCell::new("NAME"), TableCell::new("COUNT").right()]);
        table.row([TableCell::new("größer"), TableCell::new("7").right()]);
        table.remark(TextStyle::Bad, "broken");
        assert_eq!(table.text(), "NAME    COUNT\ngrößer      7\nbroken\n");
    }

    #[test]
    fn no_cell_begins_a_line_moves_the_cursor_or_turns_what_follows() {
        let hostile = "x\n✓ forged\r\u{1b}[2J\u{1b}[32m\u{202e}\u{2066}\u{200f}";
        let shown = r"x\n✓ forged\r\u{1b}[2J\u{1b}[32m\u{202e}\u{2066}\u{200f}";
        let mut plain = table(false);
        plain.row([TableCell::new(hostile), TableCell::new("next")]);
        plain.remark(TextStyle::Bad, hostile);
        assert_eq!(plain.text(), format!("{shown}  next\n{shown}\n"));

        let mut coloured = table(true);
        coloured.row([TableCell::new(hostile).painted(TextStyle::Good)]);
        let text = coloured.text();
        // What stands around it is the table's own.
        assert_eq!(text.matches('\u{1b}').count(), 2, "{text:?}");
        assert_eq!(text.lines().count(), 1, "{text:?}");
        assert!(text.contains(shown), "{text:?}");
    }
}
