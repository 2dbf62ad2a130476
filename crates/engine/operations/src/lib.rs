//! Operations on a program: preview, up, destroy, refresh, import.
//!
//! This crate puts the engine's parts together and decides in which order they are used; it has no
//! rules about resources of its own.

mod cancel;
mod fan;
mod redact;

pub use cancel::{Cancellation, Stage};
pub use fan::EventFan;
