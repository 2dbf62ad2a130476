//! Believable values: stable for a resource, and of the form that programs parse.

use nimbus_engine_model::{PropertyMap, PropertyValue};
use sha2::{Digest, Sha256};

use crate::declarations::{Property, Type};

/// The resource whose outputs are made up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    /// `aws:ec2/vpc:Vpc`.
    pub(crate) type_: &'a str,
    pub(crate) name: &'a str,
    pub(crate) id: &'a str,
    pub(crate) region: &'a str,
    pub(crate) account: &'a str,
}

/// An id for a new object: of the form that its cloud uses where that is known, the same for the
/// same seed.
pub(crate) fn new_id(type_: &str, name: &str, inputs: &PropertyMap, seed: &str) -> String {
    let kind = type_.rsplit(':').next().unwrap_or(type_);
    let named = |key: &str| {
        inputs
            .get(key)
            .and_then(PropertyValue::as_str)
            .map(str::to_owned)
    };
    let hex = hex_of(seed);
    match kind {
        "Bucket" | "BucketV2" => named("bucket").unwrap_or_else(|| format!("{name}-{}", &hex[..7])),
        "Role" | "User" | "Group" | "LogGroup" | "Cluster" | "Repository" | "Function" => {
            named("name").unwrap_or_else(|| format!("{name}-{}", &hex[..7]))
        }
        _ => match prefix(kind) {
            Some(prefix) => format!("{prefix}-0{}", &hex[..16]),
            None => format!("{}-{}", kebab(kind), &hex[..8]),
        },
    }
}

/// The first letters of AWS ids that programs and people recognise.
fn prefix(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Vpc" => "vpc",
        "Subnet" => "subnet",
        "SecurityGroup" => "sg",
        "Instance" => "i",
        "InternetGateway" => "igw",
        "NatGateway" => "nat",
        "RouteTable" => "rtb",
        "VpcEndpoint" => "vpce",
        "LaunchTemplate" => "lt",
        "NetworkInterface" => "eni",
        "Eip" => "eipalloc",
        "FlowLog" => "fl",
        "Ami" | "AmiCopy" => "ami",
        "Volume" => "vol",
        _ => return None,
    })
}

/// Every declared output that the inputs do not give and that may not be absent.
pub(crate) fn outputs(
    inputs: &PropertyMap,
    declared: Option<&[Property]>,
    subject: &Subject<'_>,
) -> PropertyMap {
    let mut outputs = inputs.clone();
    complete(&mut outputs, declared.unwrap_or_default(), subject);
    outputs
}

/// Adds what is missing, also inside of objects that were given in part.
fn complete(map: &mut PropertyMap, declared: &[Property], subject: &Subject<'_>) {
    for property in declared {
        match map.get_mut(&property.name) {
            Some(given) => complete_value(given, &property.type_, subject),
            None if property.optional => {}
            None => {
                let value = make(&property.name, &property.type_, subject);
                map.insert(property.name.clone(), value);
            }
        }
    }
}

fn complete_value(value: &mut PropertyValue, type_: &Type, subject: &Subject<'_>) {
    match (value, type_) {
        (PropertyValue::Object(map), Type::Object(declared)) => complete(map, declared, subject),
        (PropertyValue::Array(items), Type::List(inner)) => {
            for item in items {
                complete_value(item, inner, subject);
            }
        }
        _ => {}
    }
}

fn make(name: &str, type_: &Type, subject: &Subject<'_>) -> PropertyValue {
    match type_ {
        Type::Text => PropertyValue::from(text(name, subject)),
        Type::Literal(text) => PropertyValue::from(text.as_str()),
        Type::Number => PropertyValue::Number(number(name)),
        Type::Bool => PropertyValue::Bool(false),
        Type::Map(_) => PropertyValue::Object(PropertyMap::new()),
        Type::Any => PropertyValue::Null,
        Type::List(inner) => {
            let count = if name == "nameServers" { 4 } else { 1 };
            let item = |n: usize| match (inner.as_ref(), n) {
                (Type::Text, n) if count > 1 => {
                    PropertyValue::from(format!("ns-{n}.{}", text(name, subject)))
                }
                (inner, _) => make(singular(name), inner, subject),
            };
            PropertyValue::Array((1..=count).map(item).collect())
        }
        Type::Object(properties) => PropertyValue::Object(
            properties
                .iter()
                .filter(|property| !property.optional)
                .map(|p| (p.name.clone(), make(&p.name, &p.type_, subject)))
                .collect(),
        ),
    }
}

fn singular(name: &str) -> &str {
    name.strip_suffix('s').unwrap_or(name)
}

fn number(name: &str) -> f64 {
    let name = name.to_ascii_lowercase();
    match () {
        () if name.ends_with("port") => 443.0,
        () if name.contains("version") => 1.0,
        () if name.contains("count") || name.contains("size") => 1.0,
        () => 0.0,
    }
}

fn text(name: &str, subject: &Subject<'_>) -> String {
    let lower = name.to_ascii_lowercase();
    let is = |word: &str| lower == word || lower.ends_with(word);
    let Subject {
        id,
        region,
        account,
        ..
    } = subject;
    let host = || format!("{}.{region}.rehearsal.example", host_label(subject.id));
    match () {
        () if is("arn") => arn(name, subject),
        () if is("accountid") || is("ownerid") || is("registryid") => (*account).to_owned(),
        () if is("region") => (*region).to_owned(),
        () if is("availabilityzone") => format!("{region}a"),
        () if is("ipv6cidrblock") => "2001:db8::/56".to_owned(),
        () if lower.contains("cidr") => "10.0.0.0/16".to_owned(),
        () if lower.contains("ipv6") => "2001:db8::1".to_owned(),
        () if lower.contains("ip") && is("address") || is("publicip") || is("privateip") => {
            "192.0.2.10".to_owned()
        }
        () if is("url") || is("uri") || is("issuer") => format!("https://{}", host()),
        () if is("endpoint")
            || is("domainname")
            || is("dnsname")
            || is("hostname")
            || is("fqdn")
            || is("address")
            || is("nameservers")
            || is("domain") =>
        {
            host()
        }
        () if is("policy") || is("json") || is("document") => {
            "{\"Version\":\"2012-10-17\",\"Statement\":[]}".to_owned()
        }
        () if is("status") || is("state") => "active".to_owned(),
        () if is("date") || is("time") || is("createdat") || is("timestamp") => {
            "2026-01-01T00:00:00Z".to_owned()
        }
        () if is("name") => subject.name.to_owned(),
        () if lower == "id" => (*id).to_owned(),
        () if is("id") => format!("{}-0{}", kebab(&name[..name.len() - 2]), &hex_of(id)[..16]),
        () => format!("{name}-{}", &hex_of(id)[..8]),
    }
}

fn arn(name: &str, subject: &Subject<'_>) -> String {
    let mut parts = subject.type_.splitn(3, ':');
    let _package = parts.next();
    let module = parts.next().unwrap_or_default();
    let kind = subject.type_.rsplit(':').next().unwrap_or_default();
    let service = module.split('/').next().unwrap_or_default();
    let Subject {
        id,
        region,
        account,
        ..
    } = subject;
    if service == "s3" {
        return format!("arn:aws:s3:::{id}");
    }
    let region = if service == "iam" { "" } else { region };
    let kind = name
        .strip_suffix("Arn")
        .filter(|kind| !kind.is_empty())
        .unwrap_or(kind);
    format!("arn:aws:{service}:{region}:{account}:{}/{id}", kebab(kind))
}

fn host_label(id: &str) -> String {
    let label: String = id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    label.to_ascii_lowercase()
}

fn kebab(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn hex_of(seed: &str) -> String {
    Sha256::digest(seed)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject<'static> {
        Subject {
            type_: "aws:rds/instance:Instance",
            name: "db",
            id: "i-0abc",
            region: "eu-west-1",
            account: "123456789012",
        }
    }

    fn made(name: &str) -> String {
        text(name, &subject())
    }

    #[test]
    fn values_have_the_form_that_programs_parse() {
        assert_eq!(
            made("arn"),
            "arn:aws:rds:eu-west-1:123456789012:instance/i-0abc"
        );
        assert_eq!(made("ownerId"), "123456789012");
        assert!(made("cidrBlock").parse::<std::net::IpAddr>().is_err());
        assert!(
            made("cidrBlock")
                .split('/')
                .next()
                .unwrap()
                .parse::<std::net::IpAddr>()
                .is_ok()
        );
        assert!(made("publicIp").parse::<std::net::IpAddr>().is_ok());
        assert!(made("websiteEndpoint").contains(".eu-west-1."));
        assert!(serde_json::from_str::<serde_json::Value>(&made("policy")).is_ok());
        assert!(made("vpcId").starts_with("vpc-0"));
    }

    #[test]
    fn ids_are_stable_for_a_seed_and_differ_between_seeds() {
        let none = PropertyMap::new();
        let id = |seed| new_id("aws:ec2/vpc:Vpc", "main", &none, seed);
        assert_eq!(id("a"), id("a"));
        assert_ne!(id("a"), id("b"));
        assert!(id("a").starts_with("vpc-0") && id("a").len() == 21);
        let named = PropertyMap::from([("bucket".to_owned(), PropertyValue::from("mine"))]);
        assert_eq!(new_id("aws:s3/bucket:Bucket", "b", &named, "x"), "mine");
    }

    #[test]
    fn declared_outputs_are_filled_in_and_given_ones_kept() {
        let property = |name: &str, type_, optional| Property {
            name: name.to_owned(),
            type_,
            optional,
            forces_new: false,
        };
        let declared = [
            property("arn", Type::Text, false),
            property("given", Type::Text, false),
            property("maybe", Type::Text, true),
            property("nameServers", Type::List(Box::new(Type::Text)), false),
            property(
                "nested",
                Type::List(Box::new(Type::Object(vec![property(
                    "port",
                    Type::Number,
                    false,
                )]))),
                false,
            ),
        ];
        let inputs = PropertyMap::from([("given".to_owned(), PropertyValue::from("mine"))]);
        let made = outputs(&inputs, Some(&declared), &subject());
        assert_eq!(made["given"], PropertyValue::from("mine"));
        assert!(!made.contains_key("maybe"));
        let PropertyValue::Array(servers) = &made["nameServers"] else {
            panic!()
        };
        assert_eq!(servers.len(), 4);
        let PropertyValue::Array(nested) = &made["nested"] else {
            panic!()
        };
        assert_eq!(
            nested[0].as_object().unwrap()["port"],
            PropertyValue::Number(443.0)
        );

        let given = PropertyMap::from([("own".to_owned(), PropertyValue::from("mine"))]);
        let items = PropertyValue::Array(vec![PropertyValue::Object(given)]);
        let partly = PropertyMap::from([("nested".to_owned(), items)]);
        let completed = outputs(&partly, Some(&declared), &subject());
        let PropertyValue::Array(items) = &completed["nested"] else {
            panic!()
        };
        let item = items[0].as_object().unwrap();
        assert_eq!(item["own"], PropertyValue::from("mine"));
        assert_eq!(
            item["port"],
            PropertyValue::Number(443.0),
            "added to what was given"
        );
    }
}
