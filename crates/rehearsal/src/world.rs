//! The simulated cloud's memory: a file with one line for each thing that happened.
//!
//! Appending keeps a change's cost independent of how much there is; opening reads the lines and
//! writes them anew without what is gone. A line that was cut off by a crash is dropped, as a cloud
//! would never have answered for it. Secrets are not written: a marker stands in their place.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use nimbus_engine_model::{Archive, Asset, PropertyMap, PropertyValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const SECRET: &str = "nimbus:rehearsal:secret";

/// An object of the simulated cloud.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    #[serde(rename = "type")]
    pub type_: String,
    /// The name of the resource that made it; empty for planted ones.
    pub name: String,
    pub inputs: Map<String, Value>,
    pub outputs: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Put { id: String, object: Object },
    Gone { id: String },
}

/// All objects, by type and id.
pub struct World {
    objects: BTreeMap<(String, String), Object>,
    /// `None` for a world that ends with the process.
    file: Option<(PathBuf, File)>,
}

impl World {
    pub fn in_memory() -> Self {
        Self {
            objects: BTreeMap::new(),
            file: None,
        }
    }

    /// Opens or makes the file, and its directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut objects = BTreeMap::new();
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(Line::Put { id, object }) => {
                    objects.insert((object.type_.clone(), id), object);
                }
                Ok(Line::Gone { id }) => objects.retain(|(_, known), _| *known != id),
                Err(_) => break,
            }
        }
        let file = rewrite(path, &objects)?;
        Ok(Self {
            objects,
            file: Some((path.to_owned(), file)),
        })
    }

    pub fn get(&self, type_: &str, id: &str) -> Option<&Object> {
        self.objects.get(&(type_.to_owned(), id.to_owned()))
    }

    pub fn count(&self, type_: &str) -> usize {
        self.objects
            .keys()
            .filter(|(known, _)| known == type_)
            .count()
    }

    pub fn ids(&self) -> impl Iterator<Item = (&str, &str)> {
        self.objects
            .keys()
            .map(|(type_, id)| (type_.as_str(), id.as_str()))
    }

    pub fn put(&mut self, id: &str, object: Object) -> io::Result<()> {
        self.append(&Line::Put {
            id: id.to_owned(),
            object: object.clone(),
        })?;
        self.objects
            .insert((object.type_.clone(), id.to_owned()), object);
        Ok(())
    }

    /// Whether there was something to remove.
    pub fn remove(&mut self, type_: &str, id: &str) -> io::Result<bool> {
        let key = (type_.to_owned(), id.to_owned());
        if !self.objects.contains_key(&key) {
            return Ok(false);
        }
        self.append(&Line::Gone { id: id.to_owned() })?;
        self.objects.remove(&key);
        Ok(true)
    }

    fn append(&mut self, line: &Line) -> io::Result<()> {
        let Some((_, file)) = &mut self.file else {
            return Ok(());
        };
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        file.write_all(text.as_bytes())
    }
}

/// Writes what there is beside the file and moves it into place.
fn rewrite(path: &Path, objects: &BTreeMap<(String, String), Object>) -> io::Result<File> {
    let draft = path.with_extension("new");
    let mut text = String::new();
    for ((_, id), object) in objects {
        let line = Line::Put {
            id: id.clone(),
            object: object.clone(),
        };
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    fs::write(&draft, text)?;
    fs::rename(&draft, path)?;
    OpenOptions::new().append(true).open(path)
}

/// Properties as the world keeps them: no secrets.
pub(crate) fn to_json(map: &PropertyMap) -> Map<String, Value> {
    map.iter()
        .map(|(key, value)| (key.clone(), value_to_json(value)))
        .collect()
}

fn value_to_json(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Null | PropertyValue::Computed => Value::Null,
        PropertyValue::Bool(value) => json!(value),
        PropertyValue::Number(value) => json!(value),
        PropertyValue::String(text) => json!(text),
        PropertyValue::Bytes(bytes) => json!(format!("{} bytes", bytes.len())),
        PropertyValue::Array(items) => items.iter().map(value_to_json).collect(),
        PropertyValue::Object(map) => Value::Object(to_json(map)),
        PropertyValue::Asset(asset) => json!({ "asset": asset_hash(asset) }),
        PropertyValue::Archive(archive) => json!({ "archive": archive_hash(archive) }),
        PropertyValue::Secret(_) => json!({ SECRET: true }),
        PropertyValue::Output(output) if output.secret => json!({ SECRET: true }),
        PropertyValue::Output(output) => output.value.as_ref().map_or(Value::Null, value_to_json),
        PropertyValue::ResourceReference(reference) => json!(reference.urn.as_str()),
    }
}

/// What the world says of an object, with the caller's value wherever the world kept none: for
/// secrets, files and references.
pub(crate) fn from_json(map: &Map<String, Value>, known: &PropertyMap) -> PropertyMap {
    let value =
        |(key, value): (&String, &Value)| (key.clone(), value_from_json(value, known.get(key)));
    map.iter().map(value).collect()
}

fn value_from_json(value: &Value, known: Option<&PropertyValue>) -> PropertyValue {
    if let Some(known) = known
        && value_to_json(known) == *value
    {
        return known.clone();
    }
    match value {
        Value::Null => PropertyValue::Null,
        Value::Bool(value) => PropertyValue::Bool(*value),
        Value::Number(number) => PropertyValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => PropertyValue::from(text.as_str()),
        Value::Array(items) => {
            let known = match known {
                Some(PropertyValue::Array(known)) => known.as_slice(),
                _ => &[],
            };
            let item = |(at, item)| value_from_json(item, known.get(at));
            PropertyValue::Array(items.iter().enumerate().map(item).collect())
        }
        Value::Object(map) => {
            let none = PropertyMap::new();
            let known = known.and_then(PropertyValue::as_object).unwrap_or(&none);
            PropertyValue::Object(from_json(map, known))
        }
    }
}

fn asset_hash(asset: &Asset) -> &str {
    match asset {
        Asset::Text { hash, .. }
        | Asset::Path { hash, .. }
        | Asset::Uri { hash, .. }
        | Asset::HashOnly { hash } => hash,
    }
}

fn archive_hash(archive: &Archive) -> &str {
    match archive {
        Archive::Assets { hash, .. }
        | Archive::Path { hash, .. }
        | Archive::Uri { hash, .. }
        | Archive::HashOnly { hash } => hash,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: &str) -> Object {
        Object {
            type_: "t".to_owned(),
            name: "n".to_owned(),
            inputs: Map::from_iter([("a".to_owned(), json!(value))]),
            outputs: Map::new(),
        }
    }

    #[test]
    fn the_world_outlives_the_process_and_forgets_what_is_gone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("deep/world.jsonl");
        let mut world = World::open(&path).unwrap();
        world.put("1", object("x")).unwrap();
        world.put("2", object("y")).unwrap();
        world.put("1", object("z")).unwrap();
        assert!(world.remove("t", "2").unwrap());
        assert!(!world.remove("t", "2").unwrap());
        drop(world);
        let world = World::open(&path).unwrap();
        assert_eq!(world.get("t", "1"), Some(&object("z")));
        assert_eq!(world.count("t"), 1);
        assert_eq!(
            fs::read_to_string(&path).unwrap().lines().count(),
            1,
            "compacted"
        );
    }

    #[test]
    fn a_torn_last_line_is_dropped() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("world.jsonl");
        World::open(&path).unwrap().put("1", object("x")).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"put\":{\"id\":\"2\",\"obj").unwrap();
        let world = World::open(&path).unwrap();
        assert_eq!(world.ids().count(), 1);
    }

    #[test]
    fn secrets_are_not_written_and_come_back_from_the_caller() {
        let secret = PropertyValue::secret(PropertyValue::from("hush"));
        let nested = PropertyMap::from([("password".to_owned(), secret)]);
        let map = PropertyMap::from([("auth".to_owned(), PropertyValue::Object(nested))]);
        let json = to_json(&map);
        assert!(!Value::Object(json.clone()).to_string().contains("hush"));
        assert_eq!(from_json(&json, &map), map);
    }
}
