//! What objects of AWS are called: ids and ARNs of the form that each type has.
//!
//! A type that is not listed gets an id and an ARN of the usual form, which programs accept too.

use nimbus_engine_model::{PropertyMap, PropertyValue};
use sha2::{Digest, Sha256};

/// A type of AWS whose objects are called otherwise than usual.
struct AwsNaming {
    /// `rds/Instance`.
    type_: &'static str,
    id: Id,
    /// The service and the rest of the ARN; `{id}` and `{hex}` are filled in. The region and the
    /// account are left out where `:` follows the service at once.
    arn: &'static str,
}

#[derive(Clone, Copy)]
enum Id {
    /// The name that this property gives, or one that is made of the resource's.
    Named(&'static str),
    /// Letters in front of a number.
    Prefixed(&'static str),
    /// The ARN, made of the name that this property gives.
    Arn(&'static str),
    /// Five groups of digits.
    Uuid,
    /// Capitals and digits behind these.
    Capitals(&'static str),
    /// The address of a queue of this name.
    QueueUrl(&'static str),
}

const fn known(type_: &'static str, id: Id, arn: &'static str) -> AwsNaming {
    AwsNaming { type_, id, arn }
}

use Id::{Arn, Capitals, Named, Prefixed, QueueUrl, Uuid};

const KNOWN: &[AwsNaming] = &[
    known("acm/Certificate", Arn(""), "acm certificate/{uuid}"),
    known(
        "autoscaling/Group",
        Named("name"),
        "autoscaling autoScalingGroup:{uuid}:autoScalingGroupName/{id}",
    ),
    known(
        "cloudfront/Distribution",
        Capitals("E"),
        "cloudfront: distribution/{id}",
    ),
    known("cloudwatch/EventRule", Named("name"), "events rule/{id}"),
    known("cloudwatch/LogGroup", Named("name"), "logs log-group:{id}"),
    known(
        "cloudwatch/MetricAlarm",
        Named("name"),
        "cloudwatch alarm:{id}",
    ),
    known(
        "cognito/UserPool",
        Prefixed("pool"),
        "cognito-idp userpool/{id}",
    ),
    known("dynamodb/Table", Named("name"), "dynamodb table/{id}"),
    known("ec2/Ami", Prefixed("ami"), "ec2 image/{id}"),
    known("ec2/AmiCopy", Prefixed("ami"), "ec2 image/{id}"),
    known("ec2/Eip", Prefixed("eipalloc"), "ec2 elastic-ip/{id}"),
    known("ec2/FlowLog", Prefixed("fl"), "ec2 vpc-flow-log/{id}"),
    known("ec2/Instance", Prefixed("i"), "ec2 instance/{id}"),
    known(
        "ec2/InternetGateway",
        Prefixed("igw"),
        "ec2 internet-gateway/{id}",
    ),
    known("ec2/KeyPair", Named("keyName"), "ec2 key-pair/{id}"),
    known(
        "ec2/LaunchTemplate",
        Prefixed("lt"),
        "ec2 launch-template/{id}",
    ),
    known("ec2/NatGateway", Prefixed("nat"), "ec2 natgateway/{id}"),
    known(
        "ec2/NetworkInterface",
        Prefixed("eni"),
        "ec2 network-interface/{id}",
    ),
    known("ec2/RouteTable", Prefixed("rtb"), "ec2 route-table/{id}"),
    known(
        "ec2/RouteTableAssociation",
        Prefixed("rtbassoc"),
        "ec2 route-table-association/{id}",
    ),
    known(
        "ec2/SecurityGroup",
        Prefixed("sg"),
        "ec2 security-group/{id}",
    ),
    known("ec2/Subnet", Prefixed("subnet"), "ec2 subnet/{id}"),
    known("ec2/Volume", Prefixed("vol"), "ec2 volume/{id}"),
    known("ec2/Vpc", Prefixed("vpc"), "ec2 vpc/{id}"),
    known("ec2/VpcEndpoint", Prefixed("vpce"), "ec2 vpc-endpoint/{id}"),
    known("ecr/Repository", Named("name"), "ecr repository/{id}"),
    known("ecs/Cluster", Arn("name"), "ecs cluster/{id}"),
    known("ecs/Service", Arn("name"), "ecs service/{id}"),
    known(
        "efs/FileSystem",
        Prefixed("fs"),
        "elasticfilesystem file-system/{id}",
    ),
    known(
        "efs/MountTarget",
        Prefixed("fsmt"),
        "elasticfilesystem mount-target/{id}",
    ),
    known("eks/Cluster", Named("name"), "eks cluster/{id}"),
    known(
        "elasticache/Cluster",
        Named("clusterId"),
        "elasticache cluster:{id}",
    ),
    known(
        "elasticache/ReplicationGroup",
        Named("replicationGroupId"),
        "elasticache replicationgroup:{id}",
    ),
    known(
        "elasticache/SubnetGroup",
        Named("name"),
        "elasticache subnetgroup:{id}",
    ),
    known("iam/Group", Named("name"), "iam: group/{id}"),
    known(
        "iam/InstanceProfile",
        Named("name"),
        "iam: instance-profile/{id}",
    ),
    known(
        "iam/OpenIdConnectProvider",
        Arn(""),
        "iam: oidc-provider/{id}",
    ),
    known("iam/Policy", Arn("name"), "iam: policy/{id}"),
    known("iam/Role", Named("name"), "iam: role/{id}"),
    known("iam/User", Named("name"), "iam: user/{id}"),
    known("kms/Alias", Named("name"), "kms {id}"),
    known("kms/Key", Uuid, "kms key/{id}"),
    known("lambda/Function", Named("name"), "lambda function:{id}"),
    known(
        "lb/Listener",
        Arn(""),
        "elasticloadbalancing listener/app/{id}/{hex}",
    ),
    known(
        "lb/LoadBalancer",
        Arn("name"),
        "elasticloadbalancing loadbalancer/app/{id}/{hex}",
    ),
    known(
        "lb/TargetGroup",
        Arn("name"),
        "elasticloadbalancing targetgroup/{id}/{hex}",
    ),
    known(
        "rds/Cluster",
        Named("clusterIdentifier"),
        "rds cluster:{id}",
    ),
    known("rds/ClusterInstance", Named("identifier"), "rds db:{id}"),
    known("rds/Instance", Named("identifier"), "rds db:{id}"),
    known("rds/ParameterGroup", Named("name"), "rds pg:{id}"),
    known("rds/SubnetGroup", Named("name"), "rds subgrp:{id}"),
    known("route53/Zone", Capitals("Z"), "route53:: hostedzone/{id}"),
    known("s3/Bucket", Named("bucket"), "s3:: {id}"),
    known("s3/BucketV2", Named("bucket"), "s3:: {id}"),
    known(
        "secretsmanager/Secret",
        Arn("name"),
        "secretsmanager secret:{id}-{six}",
    ),
    known("sfn/StateMachine", Arn("name"), "states stateMachine:{id}"),
    known("sns/Topic", Arn("name"), "sns {id}"),
    known("sqs/Queue", QueueUrl("name"), "sqs {id}"),
    known("ssm/Parameter", Named("name"), "ssm parameter/{id}"),
];

/// `aws:rds/instance:Instance` as `rds/Instance`.
fn find(type_: &str) -> Option<&'static AwsNaming> {
    let (module, kind) = type_.strip_prefix("aws:")?.rsplit_once(':')?;
    let service = module.split('/').next()?;
    let fits = |known: &&AwsNaming| known.type_.split_once('/') == Some((service, kind));
    KNOWN.iter().find(fits)
}

/// Where an object is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectLocation<'a> {
    pub(crate) region: &'a str,
    pub(crate) account: &'a str,
}

/// An id for a new object: of the form that its type has, the same for the same seed. A name that
/// is secret is not used: ids are shown.
pub(crate) fn new_id(
    type_: &str,
    name: &str,
    inputs: &PropertyMap,
    seed: &str,
    place: ObjectLocation<'_>,
) -> String {
    let hex = hex_of(seed);
    let named = |key: &str| {
        let given = inputs.get(key).and_then(PropertyValue::as_str);
        let given = given.map(str::to_owned);
        given.unwrap_or_else(|| format!("{name}-{}", &hex[..7]))
    };
    let Some(known) = find(type_) else {
        let kind = type_.rsplit(':').next().unwrap_or(type_);
        return format!("{}-{}", kebab(kind), &hex[..8]);
    };
    match known.id {
        Named(key) => named(key),
        Prefixed(letters) => format!("{letters}-0{}", &hex[..16]),
        Arn(key) => arn_of(known, &named(key), place),
        Uuid => uuid(&hex),
        Capitals(first) => format!("{first}{}", hex[..13].to_ascii_uppercase()),
        QueueUrl(key) => {
            let ObjectLocation { region, account } = place;
            format!(
                "https://sqs.{region}.amazonaws.com/{account}/{}",
                named(key)
            )
        }
    }
}

/// The property by which a user chooses the id, if the type has one.
pub(crate) fn naming_key(type_: &str) -> Option<&'static str> {
    match find(type_)?.id {
        Named(key) | Arn(key) | QueueUrl(key) if !key.is_empty() => Some(key),
        _ => None,
    }
}

/// The name within an id.
pub(crate) fn name_in<'a>(type_: &str, id: &'a str) -> Option<&'a str> {
    match find(type_)?.id {
        Named(_) => Some(id),
        Arn(key) if !key.is_empty() => {
            let last = id.rsplit(':').next()?;
            let mut parts = last.split('/');
            let first = parts.next()?;
            match parts.next() {
                Some("app") => parts.next(),
                Some(second) => Some(second),
                None => Some(first),
            }
        }
        QueueUrl(_) => id.rsplit('/').next(),
        _ => None,
    }
}

/// The ARN of an object; `None` when its type is not known.
pub(crate) fn arn(type_: &str, id: &str, place: ObjectLocation<'_>) -> Option<String> {
    let known = find(type_)?;
    Some(match known.id {
        Arn(_) => id.to_owned(),
        QueueUrl(_) => arn_of(known, id.rsplit('/').next().unwrap_or(id), place),
        _ => arn_of(known, id, place),
    })
}

fn arn_of(known: &AwsNaming, id: &str, place: ObjectLocation<'_>) -> String {
    let (service, rest) = known.arn.split_once(' ').unwrap_or_default();
    let hex = hex_of(id);
    let rest = rest
        .replace("{id}", id)
        .replace("{uuid}", &uuid(&hex))
        .replace("{hex}", &hex[..16])
        .replace("{six}", &hex[..6]);
    let ObjectLocation { region, account } = place;
    if let Some(service) = service.strip_suffix("::") {
        format!("arn:aws:{service}:::{rest}")
    } else if let Some(service) = service.strip_suffix(':') {
        format!("arn:aws:{service}::{account}:{rest}")
    } else {
        format!("arn:aws:{service}:{region}:{account}:{rest}")
    }
}

pub(crate) fn uuid(hex: &str) -> String {
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..32],
    ];
    parts.join("-")
}

pub(crate) fn kebab(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

pub(crate) fn hex_of(seed: &str) -> String {
    hex::encode(Sha256::digest(seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: ObjectLocation<'_> = ObjectLocation {
        region: "eu-west-1",
        account: "123456789012",
    };

    fn id(type_: &str, inputs: &[(&str, &str)], seed: &str) -> String {
        let inputs = inputs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), PropertyValue::from(*value)))
            .collect();
        new_id(type_, "main", &inputs, seed, PLACE)
    }

    #[test]
    fn ids_are_stable_for_a_seed_and_differ_between_seeds() {
        let vpc = |seed| id("aws:ec2/vpc:Vpc", &[], seed);
        assert_eq!(vpc("a"), vpc("a"));
        assert_ne!(vpc("a"), vpc("b"));
        assert!(vpc("a").starts_with("vpc-0") && vpc("a").len() == 21);
        assert_eq!(
            id("aws:s3/bucket:Bucket", &[("bucket", "mine")], "x"),
            "mine"
        );
        assert!(id("other:index/thing:BigThing", &[], "x").starts_with("big-thing-"));
        assert!(id("nonsense", &[], "x").starts_with("nonsense-"));
    }

    #[test]
    fn ids_and_arns_have_the_form_of_their_type() {
        let there = "eu-west-1:123456789012";
        for (type_, key, wanted_id, wanted_arn) in [
            (
                "aws:rds/instance:Instance",
                "identifier",
                "x".to_owned(),
                format!("arn:aws:rds:{there}:db:x"),
            ),
            (
                "aws:iam/role:Role",
                "name",
                "x".to_owned(),
                "arn:aws:iam::123456789012:role/x".to_owned(),
            ),
            (
                "aws:s3/bucket:Bucket",
                "bucket",
                "x".to_owned(),
                "arn:aws:s3:::x".to_owned(),
            ),
            (
                "aws:lambda/function:Function",
                "name",
                "x".to_owned(),
                format!("arn:aws:lambda:{there}:function:x"),
            ),
            (
                "aws:sns/topic:Topic",
                "name",
                format!("arn:aws:sns:{there}:x"),
                format!("arn:aws:sns:{there}:x"),
            ),
            (
                "aws:sqs/queue:Queue",
                "name",
                "https://sqs.eu-west-1.amazonaws.com/123456789012/x".to_owned(),
                format!("arn:aws:sqs:{there}:x"),
            ),
        ] {
            let made = id(type_, &[(key, "x")], "seed");
            assert_eq!(made, wanted_id, "{type_}");
            assert_eq!(arn(type_, &made, PLACE), Some(wanted_arn), "{type_}");
            assert_eq!(name_in(type_, &made), Some("x"), "{type_}");
            assert_eq!(naming_key(type_), Some(key), "{type_}");
        }
        assert_eq!(arn("other:a:B", "x", PLACE), None);
    }

    #[test]
    fn every_listed_type_has_an_id_and_an_arn_that_parse() {
        for known in KNOWN {
            let (service, kind) = known.type_.split_once('/').unwrap();
            let type_ = format!("aws:{service}/x:{kind}");
            let made = id(&type_, &[], "seed");
            assert!(!made.is_empty() && !made.contains('{'), "{type_}: {made}");
            let arn = arn(&type_, &made, PLACE).unwrap();
            assert!(arn.split(':').count() >= 6 && !arn.contains('{'), "{arn}");
            assert!(arn.starts_with("arn:aws:"), "{arn}");
            let again = id(&type_, &[], "other seed");
            assert_ne!(made, again, "{type_}");
            if naming_key(&type_).is_some() {
                assert!(
                    name_in(&type_, &made).unwrap().starts_with("main-"),
                    "{made}"
                );
            }
        }
        let mut names: Vec<_> = KNOWN.iter().map(|known| known.type_).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KNOWN.len(), "a type is listed twice");
    }
}
