//! The image catalog: which image of a cloud is an operating system.
//!
//! Nothing is taken, so there is no lease; an answer is looked up every time. Without a version the
//! newest image is answered that is not deprecated. One that is asked for by its version is answered even
//! if it is deprecated, with a note: what runs on it must still be deployable.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::ImageConfig;
use crate::definition::ResolverKind;
use crate::error::ResolverError;
use crate::question::{ResolverAnswer, ResolverQuestion, UnitFacts};

/// An image of a cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageEntry {
    pub cloud: String,
    /// Only in this region; everywhere without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    pub os_family: String,
    pub os_version: String,
    #[serde(default = "x86")]
    pub architecture: String,
    pub image_id: String,
    pub image_name: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// The version to take instead of a deprecated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
}

const X86: &str = "x86_64";

fn x86() -> String {
    X86.to_owned()
}

/// What is shipped: templates of Proxmox by family and version.
const PROXMOX: &[(&str, &str, &str, bool)] = &[
    ("debian", "11", "debian-11-cloud", true),
    ("debian", "12", "debian-12-cloud", false),
    ("debian", "13", "debian-13-cloud", false),
    ("ubuntu", "22.04", "ubuntu-22.04-cloud", false),
    ("ubuntu", "24.04", "ubuntu-24.04-cloud", false),
    ("centos", "9-stream", "centos-9-stream-cloud", false),
    ("rocky", "9", "rocky-9-cloud", false),
    ("windows", "2022", "windows-2022", false),
    ("windows", "2025", "windows-2025", false),
];

/// Images that every installation knows. Entries of an operator or tenant come before them.
pub fn shipped() -> Vec<ImageEntry> {
    let entry = |(family, version, template, deprecated): &(&str, &str, &str, bool)| ImageEntry {
        cloud: "proxmox".to_owned(),
        region: None,
        os_family: (*family).to_owned(),
        os_version: (*version).to_owned(),
        architecture: x86(),
        image_id: (*template).to_owned(),
        image_name: format!("{family} {version}"),
        deprecated: *deprecated,
        replaced_by: None,
    };
    PROXMOX.iter().map(entry).collect()
}

/// Finds an image. Earlier entries of `catalog` are nearer to who asks and win over later ones.
pub fn find(
    question: &ResolverQuestion,
    config: &ImageConfig,
    facts: &UnitFacts,
    catalog: &[ImageEntry],
    owner: &str,
) -> Result<ResolverAnswer, ResolverError> {
    let cloud = config.cloud.as_deref();
    let cloud = cloud.ok_or_else(|| ResolverError::NotConfigured {
        resolver: ResolverKind::ImageCatalog.to_string(),
        key: "cloud".to_owned(),
        scope: format!("{} of {owner}", facts.environment),
    })?;
    let family = question.text("os_family").unwrap_or_default();
    let version = question
        .text("os_version")
        .filter(|version| *version != "latest");
    let architecture = question.text("architecture").unwrap_or(X86);
    let region = question.text("region").or(config.region.as_deref());
    let region = region.unwrap_or(&facts.region);
    let of_cloud = |one: &&ImageEntry| one.cloud == cloud;
    let fits = |one: &&ImageEntry| {
        one.os_family.eq_ignore_ascii_case(family)
            && one.architecture == architecture
            && one.region.as_deref().is_none_or(|own| own == region)
            && match version {
                Some(version) => one.os_version == version,
                None => !one.deprecated,
            }
    };
    // Of equal ones the first stays: the nearest entry, and that of the region before a general one.
    let better = |best: &ImageEntry, one: &ImageEntry| {
        let newer = by_version(&one.os_version, &best.os_version);
        newer == Ordering::Greater
            || (newer == Ordering::Equal && best.region.is_none() && one.region.is_some())
    };
    let found = catalog
        .iter()
        .filter(of_cloud)
        .filter(fits)
        .reduce(|best, one| if better(best, one) { one } else { best });
    let Some(found) = found else {
        let mut known: Vec<_> = catalog
            .iter()
            .filter(of_cloud)
            .map(|one| {
                let mark = if one.deprecated { " (deprecated)" } else { "" };
                format!("{} {}{mark}", one.os_family, one.os_version)
            })
            .collect();
        known.sort();
        known.dedup();
        let known = match known.as_slice() {
            [] => format!("nothing for {cloud}"),
            known => known.join(", "),
        };
        let version = version.map_or(String::new(), |version| format!(" {version}"));
        let place = if region.is_empty() {
            String::new()
        } else {
            format!(" in {region}")
        };
        return Err(ResolverError::ImageUnknown {
            wanted: format!("{family}{version} on {architecture}, {cloud}{place}"),
            known,
            owner: owner.to_owned(),
        });
    };
    let id = match &config.storage_pool {
        Some(pool) => format!("{pool}:{}", found.image_id),
        None => found.image_id.clone(),
    };
    let mut answer = ResolverAnswer::looked_up(Map::from_iter([
        ("image_id".to_owned(), Value::from(id)),
        ("image_name".to_owned(), found.image_name.clone().into()),
    ]));
    if found.deprecated {
        let instead = found.replaced_by.as_deref();
        let instead = instead.map_or(String::new(), |next| format!("; take {next} instead"));
        answer.notes.push(format!(
            "the image {} is deprecated{instead}",
            found.image_name
        ));
    }
    Ok(answer)
}

/// 9 before 10, and 22.04 before 24.04.
fn by_version(one: &str, other: &str) -> Ordering {
    let parts = |text: &str| -> Vec<(u64, String)> {
        let pieces = text.split(['.', '-']);
        pieces
            .map(|piece| (piece.parse().unwrap_or(0), piece.to_owned()))
            .collect()
    };
    parts(one).cmp(&parts(other))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(inputs: Value, region: &str, more: &[Value]) -> Result<ResolverAnswer, String> {
        let config: ImageConfig =
            serde_json::from_value(json!({"cloud": "proxmox", "storage_pool": "local"})).unwrap();
        let inputs = inputs.as_object().unwrap().clone();
        let question = ResolverQuestion::new(ResolverKind::ImageCatalog, inputs).unwrap();
        let facts = UnitFacts {
            region: region.to_owned(),
            ..UnitFacts::default()
        };
        let own = more
            .iter()
            .map(|one| serde_json::from_value(one.clone()).unwrap());
        let catalog: Vec<ImageEntry> = own.chain(shipped()).collect();
        find(&question, &config, &facts, &catalog, "operator").map_err(|error| error.to_string())
    }

    fn id(answer: Result<ResolverAnswer, String>) -> String {
        answer.unwrap().outputs["image_id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn the_shipped_catalog_has_the_five_families() {
        for family in ["debian", "ubuntu", "centos", "rocky", "windows"] {
            assert!(
                ask(json!({"os_family": family}), "", &[]).is_ok(),
                "{family}"
            );
        }
        assert_eq!(
            id(ask(json!({"os_family": "debian"}), "", &[])),
            "local:debian-13-cloud"
        );
        let twelve = json!({"os_family": "Debian", "os_version": "12"});
        assert_eq!(id(ask(twelve, "", &[])), "local:debian-12-cloud");
    }

    #[test]
    fn a_deprecated_image_is_answered_only_by_its_version_and_says_so() {
        let old = ask(json!({"os_family": "debian", "os_version": "11"}), "", &[]).unwrap();
        assert!(old.notes[0].contains("deprecated"), "{:?}", old.notes);
        let only = json!({"cloud": "proxmox", "os_family": "beos", "os_version": "5",
            "image_id": "beos", "image_name": "BeOS", "deprecated": true, "replaced_by": "haiku"});
        let error = ask(
            json!({"os_family": "beos"}),
            "",
            std::slice::from_ref(&only),
        )
        .unwrap_err();
        assert!(error.contains("beos 5 (deprecated)"), "{error}");
        let five = json!({"os_family": "beos", "os_version": "5"});
        let answer = ask(five, "", &[only]).unwrap();
        assert!(answer.notes[0].contains("take haiku"), "{:?}", answer.notes);
    }

    #[test]
    fn the_region_and_the_nearest_entry_win() {
        let image = |region: Value, id: &str| {
            json!({"cloud": "proxmox", "region": region, "os_family": "debian", "os_version": "13",
                "image_id": id, "image_name": id})
        };
        let own = [image(Value::Null, "mine"), image(json!("eu"), "mine-eu")];
        let debian = || json!({"os_family": "debian"});
        assert_eq!(id(ask(debian(), "us", &own)), "local:mine");
        assert_eq!(id(ask(debian(), "eu", &own)), "local:mine-eu");
        let chosen = json!({"os_family": "debian", "region": "eu"});
        assert_eq!(id(ask(chosen, "us", &own)), "local:mine-eu");
    }

    #[test]
    fn an_unknown_system_says_what_there_is_and_whose() {
        let error = ask(json!({"os_family": "plan9"}), "eu", &[]).unwrap_err();
        assert!(error.contains("plan9 on x86_64, proxmox in eu"), "{error}");
        assert!(
            error.contains("catalog of operator") && error.contains("debian 12"),
            "{error}"
        );
        let arm = json!({"os_family": "debian", "architecture": "arm64"});
        assert!(ask(arm, "", &[]).unwrap_err().contains("arm64"));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(by_version("10", "9"), Ordering::Greater);
        assert_eq!(by_version("22.04", "24.04"), Ordering::Less);
        assert_eq!(by_version("9-stream", "9"), Ordering::Greater);
    }
}
