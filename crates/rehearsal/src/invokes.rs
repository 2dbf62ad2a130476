//! Answers to functions that look something up, from a data file that users can extend.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nimbus_core::Result;
use nimbus_document::Document;
use nimbus_engine_model::{PropertyMap, PropertyValue};
use serde_json::{Map, Value};

const SHIPPED: &str = include_str!("../data/invokes.yaml");

/// Answers by function token.
#[derive(Clone, Debug)]
pub struct Answers {
    answers: BTreeMap<String, Map<String, Value>>,
    /// Where a user adds answers; named in errors.
    file: PathBuf,
}

impl Answers {
    /// The shipped answers, with those of the user's file over them if it exists.
    pub fn load(file: &Path) -> Result<Self> {
        let mut answers = read(&Document::parse("invokes.yaml", SHIPPED)?)?;
        if file.is_file() {
            answers.extend(read(&Document::read(file)?)?);
        }
        Ok(Self {
            answers,
            file: file.to_owned(),
        })
    }

    /// What a function returns: the stored answer, with `{region}` and `{account}` filled in, and
    /// its arguments, which providers return too.
    pub fn answer(
        &self,
        token: &str,
        args: &PropertyMap,
        region: &str,
        account: &str,
    ) -> Option<PropertyMap> {
        let stored = self.answers.get(token)?;
        let mut result = args.clone();
        for (key, value) in stored {
            result.insert(key.clone(), fill(value, region, account));
        }
        result
            .entry("id".to_owned())
            .or_insert_with(|| PropertyValue::from(region));
        Some(result)
    }

    /// Why there is no answer, and what to do.
    pub fn unknown(&self, token: &str) -> String {
        format!(
            "the rehearsal has no answer for {token}; add one under that name to {}",
            self.file.display()
        )
    }
}

fn read(document: &Document) -> Result<BTreeMap<String, Map<String, Value>>> {
    let mut answers = BTreeMap::new();
    for (token, value) in document.view().entries()? {
        value.mapping()?;
        if let Value::Object(map) = document.to_json(value.node())? {
            answers.insert(token.to_owned(), map);
        }
    }
    Ok(answers)
}

fn fill(value: &Value, region: &str, account: &str) -> PropertyValue {
    match value {
        Value::Null => PropertyValue::Null,
        Value::Bool(value) => PropertyValue::Bool(*value),
        Value::Number(number) => PropertyValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => PropertyValue::from(
            text.replace("{region}", region)
                .replace("{account}", account),
        ),
        Value::Array(items) => PropertyValue::Array(
            items
                .iter()
                .map(|item| fill(item, region, account))
                .collect(),
        ),
        Value::Object(map) => PropertyValue::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), fill(value, region, account)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_answers_know_the_region_and_users_add_their_own() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("invokes.yaml");
        let token = "aws:index/getAvailabilityZones:getAvailabilityZones";
        let args = PropertyMap::from([("state".to_owned(), PropertyValue::from("available"))]);
        let answers = Answers::load(&file).unwrap();
        let zones = answers.answer(token, &args, "eu-west-1", "1").unwrap();
        let PropertyValue::Array(names) = &zones["names"] else {
            panic!()
        };
        assert_eq!(names[0], PropertyValue::from("eu-west-1a"));
        assert_eq!(zones["state"], PropertyValue::from("available"));

        assert!(answers.answer("my:index/f:f", &args, "r", "a").is_none());
        assert!(answers.unknown("my:index/f:f").contains("invokes.yaml"));
        std::fs::write(&file, "my:index/f:f: {x: '{account}'}").unwrap();
        let answers = Answers::load(&file).unwrap();
        assert_eq!(
            answers.answer("my:index/f:f", &args, "r", "a").unwrap()["x"],
            PropertyValue::from("a")
        );
    }
}
