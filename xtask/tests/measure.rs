//! What a measured program started and left behind is part of its cost.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::process::Command;

#[test]
fn processes_that_outlive_the_program_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let busy = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done";
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["measure", "--log"])
        .arg(folder.path().join("log"))
        .args(["--", "sh", "-c", "setsid sh -c \"$1\" & exit 0", "sh", busy])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let sample: serde_json::Value = serde_json::from_str(&text).unwrap();
    // A million rounds take a tenth of a second on the fastest machine, and the program itself
    // next to nothing.
    assert!(sample["cpu_ms"].as_f64().unwrap() > 60.0, "{sample}");
}
