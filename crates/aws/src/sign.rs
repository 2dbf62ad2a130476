//! Signature version 4: a hash over the request, keyed by secret, day, region and service.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};

use crate::credentials::AwsCredentials;

/// The parts of a request that a signature covers.
pub(super) struct SignedRequest<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// Names in lower case, sorted, `host` among them.
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    /// `20260102T030405Z`.
    pub(super) time: &'a str,
}

/// The value of the `authorization` header.
pub(super) fn authorization(request: &SignedRequest<'_>, credentials: &AwsCredentials) -> String {
    let SignedRequest {
        region,
        service,
        time,
        ..
    } = request;
    let day = time.get(..8).unwrap_or(time);
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let digest = hex::encode(Sha256::digest(canonical(request, &names).as_bytes()));
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}");

    let secret = format!("AWS4{}", credentials.secret_key.expose_secret());
    let mut key = keyed(secret.as_bytes(), day);
    for part in [*region, *service, "aws4_request"] {
        key = keyed(&key, part);
    }
    let signature = hex::encode(keyed(&key, &to_sign));
    format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        credentials.access_key
    )
}

fn canonical(request: &SignedRequest<'_>, names: &str) -> String {
    let mut text = format!("{}\n{}\n\n", request.method, request.path);
    for (name, value) in request.headers {
        let _ = writeln!(text, "{name}:{}", value.trim());
    }
    let _ = write!(
        text,
        "\n{names}\n{}",
        hex::encode(Sha256::digest(request.body))
    );
    text
}

fn keyed(key: &[u8], text: &str) -> [u8; 32] {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key).expect("this function takes a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The simplest case of the public test suite for this signature.
    #[test]
    fn a_known_request_has_its_known_signature() {
        let credentials = AwsCredentials::new(
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            None,
            "a test".to_owned(),
        );
        let request = SignedRequest {
            method: "GET",
            path: "/",
            headers: &[
                ("host", "example.amazonaws.com"),
                ("x-amz-date", "20150830T123600Z"),
            ],
            body: b"",
            region: "us-east-1",
            service: "service",
            time: "20150830T123600Z",
        };
        assert_eq!(
            authorization(&request, &credentials),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
    }
}
