//! Differences that the program asked not to show.

use std::collections::BTreeMap;

use nimbus_engine_model::{PathSegment, PropertyPath};

use super::{DiffNode, DiffNodes, PropertyChange};

/// Takes every difference at one of these paths, or below it, out of the tree, and says how many
/// were taken. `*` in a path stands for any key or index.
pub(crate) fn hide(tree: &mut DiffNodes, paths: &[PropertyPath]) -> usize {
    let paths = paths.iter().map(PropertyPath::segments);
    paths.map(|path| in_object(tree, path)).sum()
}

fn in_object(tree: &mut DiffNodes, path: &[PathSegment]) -> usize {
    take(
        tree,
        path,
        |key, segment| matches!(segment, PathSegment::Key(named) if named == key),
    )
}

fn take<K: Ord + Clone>(
    nodes: &mut BTreeMap<K, DiffNode>,
    path: &[PathSegment],
    names: impl Fn(&K, &PathSegment) -> bool,
) -> usize {
    let Some((first, rest)) = path.split_first() else {
        return 0;
    };
    let mut hidden = 0;
    nodes.retain(|key, node| {
        if !first.is_wildcard() && !names(key, first) {
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

fn below(node: &mut DiffNode, path: &[PathSegment]) -> usize {
    match &mut node.change {
        PropertyChange::Object(tree) => in_object(tree, path),
        PropertyChange::Array(items) => take(
            items,
            path,
            |index, segment| matches!(segment, PathSegment::Index(named) if usize::try_from(*named) == Ok(*index)),
        ),
        // What came, went or changed as a whole is shown as a whole.
        PropertyChange::Added(_) | PropertyChange::Removed(_) | PropertyChange::Set { .. } => 0,
    }
}

fn is_empty(node: &DiffNode) -> bool {
    match &node.change {
        PropertyChange::Object(tree) => tree.is_empty(),
        PropertyChange::Array(items) => items.is_empty(),
        PropertyChange::Added(_) | PropertyChange::Removed(_) | PropertyChange::Set { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::structural;
    use nimbus_engine_model::PropertyMap;

    fn tree() -> DiffNodes {
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
            ("top", 1, vec!["list"]),
            ("list[0].a", 1, vec!["list", "top"]),
            ("list[*][\"*\"]", 4, vec!["top"]),
            ("*", 2, vec![]),
            ("list[7]", 0, vec!["list", "top"]),
        ] {
            let mut tree = tree();
            let parsed = path.parse().unwrap();
            assert_eq!(hide(&mut tree, &[parsed]), hidden, "{path}");
            assert_eq!(tree.keys().collect::<Vec<_>>(), left, "{path}");
        }
    }
}
