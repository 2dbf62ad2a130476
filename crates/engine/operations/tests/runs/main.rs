//! Operations from end to end, with a real backend on disk and everything else in memory.

mod basics;
mod cancelling;
mod interruption;
mod keys;
mod kills;
mod plans;
mod support;
