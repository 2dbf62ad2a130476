//! By which words an item is found.
//!
//! Words are rows of a table with an ordinary index, because row-level security keeps PostgreSQL from using indexes for
//! text search (ADR 0210). A word is a run of letters and digits, in lower case; an attribute with a plain value is one
//! more, `name=value`, for searches that name the attribute.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::item::ItemContent;

/// So many words an item is found by. One with more is found by its first ones, and says so.
pub const MOST_WORDS: usize = 200;
/// The longest that is kept of a word.
const LONGEST: usize = 100;

/// Words of a text.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(short)
}

fn short(word: &str) -> String {
    let lower = word.to_lowercase();
    let end = lower.floor_char_boundary(LONGEST);
    lower[..end].to_owned()
}

/// The word that stands for an attribute with this value.
pub fn attribute_word(name: &str, value: &str) -> String {
    short(&format!("{name}={value}"))
}

/// Words that have to begin words of an item for it to be found; none for a text without any.
pub fn query_words(text: &str) -> Vec<String> {
    let unique: BTreeSet<String> = words(text).collect();
    unique.into_iter().collect()
}

/// The words of an item, those that people look for first, and whether these are all. What else is known of it by name
/// is in `more`.
pub fn item_words(content: &ItemContent, more: &[&str]) -> (Vec<String>, bool) {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut add = |word: String| {
        if seen.insert(word.clone()) {
            found.push(word);
        }
    };
    words(&content.name).for_each(&mut add);
    if let Some(id) = &content.cloud_resource_id {
        words(id).for_each(&mut add);
    }
    words(&content.class).for_each(&mut add);
    more.iter().flat_map(|text| words(text)).for_each(&mut add);
    let mut pairs = Vec::new();
    plain_values("", &content.attributes.values, &mut pairs);
    for (name, value) in &pairs {
        add(attribute_word(name, value));
    }
    for (_, value) in &pairs {
        words(value).for_each(&mut add);
    }
    let all = found.len() <= MOST_WORDS;
    found.truncate(MOST_WORDS);
    (found, all)
}

/// Plain values by path, such as `tags.Name`.
fn plain_values(prefix: &str, values: &Map<String, Value>, found: &mut Vec<(String, String)>) {
    for (name, value) in values {
        let path = format!("{prefix}{name}");
        match value {
            Value::String(text) => found.push((path, text.clone())),
            Value::Number(number) => found.push((path, number.to_string())),
            Value::Bool(flag) => found.push((path, flag.to_string())),
            Value::Object(inner) => plain_values(&format!("{path}."), inner, found),
            Value::Array(items) => {
                let texts = items.iter().filter_map(Value::as_str);
                found.extend(texts.map(|text| (path.clone(), text.to_owned())));
            }
            Value::Null => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_is_found_by_name_id_class_and_attributes() {
        let mut content = ItemContent {
            class: "aws:ec2/vpc:Vpc".to_owned(),
            name: "Main-VPC".to_owned(),
            cloud_resource_id: Some("vpc-0AB12".to_owned()),
            ..ItemContent::default()
        };
        content.attributes.values = json!({"cidrBlock": "10.0.0.0/16", "tags": {"Team": "Blue"},
            "zones": ["a", "b"], "ipv6": true, "secret": null})
        .as_object()
        .unwrap()
        .clone();
        let (words, all) = item_words(&content, &["D1ACTS", "dev"]);
        assert!(all);
        for word in [
            "main",
            "vpc",
            "0ab12",
            "ec2",
            "d1acts",
            "dev",
            "blue",
            "tags.team=blue",
            "cidrblock=10.0.0.0/16",
            "ipv6=true",
            "zones=b",
        ] {
            assert!(words.iter().any(|one| one == word), "{word}: {words:?}");
        }
        assert_eq!(query_words("  Main, VPC main "), ["main", "vpc"]);
        assert!(query_words(" -- ").is_empty());
        assert_eq!(attribute_word("tags.Team", "Blue"), "tags.team=blue");
    }

    #[test]
    fn words_have_an_end_and_that_is_told() {
        let mut content = ItemContent::default();
        let values = (0..1000).map(|n| (format!("k{n}"), json!(format!("v{n}"))));
        content.attributes.values = values.collect();
        let (words, all) = item_words(&content, &[]);
        assert_eq!((words.len(), all), (MOST_WORDS, false));
    }
}
