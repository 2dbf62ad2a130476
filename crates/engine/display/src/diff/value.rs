//! One value as text: on the line of its key where it fits, below it otherwise.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nimbus_engine_model::{Archive, Asset, PropertyMap, PropertyValue, ResourceReference};

use super::render::Renderer;
use super::structural::{is_internal, settled};
use crate::line::Tone;
use crate::text::{clean, clean_name, number, quoted, short_hash};

/// What stands in front of a line: the two columns of a change, and its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinePrefix {
    pub(crate) symbol: &'static str,
    pub(crate) tone: Tone,
}

impl LinePrefix {
    pub(crate) const NONE: Self = Self {
        symbol: "  ",
        tone: Tone::Plain,
    };
    pub(crate) const ADDED: Self = Self {
        symbol: "+ ",
        tone: Tone::Create,
    };
    pub(crate) const REMOVED: Self = Self {
        symbol: "- ",
        tone: Tone::Delete,
    };
    pub(crate) const CHANGED: Self = Self {
        symbol: "~ ",
        tone: Tone::Update,
    };

    /// For the line that ends what a marked line began.
    pub(super) fn closing(self) -> Self {
        Self {
            symbol: Self::NONE.symbol,
            ..self
        }
    }
}

/// The value on one line, or `None` when it needs several.
pub(super) fn inline(value: &PropertyValue, max_text: usize) -> Option<String> {
    Some(match value {
        PropertyValue::Null => "null".to_owned(),
        PropertyValue::Bool(value) => value.to_string(),
        PropertyValue::Number(value) => number(*value),
        PropertyValue::String(text) if is_block(text) || as_json(text).is_some() => return None,
        PropertyValue::String(text) => shortened(text, max_text),
        PropertyValue::Bytes(bytes) => format!("b\"{}\"", STANDARD.encode(bytes)),
        PropertyValue::Array(items) if items.is_empty() => "[]".to_owned(),
        PropertyValue::Object(map) if map.is_empty() => "{}".to_owned(),
        PropertyValue::Array(_)
        | PropertyValue::Object(_)
        | PropertyValue::Archive(Archive::Assets { .. }) => return None,
        PropertyValue::Asset(value) => asset(value),
        PropertyValue::Archive(value) => archive(value),
        PropertyValue::Secret(_) => "[secret]".to_owned(),
        PropertyValue::Computed => "[unknown]".to_owned(),
        PropertyValue::Output(_) => return inline(&settled(value), max_text),
        PropertyValue::ResourceReference(reference) => resource(reference),
    })
}

/// A text of several lines is shown as such.
pub(super) fn is_block(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
}

/// The structure that a text holds, if it is a JSON object or array with something in it.
pub(super) fn as_json(text: &str) -> Option<PropertyValue> {
    let trimmed = text.trim_start();
    if !trimmed.starts_with(['{', '[']) {
        return None;
    }
    match serde_json::from_str(text).ok()? {
        serde_json::Value::Object(map) if map.is_empty() => None,
        serde_json::Value::Array(items) if items.is_empty() => None,
        value => Some(from_json(value)),
    }
}

fn from_json(value: serde_json::Value) -> PropertyValue {
    match value {
        serde_json::Value::Null => PropertyValue::Null,
        serde_json::Value::Bool(value) => PropertyValue::Bool(value),
        serde_json::Value::Number(number) => {
            PropertyValue::Number(number.as_f64().unwrap_or(f64::NAN))
        }
        serde_json::Value::String(text) => PropertyValue::String(text),
        serde_json::Value::Array(items) => {
            PropertyValue::Array(items.into_iter().map(from_json).collect())
        }
        serde_json::Value::Object(map) => PropertyValue::Object(
            map.into_iter()
                .map(|(key, value)| (key, from_json(value)))
                .collect(),
        ),
    }
}

fn shortened(text: &str, max: usize) -> String {
    let total = text.chars().count();
    if total <= max {
        return quoted(text);
    }
    let head: String = text.chars().take(max).collect();
    format!("{}… ({} more characters)", quoted(&head), total - max)
}

fn asset(value: &Asset) -> String {
    let hash = short_hash(value.hash());
    match value {
        Asset::Text { .. } => format!("asset(text:{hash})"),
        Asset::Path { path, .. } => format!("asset(file:{hash}) {}", quoted(path)),
        Asset::Uri { uri, .. } => format!("asset(uri:{hash}) {}", quoted(uri)),
        Asset::HashOnly { .. } => format!("asset({hash})"),
    }
}

fn archive(value: &Archive) -> String {
    let hash = short_hash(value.hash());
    match value {
        Archive::Assets { .. } => format!("archive(assets:{hash})"),
        Archive::Path { path, .. } => format!("archive(file:{hash}) {}", quoted(path)),
        Archive::Uri { uri, .. } => format!("archive(uri:{hash}) {}", quoted(uri)),
        Archive::HashOnly { .. } => format!("archive({hash})"),
    }
}

fn resource(reference: &ResourceReference) -> String {
    let urn = clean_name(reference.urn.as_str());
    match reference.id.as_deref() {
        None => format!("resource({urn})"),
        Some(PropertyValue::String(id)) => format!("resource({urn}, id {})", quoted(id)),
        Some(_) => format!("resource({urn}, id [unknown])"),
    }
}

impl Renderer {
    /// `title: value`, on as many lines as the value needs, all with the same mark.
    pub(crate) fn value(
        &mut self,
        title: &str,
        value: &PropertyValue,
        mark: LinePrefix,
        note: &str,
    ) {
        let value = settled(value);
        if let Some(text) = inline(&value, self.limits.line) {
            self.line(mark, format!("{title}{text}"), note);
            return;
        }
        match value.as_ref() {
            PropertyValue::Object(map) => self.object_block(title, "{", map, mark, note),
            PropertyValue::Archive(archive @ Archive::Assets { assets, .. }) => {
                let open = format!("archive(assets:{}) {{", short_hash(archive.hash()));
                self.object_block(title, &open, assets, mark, note);
            }
            PropertyValue::Array(items) => {
                self.line(mark, format!("{title}["), note);
                self.indented(|inner| {
                    for (index, item) in items.iter().enumerate() {
                        inner.value(&format!("[{index}]: "), item, mark, "");
                    }
                });
                self.line(mark.closing(), "]", "");
            }
            PropertyValue::String(text) => match as_json(text) {
                Some(parsed) => self.value(&format!("{title}(json) "), &parsed, mark, note),
                None => self.text_block(title, text, mark, note),
            },
            other => {
                debug_assert!(false, "{other:?} fits on a line");
            }
        }
    }

    fn object_block(
        &mut self,
        title: &str,
        open: &str,
        map: &PropertyMap,
        mark: LinePrefix,
        note: &str,
    ) {
        self.line(mark, format!("{title}{open}"), note);
        self.indented(|inner| inner.properties(map, mark));
        self.line(mark.closing(), "}", "");
    }

    /// Every property of a map, with aligned keys.
    pub(crate) fn properties(&mut self, map: &PropertyMap, mark: LinePrefix) {
        let shown = || map.iter().filter(|(key, _)| !is_internal(key));
        let width = shown()
            .map(|(key, _)| clean_name(key).chars().count())
            .max();
        for (key, value) in shown() {
            let title = format!("{:<width$}: ", clean_name(key), width = width.unwrap_or(0));
            self.value(&title, value, mark, "");
        }
    }

    fn text_block(&mut self, title: &str, text: &str, mark: LinePrefix, note: &str) {
        let lines: Vec<String> = clean(text).lines().map(str::to_owned).collect();
        self.line(mark, format!("{title}|"), note);
        let shown = lines.len().min(self.limits.block);
        self.indented(|inner| {
            for line in &lines[..shown] {
                inner.line(mark, line.as_str(), "");
            }
            if shown < lines.len() {
                inner.line(mark, format!("… ({} more lines)", lines.len() - shown), "");
            }
        });
    }
}
