//! Installs from a local server with the layout of the public ones, well-behaved and not.

mod archives;
mod downloads;
mod folders;
mod server;
mod support;
mod together;
