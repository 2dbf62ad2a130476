//! The deployment core: step generation, execution and refresh, over the engine's ports.
