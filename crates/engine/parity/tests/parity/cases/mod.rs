//! The cases, by what they are about.

mod adoption;
mod conformance;
mod features;
mod in_python;
mod lifecycle;
mod options;
mod trouble;
