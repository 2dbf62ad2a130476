//! How an operation looks: public event JSON, property diffs, the live tree and the summary.
//!
//! Reading order: [`DisplayState`] takes events in, `render` and `plain` turn it into lines,
//! `audience` is the thin edge that owns threads and terminals. Everything but `audience` is pure:
//! no clock, no terminal, no environment.

mod audience;
mod diff;
mod events;
mod line;
mod ops;
mod plain;
mod render;
mod snapshot;
mod state;
mod step;
mod summary;
mod text;
mod tree;

pub use audience::{
    Audience, JsonViewer, LineViewer, LiveViewer, Moment, Screen, TerminalScreen, Viewer,
};
pub use events::EventLog;
pub use line::{Line, Paint, Tone};
pub use plain::{LineStyle, event_lines};
pub use render::Size;
pub use snapshot::{pending_line, snapshot_diff_lines};
pub use state::{DisplayState, Subject};
pub use step::{Basis, Detail, step_lines};
