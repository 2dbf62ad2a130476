//! Property paths: what is read is shown, and shown text is stable.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nimbus_engine_model::PropertyPath;

fuzz_target!(|text: &str| {
    let Ok(path) = PropertyPath::parse(text) else {
        return;
    };
    // A key that ends with a backslash has no quoted form; everything else reads back.
    let shown = path.to_string();
    if !shown.contains('\\') {
        assert_eq!(PropertyPath::parse(&shown), Ok(path));
    }
});
