/** Tags: who owns a resource and who pays for it. */
import { isObject, knownType, objects, type Props, type Rule } from "./rule";

export const REQUIRED_TAGS = [
  "Organization",
  "Project",
  "Environment",
  "Team",
  "CostCenter",
  "DeploymentId",
  "ManagedBy",
];

/** Types that cost money or hold data, and so may not go without any tags. */
const TAGGED = new Set([
  "aws:autoscaling/group:Group",
  "aws:cloudfront/distribution:Distribution",
  "aws:cognito/userPool:UserPool",
  "aws:dynamodb/table:Table",
  "aws:ec2/eip:Eip",
  "aws:ec2/instance:Instance",
  "aws:ec2/launchTemplate:LaunchTemplate",
  "aws:ec2/natGateway:NatGateway",
  "aws:ec2/securityGroup:SecurityGroup",
  "aws:ec2/subnet:Subnet",
  "aws:ec2/vpc:Vpc",
  "aws:ec2/vpcEndpoint:VpcEndpoint",
  "aws:ecr/repository:Repository",
  "aws:ecs/cluster:Cluster",
  "aws:ecs/service:Service",
  "aws:efs/fileSystem:FileSystem",
  "aws:eks/cluster:Cluster",
  "aws:eks/nodeGroup:NodeGroup",
  "aws:elasticache/replicationGroup:ReplicationGroup",
  "aws:iam/role:Role",
  "aws:kms/key:Key",
  "aws:lambda/function:Function",
  "aws:lb/loadBalancer:LoadBalancer",
  "aws:rds/cluster:Cluster",
  "aws:rds/clusterInstance:ClusterInstance",
  "aws:rds/instance:Instance",
  "aws:s3/bucket:Bucket",
  "aws:secretsmanager/secret:Secret",
  "aws:sns/topic:Topic",
  "aws:sqs/queue:Queue",
]);

export const requiredTags: Rule = {
  name: "required-tags",
  description: `Resources carry the tags ${REQUIRED_TAGS.join(", ")}`,
  check({ type, props }) {
    if (props.tags === undefined && !TAGGED.has(knownType(type))) {
      return [];
    }
    const tags = filledTags(props);
    const missing = REQUIRED_TAGS.filter((tag) => !tags.has(tag));
    return missing.length === 0
      ? []
      : [`these tags are missing: ${missing.join(", ")}; use tags() of the shared package`];
  },
};

/** Names of the tags that say something; an empty one says nothing. */
function filledTags({ tags }: Props): Set<unknown> {
  const filled = (value: unknown): boolean => typeof value !== "string" || value.trim() !== "";
  // Auto scaling groups have a list of keys and values instead of an object.
  return new Set(
    isObject(tags)
      ? Object.keys(tags).filter((key) => filled(tags[key]))
      : objects(tags)
          .filter((tag) => filled(tag.value))
          .map((tag) => tag.key),
  );
}
