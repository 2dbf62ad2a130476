//! A file of items that somebody imports: JSON lines or CSV. It is read whole before anything is written, and everything
//! that is wrong with it is named by line, so that one correction is enough.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::attributes::{kept_attributes, line as tidy_line};
use crate::item::ItemContent;

/// So many items at once.
pub const MOST_IMPORT_LINES: usize = 10_000;
/// So many problems are told; how many more there are is told too.
const MOST_PROBLEMS: usize = 100;
const LONGEST_NAME: usize = 200;
const LONGEST_ID: usize = 1000;
const MOST_RELATIONS: usize = 100;
/// The start of a column that is an attribute.
const ATTRIBUTE: &str = "attributes.";
const COLUMNS: &[&str] = &[
    "key",
    "class",
    "name",
    "cloud_resource_id",
    "compartment",
    "status",
];

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// One JSON object on each line.
    JsonLines,
    /// A header, then one item on each row.
    Csv,
}

impl ImportFormat {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "jsonl" => Some(Self::JsonLines),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// One item of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportLine {
    /// Where it is in the file, from 1.
    pub line: u64,
    /// Names the item; the same key once more is the same item.
    pub key: String,
    pub content: ItemContent,
    /// Names from the root down, with `/` in between.
    pub compartment: Option<String>,
    /// Whether the thing is there.
    pub active: bool,
    pub relations: Vec<RelationLine>,
}

/// What an item has to do with another one of imports.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelationLine {
    pub relationship: String,
    /// The key of the other item.
    pub target: String,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportProblem {
    pub line: u64,
    pub message: String,
}

impl ImportProblem {
    pub fn new(line: u64, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLine {
    key: String,
    class: String,
    name: Option<String>,
    cloud_resource_id: Option<String>,
    compartment: Option<String>,
    status: Option<String>,
    #[serde(default)]
    attributes: Map<String, Value>,
    #[serde(default)]
    relationships: Vec<RelationLine>,
}

/// The items of a file, or the first problems with it and how many there are.
pub fn read_import(
    format: ImportFormat,
    text: &str,
) -> Result<Vec<ImportLine>, (Vec<ImportProblem>, usize)> {
    let written = match format {
        ImportFormat::JsonLines => json_lines(text),
        ImportFormat::Csv => csv_rows(text),
    };
    let (mut lines, mut problems) = (Vec::new(), Vec::new());
    for (line, written) in written {
        match written.and_then(|written| checked(line, written)) {
            Ok(found) => lines.push(found),
            Err(message) => problems.push(ImportProblem::new(line, message)),
        }
    }
    let mut keys: BTreeMap<&str, u64> = BTreeMap::new();
    for one in &lines {
        if let Some(first) = keys.insert(&one.key, one.line) {
            let message = format!("the key `{}` is that of line {first} already", one.key);
            problems.push(ImportProblem::new(one.line, message));
        }
    }
    if lines.is_empty() && problems.is_empty() {
        problems.push(ImportProblem::new(1, "the file has no items"));
    }
    if lines.len() > MOST_IMPORT_LINES {
        let message = format!("a file has at most {MOST_IMPORT_LINES} items");
        problems.push(ImportProblem::new(lines[MOST_IMPORT_LINES].line, message));
    }
    if problems.is_empty() {
        return Ok(lines);
    }
    Err(first_problems(problems))
}

/// The first problems by line, and how many there are.
pub fn first_problems(mut problems: Vec<ImportProblem>) -> (Vec<ImportProblem>, usize) {
    problems.sort_by_key(|problem| problem.line);
    let all = problems.len();
    problems.truncate(MOST_PROBLEMS);
    (problems, all)
}

type WrittenLines = Vec<(u64, Result<WrittenLine, String>)>;

fn json_lines(text: &str) -> WrittenLines {
    let numbered = (1..).zip(text.lines());
    numbered
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            let read = serde_json::from_str(line);
            (number, read.map_err(|error| not_read(&error)))
        })
        .collect()
}

/// Without the place: a line is named already, and the library counts from its own beginning.
fn not_read(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    format!("it is not an item: {}", &text[..end])
}

fn csv_rows(text: &str) -> WrittenLines {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(error) => return vec![(1, Err(row_problem(&error)))],
    };
    let mut seen = BTreeSet::new();
    for column in &header {
        if !COLUMNS.contains(&column) && column.strip_prefix(ATTRIBUTE).is_none_or(str::is_empty) {
            let known = COLUMNS.join(", ");
            let message = format!(
                "the column `{column}` is none of {known} and does not begin with `{ATTRIBUTE}`"
            );
            return vec![(1, Err(message))];
        }
        if !seen.insert(column) {
            return vec![(1, Err(format!("the column `{column}` is there twice")))];
        }
    }
    for needed in ["key", "class"] {
        if !header.is_empty() && !seen.contains(needed) {
            return vec![(1, Err(format!("there is no column `{needed}`")))];
        }
    }
    let mut rows = Vec::new();
    for row in reader.records() {
        match row {
            Ok(row) => {
                let number = row.position().map_or(0, csv::Position::line);
                rows.push((number, Ok(row_of(&header, &row))));
            }
            Err(error) => {
                let number = error.position().map_or(1, csv::Position::line);
                rows.push((number, Err(row_problem(&error))));
            }
        }
    }
    rows
}

fn row_problem(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("it has {len} columns where the header has {expected_len}"),
        _ => "it cannot be read as CSV in UTF-8".to_owned(),
    }
}

/// An empty cell says nothing.
fn row_of(header: &csv::StringRecord, row: &csv::StringRecord) -> WrittenLine {
    let mut written = WrittenLine::default();
    for (column, cell) in header.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
        let cell = cell.to_owned();
        match column {
            "key" => written.key = cell,
            "class" => written.class = cell,
            "name" => written.name = Some(cell),
            "cloud_resource_id" => written.cloud_resource_id = Some(cell),
            "compartment" => written.compartment = Some(cell),
            "status" => written.status = Some(cell),
            other => {
                let name = other.trim_start_matches(ATTRIBUTE).to_owned();
                written.attributes.insert(name, Value::String(cell));
            }
        }
    }
    written
}

fn checked(line: u64, written: WrittenLine) -> Result<ImportLine, String> {
    let key = name("key", &written.key, LONGEST_NAME)?;
    let class = name("class", &written.class, LONGEST_NAME)?;
    let shown = written.name.as_deref().unwrap_or(&written.key);
    let shown = name("name", shown, LONGEST_NAME)?;
    let cloud_resource_id = match &written.cloud_resource_id {
        Some(id) => Some(name("cloud_resource_id", id, LONGEST_ID)?),
        None => None,
    };
    let attributes = kept_attributes(&written.attributes);
    if let Some(large) = attributes.left_out.first() {
        return Err(format!("the attribute `{large}` is too large"));
    }
    let active = match written.status.as_deref() {
        None | Some("active") => true,
        Some("decommissioned") => false,
        Some(other) => {
            let message = format!("`status` is active or decommissioned, not `{other}`");
            return Err(message);
        }
    };
    if written.relationships.len() > MOST_RELATIONS {
        return Err(format!("it has more than {MOST_RELATIONS} relationships"));
    }
    for relation in &written.relationships {
        if !is_relationship(&relation.relationship) {
            let given = &relation.relationship;
            return Err(format!(
                "`{given}` is no relationship: 1 to 64 lower-case letters, digits and `_`"
            ));
        }
        if relation.target == key {
            return Err("it is related to itself".to_owned());
        }
    }
    Ok(ImportLine {
        line,
        key,
        content: ItemContent {
            class,
            name: shown,
            cloud_resource_id,
            attributes,
            external: false,
        },
        compartment: written.compartment.filter(|path| !path.is_empty()),
        active,
        relations: written.relationships,
    })
}

/// Whether a word can be that of a relationship.
pub fn is_relationship(word: &str) -> bool {
    (1..=64).contains(&word.len())
        && word.starts_with(|first: char| first.is_ascii_lowercase())
        && word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn name(field: &str, text: &str, longest: usize) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(format!("`{field}` is missing"));
    }
    if text.len() > longest {
        return Err(format!("`{field}` has more than {longest} bytes"));
    }
    let plain = tidy_line(text, longest);
    if plain != text || text.contains(['\n', '\t']) {
        return Err(format!("`{field}` has characters that a name cannot have"));
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_say_the_same() {
        let lines = "{\"key\": \"fw-1\", \"class\": \"firewall\", \"name\": \"edge\", \"attributes\": {\"model\": \"x\"}}\n\n\
            {\"key\": \"fw-2\", \"class\": \"firewall\", \"status\": \"decommissioned\"}\n";
        let rows = "key,class,name,status,attributes.model\nfw-1,firewall,edge,,x\nfw-2,firewall,,decommissioned,\n";
        let json = read_import(ImportFormat::JsonLines, lines).unwrap();
        let csv = read_import(ImportFormat::Csv, rows).unwrap();
        let places = |found: &[ImportLine]| found.iter().map(|one| one.line).collect::<Vec<_>>();
        assert_eq!((places(&json), places(&csv)), (vec![1, 3], vec![2, 3]));
        assert_eq!(json[0].content.attributes.values["model"], "x");
        assert_eq!(
            (json[1].content.name.as_str(), json[1].active),
            ("fw-2", false)
        );
        let without_place = |found: Vec<ImportLine>| -> Vec<ImportLine> {
            let found = found.into_iter();
            found.map(|one| ImportLine { line: 0, ..one }).collect()
        };
        assert_eq!(without_place(json), without_place(csv));
    }

    #[test]
    fn every_problem_names_its_line() {
        let lines = "{\"key\": \"a\", \"class\": \"c\"}\nnot json\n{\"key\": \"\", \"class\": \"c\"}\n\
            {\"key\": \"a\", \"class\": \"c\"}\n{\"key\": \"b\", \"class\": \"c\", \"colour\": 1}\n\
            {\"key\": \"d\", \"class\": \"c\", \"status\": \"gone\"}\n";
        let (problems, all) = read_import(ImportFormat::JsonLines, lines).unwrap_err();
        assert_eq!(all, 5);
        let told: Vec<_> = problems
            .iter()
            .map(|one| (one.line, one.message.as_str()))
            .collect();
        assert_eq!(told[0].0, 2);
        assert_eq!(told[1], (3, "`key` is missing"));
        assert_eq!(told[2], (4, "the key `a` is that of line 1 already"));
        assert!(told[3].0 == 5 && told[3].1.contains("colour"), "{told:?}");
        assert!(!told[3].1.contains(" at line "), "{told:?}");
        assert_eq!(told[4].0, 6);
        let rows = "key,class\na,c\nb\n\"c\nc\",c\n";
        let (problems, _) = read_import(ImportFormat::Csv, rows).unwrap_err();
        let told: Vec<_> = problems.iter().map(|one| one.line).collect();
        assert_eq!(told, [3, 4], "{problems:?}");
        let (problems, _) = read_import(ImportFormat::Csv, "key,colour\na,b\n").unwrap_err();
        assert_eq!(problems[0].line, 1);
        assert!(problems[0].message.contains("colour"));
        assert!(read_import(ImportFormat::Csv, "").is_err());
    }
}
