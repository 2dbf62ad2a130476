//! Property values: what is read is written and reads back as the same text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nimbus_engine_model::format::{read_property, write_property};
use nimbus_engine_model::secrets::Base64Crypter;

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = read_property(bytes, &Base64Crypter) else {
        return;
    };
    let text = write_property(&value, &Base64Crypter).expect("what was read can be written");
    let again = read_property(text.as_bytes(), &Base64Crypter).expect("and read again");
    let second = write_property(&again, &Base64Crypter).expect("and written again");
    assert_eq!(second, text);
});
