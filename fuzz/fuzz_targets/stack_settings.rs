//! `Pulumi.<stack>.yaml`: whatever is accepted can be edited, and says afterwards what it was told.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use nimbus_engine_backend::project::{ConfigKey, ConfigValue, StackSettings};

fuzz_target!(|text: String| {
    let path = Path::new("/p/Pulumi.dev.yaml");
    let Ok(before) = StackSettings::parse(path, "shop", text) else {
        return;
    };
    let Ok(key) = ConfigKey::parse("shop:fuzzed") else {
        return;
    };
    let mut settings = before.clone();
    let value = ConfigValue::Text("value".to_owned());
    // A file that cannot be edited without risk is refused and stays as it is.
    if settings.set(&key, &[], value.clone()).is_err() {
        assert_eq!(settings.text(), before.text());
        return;
    }
    let read = StackSettings::parse(path, "shop", settings.text().to_owned());
    let read = read.expect("what was edited can be read");
    assert_eq!(read.config.get(&key, &[]), Some(&value));
    assert_eq!(read.encryption_salt, before.encryption_salt);
    assert_eq!(read.encrypted_key, before.encrypted_key);
});
