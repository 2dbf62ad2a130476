//! The file of a world: how it is opened, shared, read on and made shorter.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use nimbus_disk::FileMode;
use serde::{Deserialize, Serialize};

use super::{Objects, SimulatedObject, WorldError};

/// What the lines look like. A file without a version has this form too.
const VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
struct Head {
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WorldLine {
    Put {
        id: String,
        object: SimulatedObject,
    },
    Gone {
        id: String,
        /// Older worlds did not say which of several with that id.
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        type_: Option<String>,
    },
}

impl WorldLine {
    pub(super) fn apply(self, objects: &mut Objects) {
        match self {
            Self::Put { id, object } => {
                objects.insert((object.type_.clone(), id), object);
            }
            Self::Gone {
                id,
                type_: Some(type_),
            } => {
                objects.remove(&(type_, id));
            }
            Self::Gone { id, type_: None } => objects.retain(|(_, known), _| *known != id),
        }
    }
}

pub(super) struct WorldFile {
    path: PathBuf,
    file: File,
    /// How far it was read: the end of a line.
    offset: u64,
    lines: usize,
    /// Held by everybody who has the world open.
    _presence: File,
}

impl WorldFile {
    pub(super) fn open(path: &Path, objects: &mut Objects) -> Result<Self, WorldError> {
        let unusable = |source: io::Error| WorldError::Unusable {
            path: path.to_owned(),
            source,
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(unusable)?;
        }
        let presence = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path.with_extension("lock"))
            .map_err(unusable)?;
        if presence.try_lock().is_ok() {
            shorten(path)?;
        }
        presence.lock_shared().map_err(unusable)?;
        let file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .map_err(unusable)?;
        let mut opened = Self {
            path: path.to_owned(),
            file,
            offset: 0,
            lines: 0,
            _presence: presence,
        };
        opened.catch_up(objects)?;
        Ok(opened)
    }

    /// Reads lines that were added since. A line that has no end yet is left for later.
    pub(super) fn catch_up(&mut self, objects: &mut Objects) -> Result<(), WorldError> {
        let text = self.unread().map_err(|source| WorldError::Unusable {
            path: self.path.clone(),
            source,
        })?;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if !line.ends_with(b"\n") {
                break;
            }
            self.offset += line.len() as u64;
            self.lines += 1;
            if self.lines == 1
                && let Ok(Head { version }) = serde_json::from_slice(line)
            {
                if version > VERSION {
                    return Err(WorldError::Newer {
                        path: self.path.clone(),
                        version,
                    });
                }
                continue;
            }
            let line: WorldLine =
                serde_json::from_slice(line).map_err(|_| WorldError::Damaged {
                    path: self.path.clone(),
                    line: self.lines,
                })?;
            line.apply(objects);
        }
        Ok(())
    }

    fn unread(&mut self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        if self.file.metadata()?.len() > self.offset {
            self.file.seek(SeekFrom::Start(self.offset))?;
            self.file.read_to_end(&mut text)?;
        }
        Ok(text)
    }

    /// One write, so that lines of several processes do not mix.
    pub(super) fn append(&mut self, line: &WorldLine) -> io::Result<()> {
        self.file.write_all(&json_line(line)?)
    }
}

/// Writes what there is beside the file and moves it into place. Nobody else may have it open.
fn shorten(path: &Path) -> Result<(), WorldError> {
    let unusable = |source: io::Error| WorldError::Unusable {
        path: path.to_owned(),
        source,
    };
    let mut objects = Objects::new();
    match File::open(path) {
        Ok(file) => {
            let presence = file.try_clone().map_err(unusable)?;
            let mut old = WorldFile {
                path: path.to_owned(),
                file,
                offset: 0,
                lines: 0,
                _presence: presence,
            };
            old.catch_up(&mut objects)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(unusable(error)),
    }
    let mut text = json_line(&Head { version: VERSION }).map_err(unusable)?;
    for ((_, id), object) in objects {
        let line = WorldLine::Put { id, object };
        text.extend(json_line(&line).map_err(unusable)?);
    }
    nimbus_disk::replace(path, &text, FileMode::KeptOrShared).map_err(unusable)
}

fn json_line(line: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}
