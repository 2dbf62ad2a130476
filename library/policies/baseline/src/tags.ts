/** Tags: who owns a resource and who pays for it. */
import { isObject, objects, type Props, type Rule } from "./rule";

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
  "aws:cognito/userPool:UserPool",
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
  "aws:iam/role:Role",
  "aws:kms/key:Key",
  "aws:lambda/function:Function",
  "aws:lb/loadBalancer:LoadBalancer",
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
    if (props.tags === undefined && !TAGGED.has(type)) {
      return [];
    }
    const tags = namesOf(props);
    const missing = REQUIRED_TAGS.filter((tag) => !tags.has(tag));
    return missing.length === 0
      ? []
      : [`these tags are missing: ${missing.join(", ")}; use tags() of the shared package`];
  },
};

function namesOf({ tags }: Props): Set<unknown> {
  // Auto scaling groups have a list of keys and values instead of an object.
  return new Set(isObject(tags) ? Object.keys(tags) : objects(tags).map((tag) => tag.key));
}
