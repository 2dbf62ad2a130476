//! What can be asked, and how the question looks on the wire.

use serde_json::json;

use crate::error::AwsError;
use crate::transport::RequestBody;

/// A question, its words checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AwsQuery {
    /// The newest image of an owner whose name matches a pattern.
    Image {
        owner: String,
        name: String,
    },
    /// Zones of the region that take new resources.
    Zones {
        count: Option<usize>,
    },
    Parameter {
        name: String,
    },
    /// A secret, or one member of a secret that is a JSON object.
    Secret {
        id: String,
        member: Option<String>,
    },
}

/// Images that people ask for by a short name: name, owner, pattern.
const IMAGES: &[(&str, &str, &str)] = &[
    ("amazonLinux2", "amazon", "amzn2-ami-hvm-*-x86_64-gp2"),
    ("amazonLinux2Arm64", "amazon", "amzn2-ami-hvm-*-arm64-gp2"),
    ("amazonLinux2023", "amazon", "al2023-ami-2023.*-x86_64"),
    ("amazonLinux2023Arm64", "amazon", "al2023-ami-2023.*-arm64"),
    ("debian12", "136693071363", "debian-12-amd64-*"),
    (
        "ubuntu2204",
        "099720109477",
        "ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-amd64-server-*",
    ),
    (
        "ubuntu2404",
        "099720109477",
        "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-*",
    ),
    (
        "windows2022",
        "amazon",
        "Windows_Server-2022-English-Full-Base-*",
    ),
];

impl AwsQuery {
    pub(super) fn read(query: &str, parameters: &[String]) -> Result<Self, AwsError> {
        // Names and ARNs may hold colons, at which the placeholder was cut.
        let whole = parameters.join(":");
        match query {
            "latestAmiId" => image(&whole),
            "availabilityZones" => zones(&whole),
            "ssmParameter" if !whole.is_empty() => Ok(Self::Parameter { name: whole }),
            "ssmParameter" => Err(AwsError::Parameters {
                query: "ssmParameter",
                takes: "the name of a parameter: ssmParameter:/shop/dev/url",
            }),
            "secret" => secret(&whole),
            _ => Err(AwsError::UnknownQuery {
                query: query.to_owned(),
            }),
        }
    }
}

fn image(text: &str) -> Result<AwsQuery, AwsError> {
    if let Some((_, owner, name)) = IMAGES.iter().find(|(alias, _, _)| *alias == text) {
        return Ok(AwsQuery::Image {
            owner: (*owner).to_owned(),
            name: (*name).to_owned(),
        });
    }
    match text.split_once('/') {
        Some((owner, name)) if !owner.is_empty() && !name.is_empty() => Ok(AwsQuery::Image {
            owner: owner.to_owned(),
            name: name.to_owned(),
        }),
        _ => Err(AwsError::Parameters {
            query: "latestAmiId",
            takes: "amazonLinux2, amazonLinux2023 (each also with Arm64), ubuntu2204, ubuntu2404, \
                    debian12, windows2022, or OWNER/NAME-PATTERN such as self/web-*",
        }),
    }
}

fn zones(text: &str) -> Result<AwsQuery, AwsError> {
    if text.is_empty() {
        return Ok(AwsQuery::Zones { count: None });
    }
    match text.parse() {
        Ok(count @ 1..) => Ok(AwsQuery::Zones { count: Some(count) }),
        _ => Err(AwsError::Parameters {
            query: "availabilityZones",
            takes: "nothing, or how many: availabilityZones:3",
        }),
    }
}

fn secret(text: &str) -> Result<AwsQuery, AwsError> {
    let (id, member) = match text.split_once('#') {
        Some((id, member)) => (id, Some(member)),
        None => (text, None),
    };
    if id.is_empty() || member.is_some_and(str::is_empty) {
        return Err(AwsError::Parameters {
            query: "secret",
            takes: "the name or ARN of a secret, and #MEMBER for one value of it: secret:shop/db#password",
        });
    }
    Ok(AwsQuery::Secret {
        id: id.to_owned(),
        member: member.map(str::to_owned),
    })
}

pub(super) fn describe_images(owner: &str, name: &str) -> RequestBody {
    RequestBody::form(
        "DescribeImages",
        "2016-11-15",
        &[
            ("Owner.1", owner),
            ("Filter.1.Name", "name"),
            ("Filter.1.Value.1", name),
            ("Filter.2.Name", "state"),
            ("Filter.2.Value.1", "available"),
        ],
    )
}

pub(super) fn describe_zones() -> RequestBody {
    RequestBody::form(
        "DescribeAvailabilityZones",
        "2016-11-15",
        &[
            ("Filter.1.Name", "state"),
            ("Filter.1.Value.1", "available"),
            ("Filter.2.Name", "zone-type"),
            ("Filter.2.Value.1", "availability-zone"),
        ],
    )
}

pub(super) fn get_parameter(name: &str) -> RequestBody {
    RequestBody::json(
        "AmazonSSM.GetParameter",
        &json!({ "Name": name, "WithDecryption": true }),
    )
}

pub(super) fn get_secret(id: &str) -> RequestBody {
    RequestBody::json("secretsmanager.GetSecretValue", &json!({ "SecretId": id }))
}

pub(super) fn caller_identity() -> RequestBody {
    RequestBody::form("GetCallerIdentity", "2011-06-15", &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str, parameters: &[&str]) -> Result<AwsQuery, AwsError> {
        let parameters: Vec<_> = parameters.iter().map(|p| (*p).to_owned()).collect();
        AwsQuery::read(query, &parameters)
    }

    #[test]
    fn short_names_and_patterns_of_images_are_read() {
        let by_name = read("latestAmiId", &["amazonLinux2"]).unwrap();
        assert!(matches!(by_name, AwsQuery::Image { owner, .. } if owner == "amazon"));
        let by_pattern = read("latestAmiId", &["self/web-*"]).unwrap();
        let expected = AwsQuery::Image {
            owner: "self".to_owned(),
            name: "web-*".to_owned(),
        };
        assert_eq!(by_pattern, expected);
    }

    #[test]
    fn names_keep_their_colons() {
        let version = read("ssmParameter", &["/a/b", "3"]).unwrap();
        assert_eq!(
            version,
            AwsQuery::Parameter {
                name: "/a/b:3".to_owned()
            }
        );
        let arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:shop/db-AbCdEf#password";
        let parts: Vec<&str> = arn.split(':').collect();
        let expected = AwsQuery::Secret {
            id: arn.trim_end_matches("#password").to_owned(),
            member: Some("password".to_owned()),
        };
        assert_eq!(read("secret", &parts).unwrap(), expected);
    }

    #[test]
    fn what_is_not_a_question_says_what_is() {
        for (query, parameters) in [
            ("latestAmiId", &["amazonLinux3"][..]),
            ("latestAmiId", &[]),
            ("availabilityZones", &["many"]),
            ("availabilityZones", &["0"]),
            ("ssmParameter", &[]),
            ("secret", &["#x"]),
            ("secret", &["x#"]),
            ("weather", &["today"]),
        ] {
            let error = read(query, parameters).unwrap_err().to_string();
            assert!(
                error.contains("takes") || error.contains("there are"),
                "{query} {parameters:?}: {error}"
            );
        }
    }
}
