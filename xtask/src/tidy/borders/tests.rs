use super::*;

fn package(name: &str, depends_on: &[&str]) -> Package {
    Package {
        name: name.to_owned(),
        manifest: format!("{name}/Cargo.toml"),
        depends_on: depends_on.iter().map(|&name| name.to_owned()).collect(),
    }
}

#[test]
fn allowed_edges_pass() {
    let packages = [
        package("nimbus-engine-deploy", &["nimbus-engine-ports", "serde"]),
        package("nimbus-engine-plugin", &["nimbus-engine-proto", "tonic"]),
    ];
    assert_eq!(check(&packages), []);
}

#[test]
fn an_edge_that_points_upwards_is_found() {
    let findings = check(&[package("nimbus-engine-deploy", &["nimbus-engine-plugin"])]);
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0]
            .what
            .contains("may not depend on nimbus-engine-plugin")
    );
}

#[test]
fn a_library_outside_its_crates_is_found() {
    for (name, library) in [
        ("nimbus-engine-deploy", "tonic"),
        ("nimbus-engine-model", "sqlx"),
        ("nimbus-engine-ports", "reqwest"),
        ("nimbus-engine-operations", "clap"),
    ] {
        let findings = check(&[package(name, &[library])]);
        assert_eq!(findings.len(), 1, "{name} {library}");
    }
}

#[test]
fn a_crate_without_a_place_is_found() {
    let findings = check(&[package("nimbus-new", &[])]);
    assert!(findings[0].what.contains("no place"), "{findings:?}");
}

#[test]
fn a_crate_that_the_map_lacks_is_found() {
    let packages = [package("a", &[]), package("b", &[])];
    let findings = check_map(&packages, "| `a` | does a |");
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].what, "the map does not name b");
}

#[test]
fn the_table_itself_has_no_cycle_and_no_stranger() {
    for (position, (name, allowed)) in EDGES.iter().enumerate() {
        for edge in *allowed {
            let target = EDGES.iter().position(|(own, _)| own == edge);
            assert!(
                target.is_some_and(|target| target < position),
                "{name} -> {edge}"
            );
        }
    }
}
