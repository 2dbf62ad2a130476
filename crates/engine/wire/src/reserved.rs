//! Strings that stand for what is not known yet, and hashes of what is empty.

/// The one that is written. Peers may send any of [`UNKNOWNS`]; their types are not kept.
pub(crate) const UNKNOWN: &str = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

/// Unknown string, bool, number, array, asset, archive and object.
const UNKNOWNS: [&str; 7] = [
    UNKNOWN,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "030794c1-ac77-496b-92df-f27374a8bd58",
    "e48ece36-62e2-4504-bad9-02848725956a",
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
];

pub(crate) fn is_unknown(text: &str) -> bool {
    UNKNOWNS.contains(&text)
}

/// Hash of an asset without bytes.
pub(crate) const EMPTY_ASSET_HASH: &str =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// Hash of an archive without members.
pub(crate) const EMPTY_ARCHIVE_HASH: &str =
    "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";
