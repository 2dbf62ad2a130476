use super::*;

fn shipment(files: &[(&str, &str)]) -> Shipment {
    let file = |(path, text): &(&str, &str)| ((*path).to_owned(), text.as_bytes().to_vec());
    Shipment {
        files: files.iter().map(file).collect(),
    }
}

fn entry(path: &str, text: &str) -> WorkspaceEntry {
    WorkspaceEntry {
        path: path.to_owned(),
        digest: Shipment::digest(text.as_bytes()),
        size: text.len() as u64,
    }
}

#[test]
fn only_what_changed_is_sent_and_other_peoples_programs_stay() {
    let here = shipment(&[("stacks/a/x", "1"), ("stacks/a/y", "2")]);
    let there = [
        entry("stacks/a/x", "1"),
        entry("stacks/a/y", "old"),
        entry("stacks/a/z", "stale"),
        entry("stacks/theirs/x", "3"),
    ];
    let change = change_for(&here, &there, "t".to_owned(), false);
    assert_eq!(change.put.keys().collect::<Vec<_>>(), ["stacks/a/y"]);
    assert_eq!(change.remove, ["stacks/a/z"]);
    let pruned = change_for(&here, &there, "t".to_owned(), true);
    assert_eq!(pruned.remove, ["stacks/a/z", "stacks/theirs/x"]);
}

#[test]
fn what_is_shipped_is_not_sent_and_takes_the_place_of_a_change() {
    let (path, content) = nimbus_library::files()[0];
    let text = String::from_utf8_lossy(content);
    let change = change_for(&shipment(&[(path, &text)]), &[], "t".to_owned(), false);
    assert!(change.put.is_empty(), "{change:?}");
    let there = [entry(path, "changed")];
    let change = change_for(&shipment(&[(path, &text)]), &there, "t".to_owned(), false);
    assert_eq!(change.remove, [path]);
}
