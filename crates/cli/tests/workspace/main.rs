//! Workspaces, registration, templates, migration and bad input, through the real binary.

mod adopt;
mod backup;
mod bad_input;
mod checks;
mod goldens;
mod init;
mod migration;
mod public_examples;
mod registration;
mod schemas;
mod support;
#[path = "../shared/terminal.rs"]
mod terminal_session;
mod tutorial;
mod words;
