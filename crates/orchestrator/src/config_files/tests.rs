use super::*;

const MANIFEST: &str = "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {deploymentId: D1, \
                        organization: o, project: shop, template: t}\nspec:\n  environments:\n    \
                        test: {enabled: true, region: eu}\n  stacks:\n    web:\n      enabled: true\n      \
                        config:\n        test:\n          size: 1\n          \"other:key\": x\n";

fn manifest(text: &str) -> (Manifest, Document) {
    let document = Document::parse("m.yaml", text).unwrap();
    (Manifest::read(&document).unwrap(), document)
}

/// The files as they were written, with one text in them replaced.
fn files(from: &str, to: &str) -> ConfigFiles {
    let (manifest, _) = manifest(MANIFEST);
    let files = configs(&manifest).into_iter().map(|(name, text)| {
        assert!(text.contains(from), "{text}");
        let document = Document::parse(&name, &text.replace(from, to)).unwrap();
        (name, document)
    });
    ConfigFiles {
        files: files.collect(),
        written: written_configs(&manifest),
    }
}

fn merged(text: &str, found: &ConfigFiles) -> Result<(Manifest, MergedConfigs)> {
    let (mut manifest, document) = manifest(text);
    let merged = merge_configs(&mut manifest, &document, found)?;
    Ok((manifest, merged))
}

fn test() -> EnvironmentName {
    "test".parse().unwrap()
}

fn value(manifest: &Manifest, key: &str) -> Value {
    let web = &manifest.stacks["web"].config[&test()];
    web.get(key).cloned().unwrap_or(Value::Null)
}

#[test]
fn an_edit_counts_with_its_place_and_comments_stay() {
    let found = files("\"web:size\": 1", "\"web:size\": 2 # ours");
    let (manifest, merged) = merged(MANIFEST, &found).unwrap();
    assert_eq!(value(&manifest, "size"), json!(2));
    assert_eq!(merged.follow, BTreeMap::new());
    let (document, span) = merged
        .overrides
        .place(&"web".parse().unwrap(), test(), "size")
        .unwrap();
    assert_eq!(document.name(), "web.test.yaml");
    assert_eq!(document.source(span), "2");

    // The manifest moves elsewhere: the edit stays and the rest follows.
    let moved = MANIFEST.replace("region: eu", "region: us");
    let (manifest, merged) = self::merged(&moved, &found).unwrap();
    assert_eq!(value(&manifest, "size"), json!(2));
    let text = &merged.follow["web.test.yaml"];
    assert!(text.contains("\"web:size\": 2 # ours"), "{text}");
    assert!(text.contains("\"aws:region\": us"), "{text}");
    assert_eq!(merged.written["web.test.yaml"]["aws:region"], "us");
    assert_eq!(merged.written["web.test.yaml"]["web:size"], 1);
}

#[test]
fn keys_come_and_go_in_either_place() {
    let untouched = files("size", "size");
    let without = MANIFEST.replace("          size: 1\n", "          new: [1]\n");
    let (manifest, merged) = merged(&without, &untouched).unwrap();
    assert_eq!(value(&manifest, "new"), json!([1]));
    let text = &merged.follow["web.test.yaml"];
    assert!(text.contains("web:new") && !text.contains("size"), "{text}");

    let added = files("\"web:size\": 1", "\"web:size\": 1\n  \"web:more\": true");
    let (manifest, _) = self::merged(MANIFEST, &added).unwrap();
    assert_eq!(value(&manifest, "more"), json!(true));

    let removed = files("  \"web:size\": 1\n", "");
    let (manifest, _) = self::merged(MANIFEST, &removed).unwrap();
    assert_eq!(value(&manifest, "size"), Value::Null);
    let error = self::merged(MANIFEST, &files("  \"aws:region\": eu\n", "")).unwrap_err();
    assert!(error.message().contains("aws:region"), "{error}");
}

#[test]
fn a_change_in_both_places_is_refused_with_both_lines() {
    let found = files("\"web:size\": 1", "\"web:size\": 2");
    let both = MANIFEST.replace("size: 1", "size: 3");
    let error = merged(&both, &found).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CONFIG_CONFLICT);
    let words = "`web:size` is changed in both places: web.test.yaml:6 and m.yaml:12";
    assert!(error.message().contains(words), "{error}");
    // The same change in both is none.
    let same = MANIFEST.replace("size: 1", "size: 2");
    let (_, merged) = merged(&same, &found).unwrap();
    assert!(merged.overrides.is_empty() && merged.follow.is_empty());
    assert_eq!(merged.written["web.test.yaml"]["web:size"], 2);
}

#[test]
fn what_nobody_recorded_is_not_guessed() {
    let mut found = files("\"web:size\": 1", "\"web:size\": 2");
    found.written.clear();
    let error = merged(MANIFEST, &found).unwrap_err();
    assert!(error.message().contains("not the same"), "{error}");
    let mut same = files("size", "size");
    same.written.clear();
    let (_, merged) = merged(MANIFEST, &same).unwrap();
    assert_eq!(merged.written.len(), 1);
}

#[test]
fn a_missing_file_is_written_and_one_that_is_not_understood_is_refused() {
    let mut found = files("size", "size");
    found.files.clear();
    let (_, merged) = merged(MANIFEST, &found).unwrap();
    assert!(merged.follow["web.test.yaml"].contains("web:size"));
    let secure = files("\"web:size\": 1", "\"web:size\": {secure: v1:abc}");
    let error = self::merged(MANIFEST, &secure).unwrap_err();
    assert!(
        error.help().unwrap().contains("nimbus secret set"),
        "{error}"
    );
    let bare = files("\"web:size\": 1", "size: 1");
    assert!(self::merged(MANIFEST, &bare).is_err());
}
