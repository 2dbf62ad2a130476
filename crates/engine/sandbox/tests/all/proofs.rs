//! The table in docs/sandbox.md names tests that exist.

use std::fs;
use std::path::Path;

#[test]
fn every_named_proof_is_a_test() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = fs::read_to_string(repository.join("docs/sandbox.md")).unwrap();
    let folders = [
        "crates/engine/sandbox/tests/all",
        "crates/cli/tests/engine",
        "crates/cli/tests/runs",
    ];
    let quoted = page.split('`').skip(1).step_by(2);
    let names = quoted.filter_map(|text| text.split_once("::"));
    let mut proofs = 0;
    for (module, test) in names {
        let written = folders.iter().any(|folder| {
            let file = repository.join(folder).join(format!("{module}.rs"));
            let text = fs::read_to_string(file).unwrap_or_default();
            text.contains(&format!("#[test]\nfn {test}()"))
        });
        assert!(written, "{module}::{test} does not exist");
        proofs += 1;
    }
    assert!(proofs > 30, "the table was not found");
}
