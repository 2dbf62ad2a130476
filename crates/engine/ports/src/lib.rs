//! The traits through which the engine meets the world: providers, programs, journal, events.
