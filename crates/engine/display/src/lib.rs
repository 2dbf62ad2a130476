//! How an operation looks: public event JSON, property diffs, the live tree and the summary.
//!
//! Reading order: [`DisplayState`] takes events in, `render` and `plain` turn it into lines,
//! `audience` is the thin edge that owns threads and terminals. Everything but `audience` is pure:
//! no clock, no terminal, no environment.

mod diff;
mod display_thread;
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

pub use display_thread::{
    DisplayThread, JsonViewer, LineViewer, LiveViewer, Moment, Screen, TerminalScreen, Viewer,
};
pub use events::EventLog;
pub use line::{Paint, StyledLine, Tone};
pub use plain::{LineStyle, event_lines};
pub use render::TerminalSize;
pub use snapshot::{pending_line, snapshot_diff_lines};
pub use state::{DisplayState, DisplaySubject};
pub use step::{Basis, StepDetail, step_lines};
