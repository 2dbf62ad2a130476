//! No room: a clear refusal, nothing half-written, and work goes on when there is room again.

use std::process::Command;

use nimbus_core::ErrorCode;

use crate::child::ENTRY;
use crate::leases::sayings;
use crate::support::*;

#[tokio::test]
async fn what_does_not_fit_is_refused_and_everything_before_it_stays() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    deploy(&stack, &["base"]).await;
    let state = folder.path().join(".pulumi/stacks/shop/dev.json");
    let before = std::fs::read(&state).unwrap();

    // A file that grows past its limit ends the process unless the signal is ignored, which only
    // a shell can arrange for a process to come.
    let filler = child(ENTRY, "fill", folder.path());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(filler.get_program());
    shell.args(filler.get_args());
    for (name, value) in filler.get_envs() {
        shell.env(name, value.unwrap());
    }
    shell
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut filler = shell.spawn().unwrap();
    let said: Vec<String> = sayings(&mut filler).collect();
    assert!(filler.wait().unwrap().success(), "{said:?}");

    let begun: Vec<&str> = said
        .iter()
        .filter_map(|line| line.strip_prefix("begun "))
        .collect();
    let refused = said
        .iter()
        .find(|line| line.starts_with("refused "))
        .unwrap();
    assert!(refused.contains("no room left"), "{refused}");
    assert!(begun.len() > 5);
    let last = said.last().unwrap();
    assert!(
        last.contains(&ErrorCode::BACKEND_FULL.to_string()),
        "{last}"
    );
    assert_eq!(
        std::fs::read(&state).unwrap(),
        before,
        "the state was touched"
    );
    let scratch = std::fs::read_dir(folder.path().join(".nimbus/tmp")).unwrap();
    assert_eq!(scratch.count(), 0, "half a file was left");

    let session = begin(&stack).await;
    let open = pending(session.snapshot().unwrap());
    assert_eq!(open, begun, "exactly what was acknowledged");
    session.end().await.unwrap();
}
