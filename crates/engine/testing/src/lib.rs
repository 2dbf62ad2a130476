//! Test rig of the engine: programmable provider, programs as data, golden event streams.
