//! The objects that stand for values which JSON does not have, in files and on the wire.
//!
//! Such an object carries [`KEY`] with one of the signatures below.

pub const KEY: &str = "4dabf18193072939515e22adb298388d";

pub const SECRET: &str = "1b47061264138c4ac30d75fd1eb44270";
pub const RESOURCE_REFERENCE: &str = "5cf8f73096256a8f31e491e813e4eb8e";
pub const OUTPUT: &str = "d0e6a833031e9bbcd3f4e8bde6ca49a4";
pub const ASSET: &str = "c44067f5952c0a294b673a41bacd8c17";
pub const ARCHIVE: &str = "0def7320c3a5731c473e5ecbe6d01bc7";
pub const BYTES: &str = "803fd3297a5875dc03ca845dda5d2a98";
/// A float that JSON cannot express, by its bits. Files only: the wire has such floats.
pub const FLOAT: &str = "8ad145fe-0d11-4827-bfd7-1abcbf086f5c";
