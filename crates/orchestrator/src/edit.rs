//! Changing one thing in a YAML file that belongs to its owner: comments, order and style of
//! everything else stay.
//!
//! An edit replaces the text of one value, and is then read back: if anything but that value
//! changed, or the value is not what was wanted, the edit is refused and the caller writes the
//! file anew.

use nimbus_core::Result;
use nimbus_document::{Document, Span};
use serde_json::{Map, Value};

use crate::yaml;

/// The text with the value at `path` set, other text untouched where that is possible.
pub fn set(document: &Document, path: &[&str], value: &Value) -> Result<String> {
    let mut wanted = document.to_json(document.root())?;
    put(&mut wanted, path, value.clone());
    let edited =
        scalar_in_place(document, path, value).or_else(|| top_level(document, path, &wanted));
    if let Some(text) = edited
        && let Ok(reread) = Document::parse(document.name(), &text)
        && reread
            .to_json(reread.root())
            .is_ok_and(|found| found == wanted)
    {
        return Ok(text);
    }
    Ok(anew(document, &wanted))
}

/// Replaces a scalar that is there by another.
fn scalar_in_place(document: &Document, path: &[&str], value: &Value) -> Option<String> {
    if value.is_object() || value.is_array() {
        return None;
    }
    let mut node = document.root();
    for key in path {
        node = node.get(key)?;
    }
    if node.as_mapping().is_some() || node.as_sequence().is_some() || node.span.is_empty() {
        return None;
    }
    Some(replaced(document, node.span, &yaml::scalar(value)))
}

/// Writes the top-level key of the path anew, in its place or at the end.
fn top_level(document: &Document, path: &[&str], wanted: &Value) -> Option<String> {
    let key = *path.first()?;
    let map = Map::from_iter([(key.to_owned(), wanted.get(key)?.clone())]);
    let block = yaml::write(&[], &map);
    let mapping = document.root().as_mapping()?;
    let Some(entry) = mapping.entry(key) else {
        let text = document.text().trim_end();
        return Some(format!("{text}\n{block}"));
    };
    let text = document.text();
    let from = entry.key_span.start;
    // Up to the next key, less the comments and blank lines that belong to it.
    let next = mapping
        .iter()
        .map(|(_, other)| other.key_span.start)
        .filter(|start| *start > from)
        .min()
        .unwrap_or(text.len());
    let kept = leading_comments(&text[from..next]);
    Some(format!("{}{block}{}", &text[..from], &text[next - kept..]))
}

/// Length of the comment and blank lines at the end of a block.
fn leading_comments(block: &str) -> usize {
    let mut kept = 0;
    for line in block.split_inclusive('\n').rev() {
        let bare = line.trim();
        if line.starts_with([' ', '\t']) || !(bare.is_empty() || bare.starts_with('#')) {
            break;
        }
        kept += line.len();
    }
    kept
}

fn replaced(document: &Document, span: Span, with: &str) -> String {
    let text = document.text();
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}

/// The whole file in our own style, with the comments above its first key.
fn anew(document: &Document, wanted: &Value) -> String {
    let header: Vec<String> = document
        .text()
        .lines()
        .take_while(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_owned())
        .collect();
    match wanted {
        Value::Object(map) => yaml::write(&header, map),
        _ => String::new(),
    }
}

fn put(target: &mut Value, path: &[&str], value: Value) {
    let Some((key, rest)) = path.split_first() else {
        *target = value;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(map) = target {
        put(map.entry(*key).or_insert(Value::Null), rest, value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn edited(text: &str, path: &[&str], value: Value) -> String {
        set(&Document::parse("t.yaml", text).unwrap(), path, &value).unwrap()
    }

    const TEXT: &str = "# Mine\nname: a   # the name\n\n# Who is needed\ndependencies: [x]\nstacks:\n  dns: { enabled: true }\n  web:\n";

    #[test]
    fn a_scalar_is_replaced_and_nothing_else() {
        assert_eq!(
            edited(TEXT, &["stacks", "dns", "enabled"], json!(false)),
            TEXT.replace("true", "false")
        );
        assert_eq!(
            edited(TEXT, &["name"], json!("b: c")),
            TEXT.replace("name: a", "name: \"b: c\"")
        );
    }

    #[test]
    fn a_block_is_written_anew_and_comments_around_it_stay() {
        let text = edited(TEXT, &["dependencies"], json!(["x", "z"]));
        assert_eq!(
            text,
            TEXT.replace("dependencies: [x]\n", "dependencies:\n  - x\n  - z\n")
        );
        let text = edited(TEXT, &["stacks", "web", "enabled"], json!(false));
        assert!(
            text.starts_with("# Mine\nname: a   # the name\n\n# Who is needed\n"),
            "{text}"
        );
        assert!(text.contains("  web:\n    enabled: false\n"), "{text}");
    }

    #[test]
    fn what_is_not_there_is_added() {
        let text = edited(TEXT, &["priority"], json!(5));
        assert_eq!(text, format!("{TEXT}priority: 5\n"));
    }

    proptest! {
        #[test]
        fn the_value_is_set_and_every_other_stays(
            key in "[a-d]", value in prop_oneof![Just(json!(1)), Just(json!("x: y")), Just(json!([1, {"a": "b"}]))],
            comments in proptest::collection::vec("(#[ a-z]{0,5}\n|\n)?", 3),
        ) {
            let text = format!("{}a: {{x: 1}}\n{}b:\n  - 1\n  # inner\n  - 2\n{}c: |\n  text\n", comments[0], comments[1], comments[2]);
            let document = Document::parse("t.yaml", &text).unwrap();
            let mut wanted = document.to_json(document.root()).unwrap();
            wanted[&key] = value.clone();
            let edited = edited(&text, &[&key], value);
            let reread = Document::parse("t.yaml", &edited).unwrap();
            prop_assert_eq!(reread.to_json(reread.root()).unwrap(), wanted, "{}", edited);
        }
    }
}
