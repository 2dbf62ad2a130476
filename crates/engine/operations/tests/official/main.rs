//! The official command line as an engine: how it is driven, with a stand-in that says what it is
//! told to, and what comes of it, with the real one where it is installed.

mod driving;
mod moving;
mod support;
