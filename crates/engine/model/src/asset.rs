//! Hashes of assets and archives.

/// Hash of a text asset that has no text.
pub(crate) const EMPTY_TEXT_HASH: &str =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
