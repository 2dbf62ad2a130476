//! Journals: lines are read or refused, and replaying what was read never panics.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use nimbus_engine_model::journal::{decode, encode};
use nimbus_engine_model::secrets::Base64Crypter;
use nimbus_engine_model::{ResourceState, Snapshot, Urn, replay};

fn base() -> Snapshot {
    let resource = |name| {
        let urn = Urn::new("dev", "shop", None, "pkg:mod:Res", name);
        Arc::new(ResourceState::new(urn, true))
    };
    Snapshot { resources: vec![resource("a"), resource("b")], ..Snapshot::default() }
}

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|byte| *byte == b'\n');
    let entries: Vec<_> =
        lines.map_while(|line| decode(line, &Base64Crypter).ok()).collect();
    for entry in &entries {
        let line = encode(entry, &Base64Crypter).expect("what was read can be written");
        decode(line.as_bytes(), &Base64Crypter).expect("what was written can be read");
    }
    let _ = replay(&Snapshot::default(), &entries);
    let _ = replay(&base(), &entries);
});
