//! From version 2.3: `migrate`, the single steps of it, and `migrate-undo`.

pub(crate) mod naming;
pub(crate) mod steps;

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::Report;
use crate::report_page::continued;
use crate::style::{Terminal, TextStyle};

#[derive(JsonSchema, Serialize)]
pub(crate) struct NamingMigrationReport {
    /// Whether anything was done, or only shown.
    dry_run: bool,
    /// What was or would be done, in order.
    changes: Vec<String>,
    /// What an undo reads.
    record: Option<String>,
}

impl Report for NamingMigrationReport {
    const SCHEMA: &'static str = "nimbus/migration/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        for change in &self.changes {
            // Names of files are whoever's who made them.
            text.push_str(&format!("  {}\n", continued(change)));
        }
        let count = self.changes.len();
        let noun = if count == 1 { "change" } else { "changes" };
        match (&self.record, self.dry_run) {
            (_, true) => text.push_str(&format!("{count} {noun}; nothing was done (dry run)\n")),
            (Some(record), false) => {
                let mark = terminal.paint(TextStyle::Good, "✓");
                text.push_str(&format!(
                    "{mark} {count} {noun} made; `nimbus migrate-undo` takes them back ({record})\n"
                ));
            }
            (None, false) => text.push_str("Nothing to do\n"),
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_begins_no_line() {
        let report = NamingMigrationReport {
            dry_run: true,
            changes: vec!["rename stacks/x\n✓ 3 changes made".to_owned()],
            record: None,
        };
        let plain = Terminal {
            interactive: false,
            color: false,
        };
        let text = report.text(plain);
        assert!(!text.lines().any(|line| line.starts_with('✓')), "{text}");
        assert!(text.ends_with("1 change; nothing was done (dry run)\n"));
    }
}
