//! Real processes: what happens to them and to what they start, whoever ends.

mod lifetime;
mod support;
