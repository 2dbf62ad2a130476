//! What AWS says, as values.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::AwsError;

/// What a question found.
#[derive(Clone, PartialEq)]
pub enum AwsValue {
    Value(Value),
    /// A value that nobody may see.
    Secret(Value),
    /// AWS answered that there is no such thing.
    Absent,
}

impl fmt::Debug for AwsValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => f.debug_tuple("Value").field(value).finish(),
            Self::Secret(_) => f.write_str("Secret(…)"),
            Self::Absent => f.write_str("Absent"),
        }
    }
}

#[derive(Deserialize)]
struct Set<T> {
    #[serde(default = "Vec::new")]
    item: Vec<T>,
}

/// The newest image. Images of one second are told apart by name, which holds a date.
pub(super) fn image(text: &str) -> Result<AwsValue, AwsError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DescribeImagesResponse {
        images_set: Set<Image>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Image {
        image_id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        creation_date: String,
    }
    let answer: DescribeImagesResponse = xml("DescribeImages", text)?;
    let newest = answer
        .images_set
        .item
        .into_iter()
        .max_by_key(|image| (image.creation_date.clone(), image.name.clone()));
    Ok(newest.map_or(AwsValue::Absent, |image| {
        AwsValue::Value(image.image_id.into())
    }))
}

/// Names of zones in order; fewer than were asked for count as absent.
pub(super) fn zones(text: &str, count: Option<usize>) -> Result<AwsValue, AwsError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DescribeZonesResponse {
        availability_zone_info: Set<Zone>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Zone {
        zone_name: String,
    }
    let answer: DescribeZonesResponse = xml("DescribeAvailabilityZones", text)?;
    let mut names: Vec<String> = answer
        .availability_zone_info
        .item
        .into_iter()
        .map(|zone| zone.zone_name)
        .collect();
    names.sort();
    if names.is_empty() || count.is_some_and(|count| count > names.len()) {
        return Ok(AwsValue::Absent);
    }
    names.truncate(count.unwrap_or(usize::MAX));
    Ok(AwsValue::Value(names.into()))
}

pub(super) fn parameter(text: &str) -> Result<AwsValue, AwsError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct GetParameterResponse {
        parameter: Parameter,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Parameter {
        r#type: String,
        value: String,
    }
    let GetParameterResponse { parameter } = json("GetParameter", text)?;
    Ok(match parameter.r#type.as_str() {
        "SecureString" => AwsValue::Secret(parameter.value.into()),
        "StringList" => AwsValue::Value(parameter.value.split(',').collect()),
        _ => AwsValue::Value(parameter.value.into()),
    })
}

pub(super) fn secret(text: &str, member: Option<&str>) -> Result<AwsValue, AwsError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct GetSecretResponse {
        secret_string: Option<String>,
        /// Base64, and left so: configuration is text.
        secret_binary: Option<String>,
    }
    let answer: GetSecretResponse = json("GetSecretValue", text)?;
    let Some(text) = answer.secret_string.or(answer.secret_binary) else {
        return Ok(AwsValue::Absent);
    };
    let Some(member) = member else {
        return Ok(AwsValue::Secret(text.into()));
    };
    // The parser's own message could quote the secret.
    let Ok(Value::Object(mut members)) = serde_json::from_str(&text) else {
        return Err(not_understood(
            "GetSecretValue",
            format!("the secret is no JSON object, so it has no member `{member}`"),
        ));
    };
    Ok(members
        .remove(member)
        .map_or(AwsValue::Absent, AwsValue::Secret))
}

/// Account and ARN.
pub(super) fn identity(text: &str) -> Result<(String, String), AwsError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct CallerIdentityResponse {
        get_caller_identity_result: CallerIdentityResult,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct CallerIdentityResult {
        account: String,
        arn: String,
    }
    let answer: CallerIdentityResponse = xml("GetCallerIdentity", text)?;
    let CallerIdentityResult { account, arn } = answer.get_caller_identity_result;
    Ok((account, arn))
}

/// Code and message of a refusal, in whichever of the three forms it came.
pub(super) fn refusal(text: &str) -> Option<(String, String)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct AwsFault {
        code: String,
        #[serde(default)]
        message: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Xml {
        error: Option<AwsFault>,
        errors: Option<Nested>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Nested {
        error: AwsFault,
    }
    #[derive(Deserialize)]
    struct Json {
        #[serde(rename = "__type")]
        kind: String,
        message: Option<String>,
        /// Some services spell it so, some send both.
        #[serde(rename = "Message")]
        capital: Option<String>,
    }
    if let Ok(fault) = serde_json::from_str::<Json>(text) {
        let code = fault.kind.rsplit('#').next().unwrap_or_default().to_owned();
        let message = fault.message.or(fault.capital).unwrap_or_default();
        return Some((code, message));
    }
    let fault: Xml = quick_xml::de::from_str(text).ok()?;
    let fault = fault
        .error
        .or_else(|| fault.errors.map(|nested| nested.error))?;
    Some((fault.code, fault.message))
}

fn xml<T: DeserializeOwned>(action: &str, text: &str) -> Result<T, AwsError> {
    quick_xml::de::from_str(text).map_err(|error| not_understood(action, error.to_string()))
}

/// Without the parser's message: answers of this form may hold secrets.
fn json<T: DeserializeOwned>(action: &str, text: &str) -> Result<T, AwsError> {
    serde_json::from_str(text).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        not_understood(action, place)
    })
}

fn not_understood(action: &str, problem: String) -> AwsError {
    AwsError::NotUnderstood {
        action: action.to_owned(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_image_wins() {
        let item = |id: &str, date: &str| {
            format!(
                "<item><imageId>{id}</imageId><name>n</name><creationDate>{date}</creationDate></item>"
            )
        };
        let text = format!(
            "<DescribeImagesResponse><imagesSet>{}{}{}</imagesSet></DescribeImagesResponse>",
            item("ami-1", "2024-01-01T00:00:00.000Z"),
            item("ami-3", "2026-01-01T00:00:00.000Z"),
            item("ami-2", "2025-01-01T00:00:00.000Z"),
        );
        assert_eq!(image(&text).unwrap(), AwsValue::Value(json!("ami-3")));
        let none = "<DescribeImagesResponse><imagesSet/></DescribeImagesResponse>";
        assert_eq!(image(none).unwrap(), AwsValue::Absent);
    }

    #[test]
    fn parameters_keep_their_kinds() {
        let read = |kind: &str, value: &str| {
            parameter(&json!({"Parameter": {"Type": kind, "Value": value}}).to_string()).unwrap()
        };
        assert_eq!(read("String", "a,b"), AwsValue::Value(json!("a,b")));
        assert_eq!(
            read("StringList", "a,b"),
            AwsValue::Value(json!(["a", "b"]))
        );
        assert_eq!(read("SecureString", "x"), AwsValue::Secret(json!("x")));
    }

    #[test]
    fn a_secret_is_neither_printed_nor_quoted_in_an_error() {
        let answer = json!({"SecretString": "hush"}).to_string();
        let found = secret(&answer, None).unwrap();
        assert_eq!(format!("{found:?}"), "Secret(…)");
        let error = secret(&answer, Some("password")).unwrap_err().to_string();
        assert!(
            error.contains("`password`") && !error.contains("hush"),
            "{error}"
        );
        let broken = r#"{"SecretString": "hush", "#;
        assert!(
            !secret(broken, None)
                .unwrap_err()
                .to_string()
                .contains("hush")
        );
    }

    #[test]
    fn one_member_of_a_secret_can_be_taken() {
        let answer = json!({"SecretString": r#"{"user": "u", "port": 5432}"#}).to_string();
        assert_eq!(
            secret(&answer, Some("port")).unwrap(),
            AwsValue::Secret(json!(5432))
        );
        assert_eq!(secret(&answer, Some("nope")).unwrap(), AwsValue::Absent);
    }

    #[test]
    fn refusals_are_read_in_every_form() {
        let forms = [
            "<Response><Errors><Error><Code>C</Code><Message>m</Message></Error></Errors></Response>",
            "<ErrorResponse><Error><Type>Sender</Type><Code>C</Code><Message>m</Message></Error></ErrorResponse>",
            r#"{"__type": "com.amazonaws.ssm#C", "message": "m"}"#,
            r#"{"__type": "C", "Message": "m"}"#,
            r#"{"__type": "C", "message": "m", "Message": "m"}"#,
        ];
        for form in forms {
            assert_eq!(
                refusal(form),
                Some(("C".to_owned(), "m".to_owned())),
                "{form}"
            );
        }
        assert_eq!(refusal("<html><h1>502"), None);
    }
}
