//! Where in the program something was asked for.
//!
//! SDKs send absolute file URLs. What is recorded is relative to the project, so that a state does
//! not depend on the machine it was made on. A position that does not parse is left out: it is
//! never worth failing a deployment for.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use url::Url;
use uuid::Uuid;

/// One place, as an SDK sends it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RawPosition {
    pub uri: String,
    pub line: i32,
    pub column: i32,
}

/// Where a request came from, as an SDK sends it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RawOrigin {
    pub position: Option<RawPosition>,
    /// `None` inside stands for a frame without a position.
    pub frames: Vec<Option<RawPosition>>,
    /// Handed out by the monitor to the code that sent this request.
    pub parent_handle: String,
}

/// Where a request came from, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct SourcePosition {
    pub(crate) position: String,
    pub(crate) stack_trace: Vec<String>,
}

pub(crate) struct SourcePositions {
    root: PathBuf,
    /// Stack traces of calls into providers that are under way.
    open: Arc<Mutex<HashMap<String, Vec<String>>>>,
}

impl SourcePositions {
    pub(crate) fn new(project_root: &Path) -> Self {
        Self {
            root: project_root.to_owned(),
            open: Arc::default(),
        }
    }

    pub(crate) fn origin(&self, raw: &RawOrigin) -> SourcePosition {
        let Ok(position) = raw.position.as_ref().map(|p| self.relative(p)).transpose() else {
            return SourcePosition::default();
        };
        let own = raw.frames.iter().map(|frame| {
            let position = frame.as_ref().and_then(|frame| self.relative(frame).ok());
            position.unwrap_or_default()
        });
        let mut stack_trace = self
            .open
            .lock()
            .get(&raw.parent_handle)
            .cloned()
            .unwrap_or_default();
        stack_trace.extend(own);
        SourcePosition {
            position: position.unwrap_or_default(),
            stack_trace,
        }
    }

    /// Makes the stack trace findable for requests that the called provider sends meanwhile.
    pub(crate) fn open(&self, raw: &RawOrigin) -> OpenTrace {
        let trace = self.origin(raw).stack_trace;
        let handle = if trace.is_empty() {
            String::new()
        } else {
            Uuid::new_v4().to_string()
        };
        if !handle.is_empty() {
            self.open.lock().insert(handle.clone(), trace);
        }
        OpenTrace {
            handle,
            open: Arc::clone(&self.open),
        }
    }

    fn relative(&self, raw: &RawPosition) -> Result<String, Unplaceable> {
        if raw.line < 0 || raw.column < 0 {
            return Err(Unplaceable);
        }
        let url = Url::parse(&raw.uri).map_err(|_| Unplaceable)?;
        if url.scheme() != "file" {
            return Err(Unplaceable);
        }
        let file = url.to_file_path().map_err(|()| Unplaceable)?;
        let path = url_path(&relative_path(&self.root, &file));
        let column = match raw.column {
            0 => String::new(),
            column => format!(",{column}"),
        };
        Ok(format!("project:///{path}#{}{column}", raw.line))
    }
}

struct Unplaceable;

/// Percent-encodes each segment. Dots that lead out of the project stay, which a URL's own path
/// would not allow.
fn url_path(relative: &str) -> String {
    let encode = |segment: &str| {
        let mut url = Url::parse("file:///").expect("a constant URL is valid");
        url.set_path(segment);
        url.path().trim_start_matches('/').to_owned()
    };
    let segments = relative.split('/').map(|segment| match segment {
        dots @ ("." | "..") => dots.to_owned(),
        other => encode(other),
    });
    segments.collect::<Vec<_>>().join("/")
}

/// The way from one absolute path to another, with slashes.
fn relative_path(from: &Path, to: &Path) -> String {
    let from: Vec<_> = normal(from);
    let to: Vec<_> = normal(to);
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - common);
    up.chain(to[common..].iter().cloned())
        .collect::<Vec<_>>()
        .join("/")
}

fn normal(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect()
}

/// Closes the trace when the call into the provider is over.
pub(crate) struct OpenTrace {
    handle: String,
    open: Arc<Mutex<HashMap<String, Vec<String>>>>,
}

impl OpenTrace {
    /// Empty when the request had no stack trace.
    pub(crate) fn handle(&self) -> &str {
        &self.handle
    }
}

impl Drop for OpenTrace {
    fn drop(&mut self) {
        if !self.handle.is_empty() {
            self.open.lock().remove(&self.handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(uri: &str, line: i32, column: i32) -> RawPosition {
        RawPosition {
            uri: uri.to_owned(),
            line,
            column,
        }
    }

    fn recorded(position: RawPosition) -> String {
        let raw = RawOrigin {
            position: Some(position),
            ..RawOrigin::default()
        };
        SourcePositions::new(Path::new("/home/me/shop"))
            .origin(&raw)
            .position
    }

    #[test]
    fn positions_become_relative_to_the_project() {
        for (uri, line, column, expected) in [
            (
                "file:///home/me/shop/index.ts",
                3,
                7,
                "project:///index.ts#3,7",
            ),
            (
                "file:///home/me/shop/src/a%20b.ts",
                3,
                0,
                "project:///src/a%20b.ts#3",
            ),
            (
                "file:///home/me/lib/x.ts",
                1,
                1,
                "project:///../lib/x.ts#1,1",
            ),
            ("https://example.com/x.ts", 1, 1, ""),
            ("file:///home/me/shop/index.ts", -1, 0, ""),
            ("index.ts", 1, 1, ""),
        ] {
            assert_eq!(recorded(at(uri, line, column)), expected, "{uri}");
        }
    }

    #[test]
    fn a_trace_opened_for_a_provider_leads_the_traces_of_what_it_asks_for() {
        let positions = SourcePositions::new(Path::new("/p"));
        let caller = RawOrigin {
            frames: vec![Some(at("file:///p/main.ts", 1, 0))],
            ..RawOrigin::default()
        };
        let trace = positions.open(&caller);
        let inner = RawOrigin {
            frames: vec![Some(at("file:///p/lib.ts", 2, 0)), None],
            parent_handle: trace.handle().to_owned(),
            ..RawOrigin::default()
        };
        assert_eq!(
            positions.origin(&inner).stack_trace,
            ["project:///main.ts#1", "project:///lib.ts#2", ""]
        );
        drop(trace);
        assert_eq!(
            positions.origin(&inner).stack_trace,
            ["project:///lib.ts#2", ""],
            "a closed trace is forgotten"
        );
    }
}
