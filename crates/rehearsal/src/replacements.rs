//! Which properties of common AWS types cannot be changed in place.
//!
//! For a type in the list it is the list that counts, together with what the SDK's documentation
//! says. For others there are names that hardly any cloud changes in place.

/// `rds/Instance` and what forces a new one.
const LISTED: &[(&str, &[&str])] = &[
    (
        "acm/Certificate",
        &["domainName", "subjectAlternativeNames", "validationMethod"],
    ),
    ("apigatewayv2/Api", &["protocolType"]),
    ("apigatewayv2/VpcLink", &["securityGroupIds", "subnetIds"]),
    ("autoscaling/Group", &["name", "namePrefix"]),
    ("cloudfront/Distribution", &[]),
    (
        "cloudwatch/EventRule",
        &["eventBusName", "name", "namePrefix"],
    ),
    (
        "cloudwatch/LogGroup",
        &["logGroupClass", "name", "namePrefix"],
    ),
    ("cloudwatch/MetricAlarm", &["name"]),
    (
        "cognito/UserPool",
        &["aliasAttributes", "name", "usernameAttributes"],
    ),
    ("dynamodb/Table", &["hashKey", "name", "rangeKey"]),
    (
        "ec2/Eip",
        &["address", "domain", "networkBorderGroup", "publicIpv4Pool"],
    ),
    (
        "ec2/Instance",
        &[
            "ami",
            "availabilityZone",
            "keyName",
            "placementGroup",
            "privateIp",
            "subnetId",
            "tenancy",
        ],
    ),
    ("ec2/InternetGateway", &[]),
    ("ec2/KeyPair", &["keyName", "keyNamePrefix", "publicKey"]),
    ("ec2/LaunchTemplate", &["name", "namePrefix"]),
    (
        "ec2/NatGateway",
        &["allocationId", "connectivityType", "privateIp", "subnetId"],
    ),
    (
        "ec2/Route",
        &[
            "destinationCidrBlock",
            "destinationIpv6CidrBlock",
            "destinationPrefixListId",
            "routeTableId",
        ],
    ),
    ("ec2/RouteTable", &["vpcId"]),
    ("ec2/RouteTableAssociation", &["gatewayId", "subnetId"]),
    (
        "ec2/SecurityGroup",
        &["description", "name", "namePrefix", "vpcId"],
    ),
    (
        "ec2/SecurityGroupRule",
        &[
            "cidrBlocks",
            "fromPort",
            "ipv6CidrBlocks",
            "prefixListIds",
            "protocol",
            "securityGroupId",
            "self",
            "sourceSecurityGroupId",
            "toPort",
            "type",
        ],
    ),
    (
        "ec2/Subnet",
        &[
            "availabilityZone",
            "availabilityZoneId",
            "cidrBlock",
            "ipv6Native",
            "outpostArn",
            "vpcId",
        ],
    ),
    (
        "ec2/Vpc",
        &["cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"],
    ),
    (
        "ec2/VpcEndpoint",
        &["serviceName", "vpcEndpointType", "vpcId"],
    ),
    ("ecr/Repository", &["encryptionConfigurations", "name"]),
    ("ecs/Cluster", &["name"]),
    (
        "ecs/Service",
        &["cluster", "launchType", "name", "schedulingStrategy"],
    ),
    (
        "ecs/TaskDefinition",
        &[
            "containerDefinitions",
            "cpu",
            "executionRoleArn",
            "family",
            "memory",
            "networkMode",
            "requiresCompatibilities",
            "taskRoleArn",
            "volumes",
        ],
    ),
    (
        "efs/FileSystem",
        &[
            "availabilityZoneName",
            "creationToken",
            "encrypted",
            "kmsKeyId",
            "performanceMode",
        ],
    ),
    (
        "efs/MountTarget",
        &["fileSystemId", "ipAddress", "subnetId"],
    ),
    ("eks/Addon", &["addonName", "clusterName"]),
    (
        "eks/Cluster",
        &["bootstrapSelfManagedAddons", "name", "roleArn"],
    ),
    (
        "eks/NodeGroup",
        &[
            "amiType",
            "capacityType",
            "clusterName",
            "diskSize",
            "instanceTypes",
            "nodeGroupName",
            "nodeGroupNamePrefix",
            "nodeRoleArn",
            "remoteAccess",
            "subnetIds",
        ],
    ),
    (
        "elasticache/Cluster",
        &["clusterId", "engine", "port", "subnetGroupName"],
    ),
    (
        "elasticache/ReplicationGroup",
        &[
            "atRestEncryptionEnabled",
            "kmsKeyId",
            "port",
            "replicationGroupId",
            "subnetGroupName",
        ],
    ),
    ("iam/Group", &[]),
    ("iam/InstanceProfile", &["name", "namePrefix", "path"]),
    ("iam/OpenIdConnectProvider", &["url"]),
    ("iam/Policy", &["description", "name", "namePrefix", "path"]),
    ("iam/Role", &["name", "namePrefix", "path"]),
    ("iam/RolePolicy", &["name", "namePrefix", "role"]),
    ("iam/RolePolicyAttachment", &["policyArn", "role"]),
    ("iam/User", &[]),
    ("kms/Alias", &["name", "namePrefix"]),
    (
        "kms/Key",
        &["customerMasterKeySpec", "keyUsage", "multiRegion"],
    ),
    ("lambda/Function", &["name", "packageType"]),
    (
        "lambda/Permission",
        &[
            "action",
            "function",
            "principal",
            "qualifier",
            "sourceAccount",
            "sourceArn",
            "statementId",
        ],
    ),
    ("lb/Listener", &["loadBalancerArn"]),
    (
        "lb/LoadBalancer",
        &["internal", "loadBalancerType", "name", "namePrefix"],
    ),
    (
        "lb/TargetGroup",
        &[
            "name",
            "namePrefix",
            "port",
            "protocol",
            "protocolVersion",
            "targetType",
            "vpcId",
        ],
    ),
    (
        "rds/Cluster",
        &[
            "availabilityZones",
            "clusterIdentifier",
            "clusterIdentifierPrefix",
            "databaseName",
            "dbSubnetGroupName",
            "engine",
            "engineMode",
            "kmsKeyId",
            "masterUsername",
            "storageEncrypted",
        ],
    ),
    (
        "rds/ClusterInstance",
        &["availabilityZone", "clusterIdentifier", "engine"],
    ),
    (
        "rds/Instance",
        &[
            "availabilityZone",
            "characterSetName",
            "dbName",
            "engine",
            "kmsKeyId",
            "snapshotIdentifier",
            "storageEncrypted",
            "timezone",
            "username",
        ],
    ),
    (
        "rds/ParameterGroup",
        &["description", "family", "name", "namePrefix"],
    ),
    ("rds/Proxy", &["engineFamily", "name", "vpcSubnetIds"]),
    ("rds/SubnetGroup", &["name", "namePrefix"]),
    (
        "route53/Record",
        &["name", "setIdentifier", "type", "zoneId"],
    ),
    ("route53/Zone", &["delegationSetId", "name"]),
    (
        "s3/Bucket",
        &["bucket", "bucketPrefix", "objectLockEnabled"],
    ),
    (
        "s3/BucketV2",
        &["bucket", "bucketPrefix", "objectLockEnabled"],
    ),
    ("secretsmanager/Secret", &["name", "namePrefix"]),
    ("sns/Topic", &["fifoTopic", "name", "namePrefix"]),
    ("sns/TopicSubscription", &["endpoint", "protocol", "topic"]),
    ("sqs/Queue", &["fifoQueue", "name", "namePrefix"]),
    ("ssm/Parameter", &["name"]),
];

/// Properties that hardly any cloud changes in place, whatever the type.
const USUAL: &[&str] = &[
    "availabilityZone",
    "bucket",
    "cidrBlock",
    "clusterIdentifier",
    "dbSubnetGroupName",
    "engine",
    "identifier",
    "keyName",
    "name",
    "namePrefix",
    "subnetId",
    "vpcId",
];

/// Whether a change of this property makes a new object.
pub(crate) fn forces_new(type_: &str, key: &str) -> bool {
    listed(type_).unwrap_or(USUAL).contains(&key)
}

/// Whether a property changes in place although documents say otherwise of another kind of object:
/// what they say of subnets holds for network load balancers, not for application ones.
pub(crate) fn stays(type_: &str, key: &str, kind: Option<&str>) -> bool {
    type_ == "aws:lb/loadBalancer:LoadBalancer"
        && matches!(key, "securityGroups" | "subnetMappings" | "subnets")
        && kind.is_none_or(|kind| kind == "application")
}

fn listed(type_: &str) -> Option<&'static [&'static str]> {
    let (module, kind) = type_.strip_prefix("aws:")?.rsplit_once(':')?;
    let service = module.split('/').next()?;
    let fits = |(known, _): &&(&str, _)| known.split_once('/') == Some((service, kind));
    LISTED.iter().find(fits).map(|(_, keys)| *keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_type_is_as_listed_and_others_have_the_usual() {
        for (type_, key, forces) in [
            ("aws:ec2/vpc:Vpc", "cidrBlock", true),
            ("aws:ec2/vpc:Vpc", "enableDnsSupport", false),
            ("aws:ec2/instance:Instance", "ami", true),
            ("aws:ec2/instance:Instance", "instanceType", false),
            ("aws:rds/instance:Instance", "username", true),
            ("aws:rds/instance:Instance", "instanceClass", false),
            ("aws:rds/instance:Instance", "engineVersion", false),
            (
                "aws:eks/cluster:Cluster",
                "bootstrapSelfManagedAddons",
                true,
            ),
            ("aws:eks/cluster:Cluster", "version", false),
            ("aws:iam/user:User", "name", false),
            ("aws:ec2/internetGateway:InternetGateway", "vpcId", false),
            ("aws:lb/targetGroup:TargetGroup", "port", true),
            ("aws:rds/proxy:Proxy", "vpcSubnetIds", true),
            ("aws:apigatewayv2/vpcLink:VpcLink", "subnetIds", true),
            ("aws:apigatewayv2/vpcLink:VpcLink", "name", false),
            ("gcp:x/y:Y", "name", true),
            ("gcp:x/y:Y", "labels", false),
            ("nonsense", "vpcId", true),
        ] {
            assert_eq!(forces_new(type_, key), forces, "{type_} {key}");
        }
        let subnets = |kind| stays("aws:lb/loadBalancer:LoadBalancer", "subnets", kind);
        assert!(subnets(None) && subnets(Some("application")) && !subnets(Some("network")));
        assert!(!stays("aws:lb/loadBalancer:LoadBalancer", "name", None));
        let mut names: Vec<_> = LISTED.iter().map(|(name, _)| *name).collect();
        names.dedup();
        assert!(names.is_sorted() && names.len() == LISTED.len());
    }
}
