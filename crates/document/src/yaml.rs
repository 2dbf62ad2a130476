//! YAML events to tree.
//!
//! The scanner is a library's; what it does not decide is decided here: limits, equal keys,
//! aliases, merge keys, the meaning of scalars, and what a person is told. Nothing recurses over
//! the input, so depth costs memory only until the limit says stop.

use std::collections::HashMap;

use nimbus_core::{Error, ErrorCode, Result};
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span as CharSpan, Tag};

use crate::complaints::explain;
use crate::document::DocumentLimits;
use crate::node::{Mapping, MappingEntry, Node, NodeKind};
use crate::scalar;
use crate::source::{CharOffsets, SourceText, Span};

/// Reads the one document in `source`; `start` is where its text begins, after a byte order mark.
pub(crate) fn parse(source: &SourceText, start: usize, limits: &DocumentLimits) -> Result<Node> {
    let text = &source.text[start..];
    let mut parser = Parser::new_from_str(text);
    let mut builder = Builder {
        source,
        limits,
        offsets: CharOffsets::new(text, start),
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        root: None,
    };
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| builder.syntax_error(&error))?;
        builder.event(event, span)?;
    }
    Ok(builder.root.unwrap_or(Node {
        kind: NodeKind::Null,
        span: Span::at(start),
    }))
}

struct Builder<'a> {
    source: &'a SourceText,
    limits: &'a DocumentLimits,
    offsets: CharOffsets<'a>,
    open: Vec<YamlFrame>,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
    root: Option<Node>,
}

/// What an alias brings with it, measured once.
struct Anchored {
    node: Node,
    nodes: usize,
    height: usize,
}

/// A collection that has begun and not ended.
struct YamlFrame {
    span: Span,
    anchor: usize,
    content: OpenCollection,
}

enum OpenCollection {
    Sequence(Vec<Node>),
    Mapping {
        mapping: Mapping,
        key: Option<YamlKey>,
        merged: Vec<Mapping>,
    },
}

struct YamlKey {
    text: String,
    span: Span,
    /// An unquoted `<<`: its value's keys are added to this mapping.
    merge: bool,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: CharSpan) -> Result<()> {
        let span = Span::new(
            self.offsets.byte(span.start.index()),
            self.offsets.byte(span.end.index()),
        );
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => self.document_start(span),
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), span)
            }
            Event::SequenceStart(anchor, _) => {
                self.start(span, anchor, OpenCollection::Sequence(Vec::new()))
            }
            Event::MappingStart(anchor, _) => {
                let mapping = Mapping::default();
                self.start(
                    span,
                    anchor,
                    OpenCollection::Mapping {
                        mapping,
                        key: None,
                        merged: Vec::new(),
                    },
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
        }
    }

    fn document_start(&self, span: Span) -> Result<()> {
        if self.root.is_none() {
            return Ok(());
        }
        Err(self
            .source
            .error(
                ErrorCode::DOCUMENT_SYNTAX,
                span,
                format!("{} has more than one YAML document", self.source.name),
                "a second document starts here",
            )
            .with_help("keep one document per file; remove the `---` line or split the file"))
    }

    fn start(&mut self, span: Span, anchor: usize, content: OpenCollection) -> Result<()> {
        self.count(1, span)?;
        if self.at_key() {
            return Err(self
                .source
                .error(
                    ErrorCode::DOCUMENT_SYNTAX,
                    span,
                    "a list or mapping cannot be a key",
                    "this is used as a key",
                )
                .with_help("quote the key if it is meant as text"));
        }
        if self.open.len() >= self.limits.depth {
            return Err(self.too_deep(span));
        }
        self.open.push(YamlFrame {
            span,
            anchor,
            content,
        });
        Ok(())
    }

    fn end(&mut self, span: Span) -> Result<()> {
        let Some(frame) = self.open.pop() else {
            return Ok(()); // the scanner balances starts and ends
        };
        let (kind, last) = match frame.content {
            OpenCollection::Sequence(items) => {
                let last = items.last().map(|node| node.span);
                (NodeKind::Sequence(items), last)
            }
            OpenCollection::Mapping {
                mut mapping,
                merged,
                ..
            } => {
                let last = mapping.entries.last().map(|(_, entry)| entry.value.span);
                for (key, entry) in merged.into_iter().flat_map(|other| other.entries) {
                    mapping.entries.entry(key).or_insert(entry);
                }
                (NodeKind::Mapping(mapping), last)
            }
        };
        // A block collection ends where the next token begins; its last value is the better end.
        let ends_with_bracket = self.source.slice(span).ends_with([']', '}']);
        let end = match last {
            Some(last) if !ends_with_bracket => frame.span.to(last),
            _ => frame.span.to(span),
        };
        self.add(Node { kind, span: end }, frame.anchor)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<()> {
        self.count(1, span)?;
        let plain = style == ScalarStyle::Plain;
        if self.at_key() {
            return self.key(text, plain && tag.is_none(), anchor, span);
        }
        // A lone `!` says nothing about the type.
        let kind = match tag.filter(|tag| !(tag.handle.is_empty() && tag.suffix == "!")) {
            None if plain => scalar::resolve_plain(text),
            None => NodeKind::String(text.to_owned()),
            Some(tag) if tag.is_yaml_core_schema() => scalar::resolve_tagged(&tag.suffix, text)
                .ok_or_else(|| self.does_not_fit(text, &tag.suffix, span))?,
            Some(_) => NodeKind::String(text.to_owned()),
        };
        self.add(Node { kind, span }, anchor)
    }

    fn key(&mut self, text: &str, plain: bool, anchor: usize, span: Span) -> Result<()> {
        if plain && text.is_empty() {
            return Err(self
                .source
                .error(
                    ErrorCode::DOCUMENT_SYNTAX,
                    span,
                    "a key is missing before `:`",
                    "a key belongs here",
                )
                .with_help("write `\"\":` if the empty text is meant"));
        }
        if anchor != 0 {
            let node = Node {
                kind: NodeKind::String(text.to_owned()),
                span,
            };
            self.anchors.insert(
                anchor,
                Anchored {
                    node,
                    nodes: 1,
                    height: 0,
                },
            );
        }
        self.set_key(text, plain && text == "<<", span)
    }

    fn set_key(&mut self, text: &str, merge: bool, span: Span) -> Result<()> {
        let source = self.source;
        let Some(YamlFrame {
            content: OpenCollection::Mapping { mapping, key, .. },
            ..
        }) = self.open.last_mut()
        else {
            return Ok(()); // keys are only asked for inside mappings
        };
        if let Some(first) = mapping.entry(text) {
            let line = source.position(first.key_span.start).line;
            return Err(source
                .error(
                    ErrorCode::DOCUMENT_SYNTAX,
                    span,
                    format!("the key `{text}` is there twice"),
                    "second time",
                )
                .with_help(format!(
                    "it is already set on line {line}; keep one of them"
                )));
        }
        *key = Some(YamlKey {
            text: text.to_owned(),
            span,
            merge,
        });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<()> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(self.source.error(
                ErrorCode::DOCUMENT_SYNTAX,
                span,
                "a value cannot contain itself",
                "this alias is inside its own anchor",
            ));
        };
        let (nodes, height) = (anchored.nodes, anchored.height);
        self.count(nodes, span)?;
        if self.open.len() + height > self.limits.depth {
            return Err(self.too_deep(span));
        }
        let node = self.anchors[&anchor].node.clone();
        if !self.at_key() {
            return self.add(node, 0);
        }
        match node.kind {
            NodeKind::String(text) => self.set_key(&text, false, span),
            _ => Err(self.source.error(
                ErrorCode::DOCUMENT_SYNTAX,
                span,
                "an alias used as a key must stand for a text",
                "this alias stands for something else",
            )),
        }
    }

    /// Puts a finished value into the collection that is open, or makes it the root.
    fn add(&mut self, node: Node, anchor: usize) -> Result<()> {
        if anchor != 0 {
            let (nodes, height) = measure(&node);
            // The copy counts too: anchors within anchors would otherwise multiply for free.
            self.count(nodes, node.span)?;
            self.anchors.insert(
                anchor,
                Anchored {
                    node: node.clone(),
                    nodes,
                    height,
                },
            );
        }
        let Some(frame) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut frame.content {
            OpenCollection::Sequence(items) => items.push(node),
            OpenCollection::Mapping {
                mapping,
                key,
                merged,
            } => {
                let Some(YamlKey {
                    text,
                    span: key_span,
                    merge,
                }) = key.take()
                else {
                    return Ok(()); // a value follows its key
                };
                if merge {
                    return merge_into(merged, node, self.source);
                }
                mapping.entries.insert(
                    text,
                    MappingEntry {
                        key_span,
                        value: node,
                    },
                );
            }
        }
        Ok(())
    }

    /// Whether the next value is a key.
    fn at_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(YamlFrame {
                content: OpenCollection::Mapping { key: None, .. },
                ..
            })
        )
    }

    fn count(&mut self, nodes: usize, span: Span) -> Result<()> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes <= self.limits.nodes {
            return Ok(());
        }
        Err(self
            .source
            .error(
                ErrorCode::DOCUMENT_LIMIT,
                span,
                format!(
                    "{} has more than {} values, aliases expanded",
                    self.source.name, self.limits.nodes
                ),
                "the limit is reached here",
            )
            .with_help("split the file, or use fewer aliases of large values"))
    }

    fn does_not_fit(&self, text: &str, tag: &str, span: Span) -> Error {
        let message = match tag {
            "binary" => "values of type !!binary are not supported".to_owned(),
            _ => format!("`{text}` is not a value of type !!{tag}"),
        };
        self.source.error(
            ErrorCode::DOCUMENT_SYNTAX,
            span,
            message,
            "does not fit its tag",
        )
    }

    fn too_deep(&self, span: Span) -> Error {
        let depth = self.limits.depth;
        self.source.error(
            ErrorCode::DOCUMENT_LIMIT,
            span,
            format!("{} nests deeper than {depth} levels", self.source.name),
            "the limit is reached here",
        )
    }

    fn syntax_error(&self, error: &ScanError) -> Error {
        let mut offset = self.offsets.byte(error.marker().index());
        let source = self.source;
        if error.info().contains("recursion limit") {
            return self.too_deep(Span::at(offset));
        }
        // At the end of input there is nothing to look at; the last written line is. The same goes
        // for a missing colon, which the scanner notices one line late.
        let before_it = error.info().contains("simple key expect");
        if offset >= source.text.len() || before_it {
            offset = source.text[..offset].trim_end().len();
        }
        let (what, help) = explain(error.info(), source.line_at(offset));
        let problem = source.error(
            ErrorCode::DOCUMENT_SYNTAX,
            Span::new(
                offset,
                offset
                    + source.text[offset..]
                        .chars()
                        .next()
                        .map_or(0, char::len_utf8),
            ),
            format!("{} is not valid YAML: {what}", source.name),
            "here",
        );
        match help {
            Some(help) => problem.with_help(help),
            None => problem,
        }
    }
}

fn merge_into(merged: &mut Vec<Mapping>, node: Node, source: &SourceText) -> Result<()> {
    let span = node.span;
    let refuse = || {
        source
            .error(
                ErrorCode::DOCUMENT_SYNTAX,
                span,
                "`<<` takes a mapping or a list of mappings",
                "this is neither",
            )
            .with_help("quote the key as \"<<\" if it is meant as text")
    };
    match node.kind {
        NodeKind::Mapping(mapping) => merged.push(mapping),
        NodeKind::Sequence(items) => {
            for item in items {
                let NodeKind::Mapping(mapping) = item.kind else {
                    return Err(refuse());
                };
                merged.push(mapping);
            }
        }
        _ => return Err(refuse()),
    }
    Ok(())
}

/// Number of values and levels of collections. The tree is no deeper than the limit.
fn measure(node: &Node) -> (usize, usize) {
    let over = |(nodes, height): (usize, usize), child: &Node| {
        let (more, levels) = measure(child);
        (nodes + more, height.max(levels + 1))
    };
    match &node.kind {
        NodeKind::Sequence(items) => items.iter().fold((1, 1), over),
        NodeKind::Mapping(mapping) => mapping
            .iter()
            .map(|(_, entry)| &entry.value)
            .fold((1, 1), over),
        _ => (1, 0),
    }
}
