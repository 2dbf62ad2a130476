//! What a document may cost, found out before anything is done for it.
//!
//! The library that executes documents measures them by walking into every fragment as often as it is used, which a small
//! document can make as long as it likes. Here each fragment is measured once.

use std::collections::HashMap;
use std::convert::Infallible;

use async_graphql::parser::types::{
    Directive, ExecutableDocument, FragmentDefinition, OperationType, Selection, SelectionSet,
};
use async_graphql::parser::{Error as ParseError, parse_query};
use async_graphql::{Name, Positioned, Value};
use nimbus_control_app::Failure;
use nimbus_core::{Error, ErrorCode};

/// Bytes of a document, without its variables.
const MOST_BYTES: usize = 64 * 1024;
/// Brackets inside brackets, before anything reads them.
const MOST_NESTED: usize = 64;
/// Names, texts, numbers and signs. What is checked against the schema (variables, arguments, spreads, values) is compared
/// with each other there, so its number counts, whatever it is.
const MOST_WORDS: usize = 8000;
const MOST_DEPTH: usize = 10;
/// Fields at the root: each is a use case of its own, also when it is asked for twice under one name.
const MOST_ROOTS: usize = 50;
/// Questions about the schema itself have lists of lists by nature.
const MOST_DEPTH_OF_SCHEMA: usize = 20;
const MOST_ALIASES: usize = 30;
const MOST_FIELDS: usize = 1000;
const MOST_DIRECTIVES: usize = 50;

/// What is known of a document once it was read.
#[derive(Debug)]
pub(crate) struct ReadDocument {
    pub(crate) document: ExecutableDocument,
    /// Names of the fields at the root, each as often as it is asked for.
    pub(crate) roots: Vec<String>,
    pub(crate) changes: bool,
    pub(crate) watches: bool,
}

/// Reads a document, unless it costs more than one may.
pub(crate) fn read(text: &str, introspection: bool) -> Result<ReadDocument, Failure> {
    if text.len() > MOST_BYTES {
        return Err(costly(format!("it has more than {MOST_BYTES} bytes")));
    }
    if nesting(text) > MOST_NESTED {
        return Err(costly("it is nested too deeply"));
    }
    if words(text) > MOST_WORDS {
        return Err(costly(format!("it has more than {MOST_WORDS} words")));
    }
    let document = parse_query(text).map_err(|error| match error {
        ParseError::RecursionLimitExceeded => costly("it is nested too deeply"),
        other => unreadable(&other),
    })?;
    let mut reader = DocumentReader {
        fragments: &document.fragments,
        known: HashMap::new(),
        open: Vec::new(),
        directives: 0,
        introspects: false,
    };
    let mut total = Measure::default();
    let mut roots = Vec::new();
    let (mut changes, mut watches) = (false, false);
    for (_, operation) in document.operations.iter() {
        let operation = &operation.node;
        changes |= operation.ty == OperationType::Mutation;
        watches |= operation.ty == OperationType::Subscription;
        reader.count(&operation.directives)?;
        for variable in &operation.variable_definitions {
            reader.count(&variable.node.directives)?;
        }
        let set = &operation.selection_set.node;
        total = total.beside(reader.set(set)?);
        within(total)?;
        reader.roots(set, &mut roots);
        if roots.len() > MOST_ROOTS {
            let why = format!("it has more than {MOST_ROOTS} fields at its root");
            return Err(costly(why));
        }
    }
    if reader.introspects && !introspection {
        let message = "questions about the schema are switched off";
        return Err(Error::new(ErrorCode::INTROSPECTION_OFF, message)
            .with_help("the schema is at /graphql/schema.graphql")
            .into());
    }
    Ok(ReadDocument {
        roots,
        changes,
        watches,
        document,
    })
}

fn costly(why: impl std::fmt::Display) -> Failure {
    Error::new(
        ErrorCode::QUERY_TOO_COSTLY,
        format!("the document is refused: {why}"),
    )
    .with_help("ask for less at once, or in several requests")
    .into()
}

/// Where a document cannot be read, and what would go on there. Its own text may have a password in it and is not repeated.
fn unreadable(error: &ParseError) -> Failure {
    let message = match error {
        ParseError::Syntax { message, start, .. } => {
            // The lines before the last one are the document's.
            let wanted = message.lines().next_back().unwrap_or_default();
            let wanted = wanted.trim_start_matches([' ', '=']);
            format!("line {}, column {}: {wanted}", start.line, start.column)
        }
        other => other.to_string(),
    };
    let message: String = message.chars().take(300).collect();
    Failure::field("query", message)
}

/// Of a selection, with everything that its fragments stand for.
#[derive(Clone, Copy, Debug, Default)]
struct Measure {
    fields: usize,
    aliases: usize,
    depth: usize,
}

impl Measure {
    fn beside(self, other: Self) -> Self {
        Self {
            fields: self.fields.saturating_add(other.fields),
            aliases: self.aliases.saturating_add(other.aliases),
            depth: self.depth.max(other.depth),
        }
    }
}

fn within(measure: Measure) -> Result<(), Failure> {
    for (found, most, what) in [
        (measure.depth, MOST_DEPTH, "levels"),
        (measure.aliases, MOST_ALIASES, "aliases"),
        (measure.fields, MOST_FIELDS, "fields"),
    ] {
        if found > most {
            return Err(costly(format!("it has more than {most} {what}")));
        }
    }
    Ok(())
}

struct DocumentReader<'a> {
    fragments: &'a HashMap<Name, Positioned<FragmentDefinition>>,
    known: HashMap<&'a str, Measure>,
    /// Fragments that are being measured; one that comes again stands for itself.
    open: Vec<&'a str>,
    directives: usize,
    introspects: bool,
}

impl<'a> DocumentReader<'a> {
    fn set(&mut self, set: &'a SelectionSet) -> Result<Measure, Failure> {
        let mut total = Measure::default();
        for item in &set.items {
            let measure = match &item.node {
                Selection::Field(field) => {
                    let field = &field.node;
                    self.count(&field.directives)?;
                    for (name, value) in &field.arguments {
                        // Variables are looked at where they are given.
                        let Ok(value) = value.node.clone().into_const_with(without_variable);
                        storable(name.node.as_str(), &value)?;
                    }
                    let inner = self.set(&field.selection_set.node)?;
                    let of_schema = matches!(field.name.node.as_str(), "__schema" | "__type");
                    self.introspects |= of_schema;
                    let free = if of_schema {
                        MOST_DEPTH_OF_SCHEMA - MOST_DEPTH
                    } else {
                        0
                    };
                    Measure {
                        fields: inner.fields.saturating_add(1),
                        aliases: inner
                            .aliases
                            .saturating_add(usize::from(field.alias.is_some())),
                        depth: (inner.depth + 1).saturating_sub(free).max(1),
                    }
                }
                Selection::InlineFragment(fragment) => {
                    self.count(&fragment.node.directives)?;
                    self.set(&fragment.node.selection_set.node)?
                }
                Selection::FragmentSpread(spread) => {
                    self.count(&spread.node.directives)?;
                    self.fragment(spread.node.fragment_name.node.as_str())?
                }
            };
            total = total.beside(measure);
        }
        Ok(total)
    }

    fn fragment(&mut self, name: &'a str) -> Result<Measure, Failure> {
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        if self.open.contains(&name) {
            return Err(costly("a fragment stands for itself"));
        }
        // One that does not exist is found by whoever checks the document against the schema.
        let Some(fragment) = self.fragments.get(name) else {
            return Ok(Measure::default());
        };
        self.count(&fragment.node.directives)?;
        self.open.push(name);
        let measure = self.set(&fragment.node.selection_set.node)?;
        self.open.pop();
        self.known.insert(name, measure);
        Ok(measure)
    }

    fn count(&mut self, directives: &'a [Positioned<Directive>]) -> Result<(), Failure> {
        self.directives = self.directives.saturating_add(directives.len());
        match self.directives > MOST_DIRECTIVES {
            true => Err(costly(format!(
                "it has more than {MOST_DIRECTIVES} directives"
            ))),
            false => Ok(()),
        }
    }

    /// Bounded by what was measured before.
    fn roots(&self, set: &SelectionSet, roots: &mut Vec<String>) {
        for item in &set.items {
            match &item.node {
                Selection::Field(field) => roots.push(field.node.name.node.to_string()),
                Selection::InlineFragment(fragment) => {
                    self.roots(&fragment.node.selection_set.node, roots);
                }
                Selection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    if let Some(fragment) = self.fragments.get(name) {
                        self.roots(&fragment.node.selection_set.node, roots);
                    }
                }
            }
        }
    }
}

fn without_variable(_: Name) -> Result<Value, Infallible> {
    Ok(Value::Null)
}

/// PostgreSQL stores every character but one.
pub(crate) fn storable_text(field: &str, text: &str) -> Result<(), Failure> {
    match text.contains('\0') {
        true => Err(Failure::field(
            field.replace('\0', ""),
            "it has the character U+0000, which cannot be stored",
        )),
        false => Ok(()),
    }
}

fn storable(field: &str, value: &Value) -> Result<(), Failure> {
    match value {
        Value::String(text) => storable_text(field, text),
        Value::List(items) => items.iter().try_for_each(|item| storable(field, item)),
        Value::Object(entries) => entries
            .iter()
            .try_for_each(|(name, item)| storable(name.as_str(), item)),
        _ => Ok(()),
    }
}

/// How deep brackets are inside brackets, outside of texts and comments.
fn nesting(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut most) = (0, 0_usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' | b'(' => {
                depth += 1;
                most = most.max(depth);
            }
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            b'#' => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            b'"' => at = end_of_text(bytes, at),
            _ => {}
        }
        at += 1;
    }
    most
}

/// How many words there are, outside of comments; a text is one.
fn words(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut count) = (0, 0);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    while at < bytes.len() {
        match bytes[at] {
            b' ' | b'\t' | b'\n' | b'\r' | b',' => {}
            b'#' => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            b'"' => {
                count += 1;
                at = end_of_text(bytes, at);
            }
            byte if is_letter(byte) => {
                count += 1;
                while bytes.get(at + 1).is_some_and(|next| is_letter(*next)) {
                    at += 1;
                }
            }
            _ => count += 1,
        }
        at += 1;
    }
    count
}

/// The last quotation mark of a text that begins here, or the end of it all.
fn end_of_text(bytes: &[u8], begin: usize) -> usize {
    let block = bytes[begin..].starts_with(b"\"\"\"");
    let mut at = if block { begin + 3 } else { begin + 1 };
    while at < bytes.len() {
        if block && bytes[at..].starts_with(b"\\\"\"\"") {
            at += 4;
        } else if block && bytes[at..].starts_with(b"\"\"\"") {
            return at + 2;
        } else if !block && bytes[at] == b'\\' {
            at += 2;
        } else if !block && matches!(bytes[at], b'"' | b'\n') {
            return at;
        } else {
            at += 1;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        read(text, false).unwrap_err().error.message().to_owned()
    }

    #[test]
    fn what_is_asked_at_the_root_is_counted_through_fragments() {
        let text = "query { a { x } ...F } fragment F on Query { b { x } c { x } }";
        let read = read(text, false).unwrap();
        assert_eq!(read.roots, ["a", "b", "c"]);
        assert!(!read.changes && !read.watches);
    }

    #[test]
    fn small_documents_that_stand_for_large_ones_are_refused() {
        let mut bomb = "query { ...f0 }".to_owned();
        for number in 0..40 {
            let next = number + 1;
            bomb.push_str(&format!(
                " fragment f{number} on Query {{ ...f{next} ...f{next} }}"
            ));
        }
        bomb.push_str(" fragment f40 on Query { a }");
        assert!(refused(&bomb).contains("fields"));
        let cycle = "query { ...a } fragment a on Query { ...b } fragment b on Query { ...a }";
        assert!(refused(cycle).contains("stands for itself"));
        let deep = format!("query {}{}", "{ a ".repeat(11), "}".repeat(11));
        assert!(refused(&deep).contains("levels"));
        let aliases: String = (0..31).map(|number| format!("a{number}: a ")).collect();
        assert!(refused(&format!("{{ {aliases} }}")).contains("aliases"));
        let directives = "@skip(if: false) ".repeat(300);
        assert!(refused(&format!("{{ a {directives} }}")).contains("directives"));
        assert!(refused(&"{ a ".repeat(15_000)).contains("nested"));
        assert!(refused(&format!("{{ a(b: {}) }}", "[".repeat(60_000))).contains("nested"));
        assert!(refused(&" ".repeat(MOST_BYTES + 1)).contains("bytes"));
        assert!(refused("{ __schema { types { name } } }").contains("switched off"));
        let roots = "a ".repeat(MOST_ROOTS + 1);
        assert!(refused(&format!("{{ {roots} }}")).contains("at its root"));
    }

    #[test]
    fn whatever_there_is_too_much_of_is_refused_before_it_is_compared() {
        let numbered = |form: fn(usize) -> String| (0..4500).map(form).collect::<String>();
        let variables = numbered(|number| format!("$v{number}: Int "));
        let spreads = numbered(|number| format!("...f{number} "));
        let arguments = numbered(|_| "id: 1 ".to_owned());
        for document in [
            format!("query({variables}) {{ me {{ id }} }}"),
            format!("{{ {spreads} }}"),
            format!("{{ tenant({arguments}) {{ id }} }}"),
            format!("{{ a(b: [{}]) }}", "x ".repeat(9000)),
        ] {
            assert!(refused(&document).contains("words"), "{}", &document[..40]);
        }
        let text = "{ a(b: \"one two three\", c: 1.5) # four five six\n ...f @g }";
        assert_eq!(words(text), 19);
    }

    #[test]
    fn what_cannot_be_read_is_told_by_its_place_and_not_repeated() {
        let text = "mutation {\n  login(input: {password: \"open sesame\"}";
        let said = refused(text);
        assert!(
            said.contains("line 2") && said.contains("expected"),
            "{said}"
        );
        assert!(!said.contains("sesame"), "{said}");
    }

    #[test]
    fn brackets_in_texts_and_comments_are_no_nesting() {
        let text = format!(
            "{{ a(b: \"{0}\", c: \"\"\"{0} \\\"\"\" {0}\"\"\") # {0}\n }}",
            "{[(".repeat(90)
        );
        assert_eq!(nesting(&text), 2);
    }

    #[test]
    fn a_character_that_cannot_be_stored_is_refused() {
        let text = "{ user(id: \"a\\u0000b\") { id } }";
        assert!(refused(text).contains("U+0000"));
    }
}
