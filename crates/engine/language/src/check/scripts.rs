//! What runs in the process that checks.

use std::io;
use std::path::PathBuf;

use nimbus_engine_transpile::{CacheKey, TranslationCache};

use crate::node::CODE;

const SCRIPTS: [(&str, &str); 5] = [
    ("check.cjs", include_str!("../node/scripts/check/check.cjs")),
    ("code.cjs", CODE),
    (
        "outline.cjs",
        include_str!("../node/scripts/check/outline.cjs"),
    ),
    ("views.cjs", include_str!("../node/scripts/check/views.cjs")),
    ("whole.cjs", include_str!("../node/scripts/check/whole.cjs")),
];

/// Puts the scripts where Node.js can read them, in a folder of their own, and says which is run.
pub(super) fn place(cache: &TranslationCache) -> io::Result<PathBuf> {
    let folder = cache.folder(&SCRIPTS)?;
    Ok(folder.join("check.cjs"))
}

/// Differs when they could find out something else.
pub(super) fn key() -> CacheKey {
    CacheKey::of(SCRIPTS.iter().map(|(_, text)| text.as_bytes()))
}
