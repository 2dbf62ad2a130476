//! Launchers for Node.js and Python programs.
