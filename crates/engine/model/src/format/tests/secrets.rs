//! Secrets keep their ciphertext, and only their own.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::*;
use crate::resource::ResourceState;
use crate::secrets::{
    Base64Crypter, CiphertextCache, CryptError, Crypter, NoSecrets, SealedText, SymmetricCrypter,
};
use crate::snapshot::Snapshot;
use crate::test_support::map;

fn crypter() -> SymmetricCrypter {
    SymmetricCrypter::new(&Zeroizing::new([9; 32]))
}

fn snapshot(inputs: &[(&str, Value)]) -> Snapshot {
    let resource = |(name, inputs): &(&str, Value)| {
        let mut resource = ResourceState::new(crate::test_support::urn(name), false);
        resource.inputs = map(inputs.clone());
        Arc::new(resource)
    };
    Snapshot {
        resources: inputs.iter().map(resource).collect(),
        ..Snapshot::default()
    }
}

fn written(snapshot: &Snapshot, crypter: &dyn Crypter, cache: &mut CiphertextCache) -> Vec<u8> {
    let secrets = SecretsMode::Encrypt { crypter, cache };
    write_export(Some(snapshot), secrets, Layout::Compact).unwrap()
}

/// The ciphertext of each resource's input `s`.
fn ciphertexts(file: &[u8]) -> Vec<String> {
    let file: Value = serde_json::from_slice(file).unwrap();
    let resources = file["deployment"]["resources"].as_array().unwrap();
    let text = |resource: &Value| {
        resource["inputs"]["s"]["ciphertext"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    resources.iter().map(text).collect()
}

#[test]
fn a_secret_that_did_not_change_keeps_its_ciphertext_and_a_changed_one_does_not() {
    let (crypter, mut cache) = (crypter(), CiphertextCache::default());
    let first = written(
        &snapshot(&[("a", json!({"s": {"$secret": 1}}))]),
        &crypter,
        &mut cache,
    );
    let (same, mut cache) = read_unverified(&first)
        .unwrap()
        .deployment
        .unwrap()
        .open(&crypter)
        .unwrap();
    assert_eq!(written(&same, &crypter, &mut cache), first);
    let changed = snapshot(&[("a", json!({"s": {"$secret": 2}}))]);
    let second = written(&changed, &crypter, &mut cache);
    assert_ne!(ciphertexts(&second), ciphertexts(&first));
    assert_eq!(
        written(&changed, &crypter, &mut cache),
        second,
        "from now on it keeps that one"
    );
}

#[test]
fn equal_secrets_of_two_resources_have_unrelated_ciphertexts() {
    let (crypter, mut cache) = (crypter(), CiphertextCache::default());
    let both = snapshot(&[
        ("a", json!({"s": {"$secret": 1}})),
        ("b", json!({"s": {"$secret": 1}})),
    ]);
    let file = written(&both, &crypter, &mut cache);
    let texts = ciphertexts(&file);
    assert_ne!(texts[0], texts[1]);
    assert_eq!(
        written(&both, &crypter, &mut cache),
        file,
        "and each keeps its own"
    );
}

#[test]
fn a_resource_that_is_there_twice_keeps_both_ciphertexts() {
    let (crypter, mut cache) = (crypter(), CiphertextCache::default());
    let twice = snapshot(&[
        ("a", json!({"s": {"$secret": 1}})),
        ("a", json!({"s": {"$secret": 1}})),
    ]);
    let file = written(&twice, &crypter, &mut cache);
    let (read, mut cache) = read_unverified(&file)
        .unwrap()
        .deployment
        .unwrap()
        .open(&crypter)
        .unwrap();
    assert_eq!(written(&read, &crypter, &mut cache), file);
}

#[test]
fn a_secret_is_the_json_of_its_value_with_inner_secrets_in_the_open() {
    let nested = snapshot(&[("a", json!({"s": {"$secret": ["<", {"$secret": "x"}]}}))]);
    let mut cache = CiphertextCache::default();
    let file = written(&nested, &Base64Crypter, &mut cache);
    let plaintext = Base64Crypter.decrypt(&ciphertexts(&file)[0]).unwrap();
    assert_eq!(
        *plaintext,
        concat!(
            r#"["\u003c",{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","#,
            r#""ciphertext":"\"x\""}]"#
        )
    );
    let deployment = read_unverified(&file).unwrap().deployment.unwrap();
    assert!(deployment.has_secrets());
    let (read, _) = deployment.open(&Base64Crypter).unwrap();
    assert_eq!(read.resources, nested.resources);
}

#[test]
fn shown_secrets_are_plaintext_and_can_be_read_without_a_key() {
    let nested = snapshot(&[("a", json!({"s": {"$secret": [{"$secret": "x"}]}}))]);
    let file = write_export(Some(&nested), SecretsMode::Show, Layout::Compact).unwrap();
    let text = String::from_utf8(file.clone()).unwrap();
    assert!(
        text.contains(r#""plaintext":"[{\"4dabf18193072939515e22adb298388d\":"#),
        "{text}"
    );
    assert!(!text.contains("ciphertext"), "{text}");
    let deployment = read_unverified(&file).unwrap().deployment.unwrap();
    assert!(!deployment.has_secrets());
    let (read, cache) = deployment.open(&NoSecrets).unwrap();
    assert_eq!(read.resources, nested.resources);
    assert!(cache.is_empty());
}

#[test]
fn a_state_can_be_rewritten_without_its_key() {
    let (crypter, mut cache) = (crypter(), CiphertextCache::default());
    let file = written(
        &snapshot(&[("a", json!({"s": {"$secret": 1}}))]),
        &crypter,
        &mut cache,
    );
    let (sealed, mut cache) = read_unverified(&file)
        .unwrap()
        .deployment
        .unwrap()
        .open(&SealedText)
        .unwrap();
    assert_eq!(written(&sealed, &SealedText, &mut cache), file);
    assert_eq!(
        written(&sealed, &SealedText, &mut CiphertextCache::default()),
        file
    );
}

#[test]
fn a_secret_that_cannot_be_opened_is_named() {
    let (crypter, mut cache) = (crypter(), CiphertextCache::default());
    let plain = ("a", json!({"p": 1}));
    let file = written(
        &snapshot(&[plain, ("b", json!({"s": {"t": [{"$secret": 1}]}}))]),
        &crypter,
        &mut cache,
    );
    let other = SymmetricCrypter::new(&Zeroizing::new([1; 32]));
    let open = |crypter: &dyn Crypter| {
        read_unverified(&file)
            .unwrap()
            .deployment
            .unwrap()
            .open(crypter)
            .unwrap_err()
    };
    let error = |error| StateError::Secret {
        place: StatePart::Resource {
            index: 1,
            urn: Some(urn("b")),
        },
        path: "inputs.s.t[0]".parse().unwrap(),
        error,
    };
    assert_eq!(open(&other), error(CryptError::Forged));
    assert_eq!(open(&NoSecrets), error(CryptError::NoProvider));
    let unsealable = SecretsMode::Encrypt {
        crypter: &NoSecrets,
        cache: &mut CiphertextCache::default(),
    };
    let secret = snapshot(&[
        ("a", json!({})),
        ("b", json!({"s": {"t": [{"$secret": 1}]}})),
    ]);
    assert_eq!(
        write_export(Some(&secret), unsealable, Layout::Compact).unwrap_err(),
        error(CryptError::NoProvider)
    );
}
