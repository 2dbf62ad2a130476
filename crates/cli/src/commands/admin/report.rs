//! What the server answered, for people and for programs.

use nimbus_core::printable_line;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::output::Report;
use crate::style::Terminal;

/// One report for every command that asks a server.
#[derive(JsonSchema, Serialize)]
pub(crate) struct AdminReport {
    /// As the server's API describes it.
    data: Value,
    #[serde(skip)]
    text: String,
}

impl AdminReport {
    /// A list, with these columns.
    pub(super) fn list(data: Value, columns: &[&str]) -> Self {
        let rows = data["items"].as_array().cloned().unwrap_or_default();
        let text = table(&rows, columns);
        Self { data, text }
    }

    /// One thing, with these fields.
    pub(super) fn item(data: Value, fields: &[&str]) -> Self {
        let widest = fields
            .iter()
            .map(|field| field.len())
            .max()
            .unwrap_or_default();
        let text = fields
            .iter()
            .map(|field| format!("{field:<widest$}  {}\n", shown(&data[*field])))
            .collect();
        Self { data, text }
    }

    /// Something that was done.
    pub(crate) fn done(data: Value, text: impl Into<String>) -> Self {
        let text = text.into() + "\n";
        Self { data, text }
    }
}

impl Report for AdminReport {
    const SCHEMA: &'static str = "nimbus/admin/1";

    fn text(&self, _: Terminal) -> String {
        self.text.clone()
    }
}

fn table(rows: &[Value], columns: &[&str]) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| columns.iter().map(|column| shown(&row[*column])).collect())
        .collect();
    let width = |position: usize| {
        let widest = cells.iter().map(|row| row[position].chars().count()).max();
        widest.unwrap_or_default().max(columns[position].len())
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let headings: Vec<String> = columns.iter().map(|column| column.to_uppercase()).collect();
    let mut text = line(headings.iter().map(String::as_str).collect());
    for row in &cells {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    text
}

/// A value in a cell. What came from others cannot move the cursor.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    printable_line(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_tables_and_control_characters_are_inert() {
        let data = json!({"items": [
            {"name": "a", "members": 12, "note": null},
            {"name": "longer\u{1b}[2J", "members": 1, "note": ["x", "y"]},
        ]});
        let report = AdminReport::list(data, &["name", "members", "note"]);
        assert_eq!(
            report.text,
            "NAME             MEMBERS  NOTE\na                12       -\nlonger\\u{1b}[2J  1        x, y\n"
        );
    }
}
