//! The server as a process would run it: started, asked, hurt and stopped.

mod faults;
mod http;
mod start;
mod support;
