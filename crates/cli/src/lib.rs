//! The nimbus command.
//!
//! [`main`] parses, and nothing happens before that: help, version and mistakes cost no runtime, no
//! file and no thread. Then it enters the directory given with `-C`, starts a runtime for the one
//! command, and turns what comes back into output and an exit code.
//!
//! Reading order: `args` (the command line as types), `commands` (one file per verb; its header
//! says how to add one), `context` (what a command is given), `output` (the only writer to standard
//! output), `diagnostic` (how errors look), `exit` (what numbers mean).

mod actions;
mod args;
mod commands;
mod completion;
mod context;
mod diagnostic;
mod exit;
mod habits;
mod manifest_page;
mod markdown;
mod output;
mod reference;
mod report_page;
mod run;
mod style;
mod table;
mod text_page;
mod wrapping;

pub use run::main;
