//! Differences that the program asked not to show.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Change, Node, ObjectDiff};

const EVERY: &str = "*";

/// Takes every difference at one of these paths, or below it, out of the tree, and says how many
/// were taken. A path is a list of keys and indices; `*` stands for any of them.
pub(crate) fn hide(tree: &mut ObjectDiff, paths: &[Value]) -> usize {
    let paths = paths.iter().filter_map(Value::as_array);
    paths.map(|path| in_object(tree, path)).sum()
}

fn in_object(tree: &mut ObjectDiff, path: &[Value]) -> usize {
    take(tree, path, |key, segment| {
        segment.as_str() == Some(key.as_str())
    })
}

fn take<K: Ord + Clone>(
    nodes: &mut BTreeMap<K, Node>,
    path: &[Value],
    names: impl Fn(&K, &Value) -> bool,
) -> usize {
    let Some((first, rest)) = path.split_first() else {
        return 0;
    };
    let mut hidden = 0;
    nodes.retain(|key, node| {
        if first.as_str() != Some(EVERY) && !names(key, first) {
            return true;
        }
        if rest.is_empty() {
            hidden += 1;
            return false;
        }
        hidden += below(node, rest);
        !is_empty(node)
    });
    hidden
}

fn below(node: &mut Node, path: &[Value]) -> usize {
    match &mut node.change {
        Change::Object(tree) => in_object(tree, path),
        Change::Array(items) => take(items, path, |index, segment| {
            segment.as_u64() == u64::try_from(*index).ok()
        }),
        // What came, went or changed as a whole is shown as a whole.
        Change::Added(_) | Change::Removed(_) | Change::Set { .. } => 0,
    }
}

fn is_empty(node: &Node) -> bool {
    match &node.change {
        Change::Object(tree) => tree.is_empty(),
        Change::Array(items) => items.is_empty(),
        Change::Added(_) | Change::Removed(_) | Change::Set { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_model::PropertyMap;
    use serde_json::json;

    use super::*;
    use crate::diff::structural;

    fn tree() -> ObjectDiff {
        let map = |size: f64| -> PropertyMap {
            let inner: PropertyMap =
                [("a".to_owned(), size.into()), ("b".to_owned(), size.into())].into();
            [
                ("top".to_owned(), size.into()),
                (
                    "list".to_owned(),
                    vec![inner.clone().into(), inner.into()].into(),
                ),
            ]
            .into()
        };
        structural(&map(1.0), &map(2.0))
    }

    #[test]
    fn paths_are_taken_out_with_the_containers_that_they_leave_empty() {
        for (path, hidden, left) in [
            (json!(["top"]), 1, vec!["list"]),
            (json!(["list", 0, "a"]), 1, vec!["list", "top"]),
            (json!(["list", "*", "*"]), 4, vec!["top"]),
            (json!(["*"]), 2, vec![]),
            (json!(["list", 7]), 0, vec!["list", "top"]),
            (json!("top"), 0, vec!["list", "top"]),
        ] {
            let mut tree = tree();
            assert_eq!(
                hide(&mut tree, std::slice::from_ref(&path)),
                hidden,
                "{path}"
            );
            assert_eq!(tree.keys().collect::<Vec<_>>(), left, "{path}");
        }
    }
}
