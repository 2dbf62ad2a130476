//! Believable values: stable for a resource, and of the form that programs parse.

use nimbus_engine_model::{PropertyMap, PropertyValue};

use crate::declarations::{Property, Type};
use crate::drawn;
use crate::identity::{self, ObjectLocation, hex_of, kebab};

/// The resource whose outputs are made up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulatedResource<'a> {
    /// `aws:ec2/vpc:Vpc`.
    pub(crate) type_: &'a str,
    pub(crate) name: &'a str,
    pub(crate) id: &'a str,
    pub(crate) region: &'a str,
    pub(crate) account: &'a str,
}

impl SimulatedResource<'_> {
    fn place(&self) -> ObjectLocation<'_> {
        ObjectLocation {
            region: self.region,
            account: self.account,
        }
    }
}

/// Every declared output that the inputs do not give and that may not be absent.
pub(crate) fn outputs(
    inputs: &PropertyMap,
    declared: Option<&[Property]>,
    subject: &SimulatedResource<'_>,
) -> PropertyMap {
    let mut outputs = inputs.clone();
    outputs.extend(drawn::outputs(inputs, subject));
    complete(&mut outputs, declared.unwrap_or_default(), subject);
    outputs
}

/// Adds what is missing, also inside of objects that were given in part.
fn complete(map: &mut PropertyMap, declared: &[Property], subject: &SimulatedResource<'_>) {
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

fn complete_value(value: &mut PropertyValue, type_: &Type, subject: &SimulatedResource<'_>) {
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

fn make(name: &str, type_: &Type, subject: &SimulatedResource<'_>) -> PropertyValue {
    match type_ {
        Type::Text => PropertyValue::from(text(name, subject)),
        Type::Literal(text) => PropertyValue::from(text.as_str()),
        Type::Number => PropertyValue::Number(number(name, subject)),
        Type::Bool => PropertyValue::Bool(false),
        Type::Map(_) => PropertyValue::Object(PropertyMap::new()),
        Type::Any => PropertyValue::Null,
        Type::List(inner) => {
            let count = if name == "nameServers" { 4 } else { 1 };
            let item = |n: usize| match (inner.as_ref(), n) {
                (Type::Text, n) if count > 1 => {
                    PropertyValue::from(format!("ns-{n}.{}", text(name, subject)))
                }
                (inner, _) => make(&singular(name), inner, subject),
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

/// `cidrBlocks` has a `cidrBlock`, `ipAddresses` an `ipAddress`, `policies` a `policy`.
fn singular(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies") {
        return format!("{stem}y");
    }
    let stem = name.strip_suffix("es").filter(|stem| stem.ends_with("ss"));
    let stem = stem.or_else(|| name.strip_suffix('s'));
    stem.unwrap_or(name).to_owned()
}

fn number(name: &str, subject: &SimulatedResource<'_>) -> f64 {
    let name = name.to_ascii_lowercase();
    match () {
        () if name.ends_with("port") => port(subject),
        () if name.contains("version") => 1.0,
        () if name.contains("count") || name.contains("size") => 1.0,
        () => 0.0,
    }
}

fn port(subject: &SimulatedResource<'_>) -> f64 {
    match subject.type_.split([':', '/']).nth(1) {
        Some("rds") => 5432.0,
        Some("elasticache") => 6379.0,
        _ => 443.0,
    }
}

fn text(name: &str, subject: &SimulatedResource<'_>) -> String {
    let lower = name.to_ascii_lowercase();
    let is = |word: &str| lower == word || lower.ends_with(word);
    let SimulatedResource {
        id,
        region,
        account,
        ..
    } = subject;
    let host = || format!("{}.{region}.rehearsal.example", host_label(subject));
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
        () if is("macaddress") => "02:00:00:00:00:01".to_owned(),
        () if is("email") || is("emailaddress") => "rehearsal@rehearsal.example".to_owned(),
        () if is("port") => port(subject).to_string(),
        () if is("thumbprint") || is("fingerprint") => hex_of(id)[..40].to_owned(),
        () if lower == "data" || is("base64") => "UkVIRUFSU0FM".to_owned(),
        () if lower == "url" && id.starts_with("https://") => (*id).to_owned(),
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
        () if is("date")
            || is("time")
            || is("createdat")
            || is("timestamp")
            || is("modified")
            || is("expiration")
            || is("notafter")
            || is("notbefore") =>
        {
            "2026-01-01T00:00:00Z".to_owned()
        }
        () if Some(name) == identity::naming_key(subject.type_) || lower == "name" => {
            let within = identity::name_in(subject.type_, id);
            within.unwrap_or(subject.name).to_owned()
        }
        () if is("name") => subject.name.to_owned(),
        () if is("zoneid") => format!("Z0{}", hex_of(id)[..18].to_ascii_uppercase()),
        () if is("uniqueid") => format!("AROA{}", hex_of(id)[..17].to_ascii_uppercase()),
        () if is("version") => "1".to_owned(),
        () if lower == "id" => (*id).to_owned(),
        () if is("id") => format!("{}-0{}", kebab(&name[..name.len() - 2]), &hex_of(id)[..16]),
        () => format!("{name}-{}", &hex_of(id)[..8]),
    }
}

fn arn(name: &str, subject: &SimulatedResource<'_>) -> String {
    if name == "arn"
        && let Some(arn) = identity::arn(subject.type_, subject.id, subject.place())
    {
        return arn;
    }
    let mut parts = subject.type_.splitn(3, ':');
    let _package = parts.next();
    let module = parts.next().unwrap_or_default();
    let kind = subject.type_.rsplit(':').next().unwrap_or_default();
    let service = module.split('/').next().unwrap_or_default();
    let SimulatedResource {
        id,
        region,
        account,
        ..
    } = subject;
    let region = if service == "iam" { "" } else { region };
    let kind = name
        .strip_suffix("Arn")
        .filter(|kind| !kind.is_empty())
        .unwrap_or(kind);
    format!("arn:aws:{service}:{region}:{account}:{}/{id}", kebab(kind))
}

/// A label of a host: of the name within the id, as long as labels may be.
fn host_label(subject: &SimulatedResource<'_>) -> String {
    let name = identity::name_in(subject.type_, subject.id).unwrap_or(subject.id);
    let name = if name.starts_with("arn:") {
        subject.name
    } else {
        name
    };
    let letters = name.chars().take(40);
    let label: String = letters
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    label.trim_matches('-').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> SimulatedResource<'static> {
        SimulatedResource {
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
        assert_eq!(made("arn"), "arn:aws:rds:eu-west-1:123456789012:db:i-0abc");
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
        assert_eq!(made("port"), "5432");
        assert_eq!(made("thumbprint").len(), 40);
        assert_eq!(made("identifier"), "i-0abc");
        for (list, one) in [
            ("cidrBlocks", "cidrBlock"),
            ("ipAddresses", "ipAddress"),
            ("policies", "policy"),
            ("names", "name"),
        ] {
            assert_eq!(singular(list), one);
        }
        let balancer = SimulatedResource {
            type_: "aws:lb/loadBalancer:LoadBalancer",
            id: "arn:aws:elasticloadbalancing:r:1:loadbalancer/app/front/0123",
            ..subject()
        };
        assert_eq!(
            text("dnsName", &balancer),
            "front.eu-west-1.rehearsal.example"
        );
        let queue = SimulatedResource {
            type_: "aws:sqs/queue:Queue",
            id: "https://sqs.r.amazonaws.com/1/jobs",
            ..subject()
        };
        assert_eq!(text("url", &queue), queue.id);
        let text = |value: PropertyValue| value.as_str().map(str::to_owned);
        let PropertyValue::Array(list) = make(
            "privateIpAddresses",
            &Type::List(Box::new(Type::Text)),
            &subject(),
        ) else {
            panic!("a list")
        };
        let first = text(list[0].clone()).unwrap();
        assert!(first.parse::<std::net::IpAddr>().is_ok(), "{first}");
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
            PropertyValue::Number(5432.0)
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
            PropertyValue::Number(5432.0),
            "added to what was given"
        );
    }
}
