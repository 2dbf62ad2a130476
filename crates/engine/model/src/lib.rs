//! Values of the engine: URNs, properties, resource states, snapshots and their file format.
