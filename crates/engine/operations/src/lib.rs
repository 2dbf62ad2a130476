//! Operations on a program: preview, up, destroy, refresh, import; assembles the engine's parts.
