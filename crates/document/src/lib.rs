//! YAML and JSON input with source positions, limits and precise errors.
