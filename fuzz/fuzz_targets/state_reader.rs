//! State files: whatever is accepted can be repaired, and written so that it reads back the same and
//! passes the check that stands for the official command line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nimbus_engine_model::format::{
    CheckpointHead, Layout, SecretsMode, check_checkpoint, read_export, read_unverified,
    write_checkpoint, write_export,
};
use nimbus_engine_model::integrity::{repair, verify};
use nimbus_engine_model::secrets::SealedText;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = read_unverified(bytes) else {
        return;
    };
    let Some(deployment) = file.deployment else {
        return;
    };
    let Ok((snapshot, mut cache)) = deployment.open(&SealedText) else {
        return;
    };
    let mut write = |snapshot| {
        let secrets = SecretsMode::Encrypt { crypter: &SealedText, cache: &mut cache };
        write_export(Some(snapshot), secrets, Layout::Compact)
    };
    // Secrets that the file shows have no ciphertext to keep.
    let Ok(written) = write(&snapshot) else {
        return;
    };
    let sound = verify(&snapshot).is_empty();
    match read_export(&written) {
        Ok(_) => assert!(sound, "a broken state was accepted"),
        Err(error) => assert!(!sound, "what was written is refused: {error}"),
    }
    // What is only carried along is as good as whoever wrote it.
    let carries = [&b"extension"[..], b"snippet"]
        .iter()
        .any(|word| bytes.windows(word.len()).any(|part| part == *word));
    if sound && !carries {
        let secrets = SecretsMode::Encrypt { crypter: &SealedText, cache: &mut cache };
        let head = CheckpointHead::default();
        if let Ok(checkpoint) = write_checkpoint(&head, Some(&snapshot), secrets, Layout::Compact) {
            check_checkpoint(&checkpoint).expect("the official command line can read it");
        }
    }
    let mended = repair(&snapshot);
    assert!(!sound || mended.actions.is_empty(), "a sound state was changed");
});
