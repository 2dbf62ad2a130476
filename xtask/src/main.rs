//! Developer commands of this repository.
fn main() {}
