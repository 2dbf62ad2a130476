//! The simulated cloud's memory: a file with one line for each thing that happened.
//!
//! Appending keeps a change's cost independent of how much there is. Secrets are not written: a
//! marker stands in their place. Processes may share a world: each reads what others appended
//! before it looks, and only one that is alone makes the file shorter.

mod file;
mod values;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use file::{WorldFile, WorldLine};

pub(crate) use values::{from_json, to_json};

/// An object of the simulated cloud.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulatedObject {
    #[serde(rename = "type")]
    pub type_: String,
    /// The name of the resource that made it; empty for planted ones.
    pub name: String,
    pub inputs: Map<String, Value>,
    pub outputs: Map<String, Value>,
}

/// Why a world cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    #[error("the world of the rehearsal, {path}, cannot be used: {source}")]
    Unusable { path: PathBuf, source: io::Error },
    #[error("the world of the rehearsal, {path}, is damaged in line {line}")]
    Damaged { path: PathBuf, line: usize },
    #[error("the world of the rehearsal, {path}, was written by a newer version: form {version}")]
    Newer { path: PathBuf, version: u64 },
}

impl From<WorldError> for Error {
    fn from(error: WorldError) -> Self {
        let message = error.to_string();
        match error {
            WorldError::Unusable { source, .. } => {
                Self::new(ErrorCode::FILE_UNWRITABLE, message).with_source(source)
            }
            WorldError::Damaged { .. } => {
                let help = "remove the folder that it is in: the rehearsal begins anew, and \
                            nothing real is in there";
                Self::new(ErrorCode::WORLD_DAMAGED, message).with_help(help)
            }
            WorldError::Newer { .. } => {
                let help = "use that version, or remove the folder that it is in to begin anew";
                Self::new(ErrorCode::WORLD_NEWER, message).with_help(help)
            }
        }
    }
}

type Objects = BTreeMap<(String, String), SimulatedObject>;

/// All objects, by type and id.
pub struct SimulatedWorld {
    objects: Objects,
    /// `None` for a world that ends with the process.
    file: Option<WorldFile>,
}

impl SimulatedWorld {
    pub fn in_memory() -> Self {
        Self {
            objects: Objects::new(),
            file: None,
        }
    }

    /// Opens or makes the file, and its directory.
    pub fn open(path: &Path) -> Result<Self, WorldError> {
        let mut objects = Objects::new();
        let file = WorldFile::open(path, &mut objects)?;
        Ok(Self {
            objects,
            file: Some(file),
        })
    }

    /// Whether a folder is a rehearsal's: there is a world in it.
    pub fn lives_in(folder: &Path) -> bool {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("world-") && name.ends_with(".jsonl")
        })
    }

    /// The file of a world in a folder of rehearsals.
    pub fn file_in(folder: &Path, name: &str) -> PathBuf {
        folder.join(format!("world-{name}.jsonl"))
    }

    /// Learns what others did to the same file.
    pub(crate) fn catch_up(&mut self) -> Result<(), WorldError> {
        match &mut self.file {
            Some(file) => file.catch_up(&mut self.objects),
            None => Ok(()),
        }
    }

    pub fn get(&self, type_: &str, id: &str) -> Option<&SimulatedObject> {
        self.objects.get(&(type_.to_owned(), id.to_owned()))
    }

    pub fn count(&self, type_: &str) -> usize {
        let mut types = self.objects.keys().map(|(known, _)| known);
        types.by_ref().filter(|known| *known == type_).count()
    }

    pub fn ids(&self) -> impl Iterator<Item = (&str, &str)> {
        self.objects
            .keys()
            .map(|(type_, id)| (type_.as_str(), id.as_str()))
    }

    pub fn put(&mut self, id: &str, object: SimulatedObject) -> io::Result<()> {
        self.append(WorldLine::Put {
            id: id.to_owned(),
            object,
        })
    }

    /// Whether there was something to remove.
    pub fn remove(&mut self, type_: &str, id: &str) -> io::Result<bool> {
        if self.get(type_, id).is_none() {
            return Ok(false);
        }
        self.append(WorldLine::Gone {
            id: id.to_owned(),
            type_: Some(type_.to_owned()),
        })?;
        Ok(true)
    }

    fn append(&mut self, line: WorldLine) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.append(&line)?;
        }
        line.apply(&mut self.objects);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use serde_json::json;

    use super::*;

    fn object(value: &str) -> SimulatedObject {
        SimulatedObject {
            type_: "t".to_owned(),
            name: "n".to_owned(),
            inputs: Map::from_iter([("a".to_owned(), json!(value))]),
            outputs: Map::new(),
        }
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("deep/world.jsonl");
        (temp, path)
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn the_world_outlives_the_process_and_forgets_what_is_gone() {
        let (_temp, path) = place();
        let mut world = SimulatedWorld::open(&path).unwrap();
        world.put("1", object("x")).unwrap();
        world.put("2", object("y")).unwrap();
        world.put("1", object("z")).unwrap();
        assert!(world.remove("t", "2").unwrap());
        assert!(!world.remove("t", "2").unwrap());
        drop(world);
        let world = SimulatedWorld::open(&path).unwrap();
        assert_eq!(world.get("t", "1"), Some(&object("z")));
        assert_eq!(world.count("t"), 1);
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(lines, 2, "the form and the one object");
    }

    #[test]
    fn what_is_gone_takes_nothing_of_another_type_with_it() {
        let (_temp, path) = place();
        let mut world = SimulatedWorld::open(&path).unwrap();
        let other = SimulatedObject {
            type_: "other".to_owned(),
            ..object("x")
        };
        world.put("app", object("x")).unwrap();
        world.put("app", other).unwrap();
        world.remove("t", "app").unwrap();
        drop(world);
        let world = SimulatedWorld::open(&path).unwrap();
        assert!(world.get("other", "app").is_some() && world.get("t", "app").is_none());
    }

    #[test]
    fn a_torn_last_line_is_dropped() {
        let (_temp, path) = place();
        SimulatedWorld::open(&path)
            .unwrap()
            .put("1", object("x"))
            .unwrap();
        write(&path, "{\"put\":{\"id\":\"2\",\"obj");
        let mut world = SimulatedWorld::open(&path).unwrap();
        assert_eq!(world.ids().count(), 1);
        world.put("3", object("x")).unwrap();
        drop(world);
        assert_eq!(SimulatedWorld::open(&path).unwrap().ids().count(), 2);
    }

    #[test]
    fn a_damaged_world_is_not_half_believed_and_stays_as_it_is() {
        let (_temp, path) = place();
        SimulatedWorld::open(&path)
            .unwrap()
            .put("1", object("x"))
            .unwrap();
        write(&path, "what is this\n{\"gone\":{\"id\":\"1\"}}\n");
        let before = fs::read(&path).unwrap();
        for _ in 0..2 {
            let Err(error) = SimulatedWorld::open(&path) else {
                panic!("a damaged world was opened")
            };
            assert!(
                matches!(error, WorldError::Damaged { line: 3, .. }),
                "{error}"
            );
            assert_eq!(Error::from(error).code(), ErrorCode::WORLD_DAMAGED);
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_world_of_a_newer_version_is_left_alone_and_one_without_a_version_is_read() {
        let (_temp, path) = place();
        write(&path, "{\"version\":2,\"more\":true}\n{\"new\":{}}\n");
        let before = fs::read(&path).unwrap();
        let Err(error) = SimulatedWorld::open(&path) else {
            panic!("a newer world was opened")
        };
        assert!(
            matches!(error, WorldError::Newer { version: 2, .. }),
            "{error}"
        );
        assert_eq!(Error::from(error).code(), ErrorCode::WORLD_NEWER);
        assert_eq!(fs::read(&path).unwrap(), before);

        fs::remove_file(&path).unwrap();
        let first = WorldLine::Put {
            id: "1".to_owned(),
            object: object("x"),
        };
        let first = serde_json::to_string(&first).unwrap();
        write(&path, &format!("{first}\n"));
        assert_eq!(SimulatedWorld::open(&path).unwrap().ids().count(), 1);
    }

    #[test]
    fn two_who_share_a_world_see_and_keep_what_the_other_did() {
        let (_temp, path) = place();
        let mut one = SimulatedWorld::open(&path).unwrap();
        one.put("1", object("x")).unwrap();
        // As a preview does while a run is on its way.
        let mut two = SimulatedWorld::open(&path).unwrap();
        assert!(two.get("t", "1").is_some());
        one.put("2", object("y")).unwrap();
        two.put("3", object("z")).unwrap();
        one.remove("t", "1").unwrap();
        for world in [&mut one, &mut two] {
            world.catch_up().unwrap();
            let ids: Vec<_> = world.ids().map(|(_, id)| id).collect();
            assert_eq!(ids, ["2", "3"]);
        }
        drop((one, two));
        assert_eq!(SimulatedWorld::open(&path).unwrap().ids().count(), 2);
    }
}
