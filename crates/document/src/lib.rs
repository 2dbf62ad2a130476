//! YAML and JSON input with source positions, limits and precise errors.
//!
//! Every file a person writes goes through [`Document::parse`]. What comes out is a tree in which
//! each value knows where it stood, so that any later complaint can point at a line and a column.
//! Read it with [`Node`] (shape only), with [`View`] (typed access whose errors point at the file)
//! or with [`Document::deserialize`] (serde types, same errors).
//!
//! Plain YAML scalars mean what Go's `yaml.v3` makes of them, because Pulumi reads the same files:
//! `yes` is a string, `0x1f` and `1_000` are integers, a date is a string.
//!
//! This crate writes nothing, and it never guesses: two equal keys, a second document, a
//! self-containing alias or a byte that is not text are refused.

mod complaints;
mod de;
mod document;
mod json;
mod node;
mod scalar;
mod source;
mod suggest;
mod view;
mod yaml;

pub use document::{Document, DocumentFormat, DocumentLimits};
pub use node::{Mapping, MappingEntry, Node, NodeKind, Number};
pub use source::{Position, Span};
pub use suggest::{did_you_mean, nearest};
pub use view::View;
