//! Small texts under a key that never leaves the key management service.
//!
//! Whoever keeps many secrets encrypts them under a key of their own, and only that key here.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::Aws;
use crate::error::AwsError;
use crate::transport::{AwsService, RequestBody};

/// A key of the service, and what every text under it is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterKey {
    /// An id, an ARN, or `alias/<name>`.
    pub id: String,
    pub region: String,
    /// Not secret; the same must be given to decrypt.
    pub context: BTreeMap<String, String>,
}

impl Aws {
    pub async fn encrypt(&self, key: &MasterKey, plaintext: &[u8]) -> Result<Vec<u8>, AwsError> {
        let text = Zeroizing::new(STANDARD.encode(plaintext));
        let body = request("Encrypt", key, json!({ "Plaintext": *text }));
        let answer = self.ask(&key.region, AwsService::Kms, body).await?;
        bytes("Encrypt", &answer, "CiphertextBlob").map(|bytes| bytes.to_vec())
    }

    pub async fn decrypt(
        &self,
        key: &MasterKey,
        ciphertext: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, AwsError> {
        let blob = STANDARD.encode(ciphertext);
        let body = request("Decrypt", key, json!({ "CiphertextBlob": blob }));
        let answer = Zeroizing::new(self.ask(&key.region, AwsService::Kms, body).await?);
        bytes("Decrypt", &answer, "Plaintext")
    }
}

fn request(action: &str, key: &MasterKey, mut document: Value) -> RequestBody {
    document["KeyId"] = key.id.as_str().into();
    if !key.context.is_empty() {
        document["EncryptionContext"] = json!(key.context);
    }
    RequestBody::json(&format!("TrentService.{action}"), &document)
}

/// The field of an answer that holds bytes.
fn bytes(action: &str, answer: &str, field: &str) -> Result<Zeroizing<Vec<u8>>, AwsError> {
    #[derive(Deserialize)]
    struct KmsResponse(BTreeMap<String, Value>);
    let not_understood = |problem: String| AwsError::NotUnderstood {
        action: action.to_owned(),
        problem,
    };
    // Words of a parser could quote what it read.
    let KmsResponse(fields) =
        serde_json::from_str(answer).map_err(|_| not_understood("it is not JSON".to_owned()))?;
    fields
        .get(field)
        .and_then(Value::as_str)
        .and_then(|text| STANDARD.decode(text).ok())
        .map(Zeroizing::new)
        .ok_or_else(|| not_understood(format!("it has no {field}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_understood_is_not_quoted() {
        assert_eq!(
            **bytes("Decrypt", r#"{"Plaintext":"aGk="}"#, "Plaintext").unwrap(),
            *b"hi"
        );
        for answer in [
            "hush",
            r#"{"Plaintext":"hush!"}"#,
            r#"{"Other":"hush"}"#,
            r#"{"Plaintext":7}"#,
        ] {
            let error = bytes("Decrypt", answer, "Plaintext")
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("Decrypt") && !error.contains("hush"),
                "{error}"
            );
        }
    }
}
