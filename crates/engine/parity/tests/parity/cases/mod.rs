//! The cases, by what they are about.

mod adoption;
mod conformance;
mod features;
mod handed_on;
mod in_python;
mod lifecycle;
mod options;
mod trouble;
