/** Exposure: what the internet may reach, and what a stolen credential could do. */
import { about, isObject, isTrue, objects, type Props, type Rule, text, texts } from "./rule";

const ANYWHERE = new Set(["0.0.0.0/0", "::/0"]);
const WEB_PORTS = new Set([80, 443]);

export const openPorts = about(
  [
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:ec2/securityGroupRule:SecurityGroupRule",
    "aws:ec2/securityGroup:SecurityGroup",
  ],
  { name: "open-ports", description: "The internet reaches ports 80 and 443 only" },
  (props, { type }) => {
    if (type.endsWith(":SecurityGroupRule") && props.type !== "ingress") {
      return [];
    }
    const rules = type.endsWith(":SecurityGroup") ? objects(props.ingress) : [props];
    return rules
      .filter(isOpen)
      .map(
        ({ fromPort, toPort }) =>
          `ports ${String(fromPort)} to ${String(toPort)} are open to the internet; name a security group or a network`,
      );
  },
);

function isOpen(rule: Props): boolean {
  const sources = [
    rule.cidrIpv4,
    rule.cidrIpv6,
    ...texts(rule.cidrBlocks),
    ...texts(rule.ipv6CidrBlocks),
  ];
  const web = rule.fromPort === rule.toPort && WEB_PORTS.has(Number(rule.fromPort));
  return !web && sources.some((source) => ANYWHERE.has(String(source)));
}

export const privateStores = about(
  [
    "aws:rds/instance:Instance",
    "aws:redshift/cluster:Cluster",
    "aws:dms/replicationInstance:ReplicationInstance",
  ],
  { name: "private-stores", description: "Databases have no public address" },
  (props) => (isTrue(props.publiclyAccessible) ? ["publiclyAccessible must be false"] : []),
);

const BLOCKS = [
  "blockPublicAcls",
  "blockPublicPolicy",
  "ignorePublicAcls",
  "restrictPublicBuckets",
];

export const privateBuckets = about(
  [
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "aws:s3/bucketAcl:BucketAcl",
    "aws:s3/bucket:Bucket",
  ],
  { name: "private-buckets", description: "No bucket is open to the public" },
  (props, { type }) => {
    if (type.endsWith(":BucketPublicAccessBlock")) {
      return BLOCKS.filter((block) => !isTrue(props[block])).map(
        (block) => `${block} must be true`,
      );
    }
    return typeof props.acl === "string" && /public|authenticated-read/.test(props.acl)
      ? [`the ACL ${props.acl} opens the bucket`]
      : [];
  },
);

export const metadataService = about(
  ["aws:ec2/instance:Instance", "aws:ec2/launchTemplate:LaunchTemplate"],
  { name: "metadata-service", description: "Instances answer to IMDSv2 only" },
  ({ metadataOptions }) =>
    isObject(metadataOptions) && metadataOptions.httpTokens === "required"
      ? []
      : ["metadataOptions.httpTokens must be required"],
);

export const noPublicAddress = about(
  ["aws:ec2/instance:Instance", "aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/subnet:Subnet"],
  { name: "no-public-address", description: "Instances have no public address" },
  (props) => {
    const asked =
      isTrue(props.associatePublicIpAddress) ||
      isTrue(props.mapPublicIpOnLaunch) ||
      objects(props.networkInterfaces).some((one) => isTrue(one.associatePublicIpAddress));
    return asked ? ["nothing may get a public address; put a load balancer in front"] : [];
  },
);

export const kubernetesEndpoint = about(
  ["aws:eks/cluster:Cluster"],
  { name: "kubernetes-endpoint", description: "The Kubernetes API is not open to everybody" },
  ({ vpcConfig }) => {
    if (!isObject(vpcConfig) || vpcConfig.endpointPublicAccess === false) {
      return [];
    }
    const sources = texts(vpcConfig.publicAccessCidrs);
    return sources.length === 0 || sources.some((source) => ANYWHERE.has(source))
      ? ["set endpointPublicAccess to false, or name networks in publicAccessCidrs"]
      : [];
  },
);

export const leastPrivilege = about(
  ["aws:iam/policy:Policy", "aws:iam/rolePolicy:RolePolicy"],
  { name: "least-privilege", description: "No policy allows everything on everything" },
  ({ policy }) => {
    const unlimited = statements(policy).some(
      (statement) =>
        statement.Effect === "Allow" && has(statement.Action, "*") && has(statement.Resource, "*"),
    );
    return unlimited ? ["name the actions and the resources that are needed"] : [];
  },
);

function statements(policy: unknown): Props[] {
  const document: unknown = typeof policy === "string" ? parse(policy) : policy;
  return isObject(document) ? objects([document.Statement].flat()) : [];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function has(value: unknown, item: string): boolean {
  return value === item || texts(value).includes(item);
}

export const pinnedImages = about(
  ["aws:ecs/taskDefinition:TaskDefinition", "aws:batch/jobDefinition:JobDefinition"],
  { name: "pinned-images", description: "Images have a version or a digest" },
  (props) => {
    const written = text(props.containerDefinitions) + text(props.containerProperties);
    const images = [...written.matchAll(/"image"\s*:\s*"([^"]+)"/g)].map(([, image = ""]) => image);
    return images
      .filter((image) => !/(:\d[\w.-]*|@sha256:[0-9a-f]{64})$/.test(image))
      .map((image) => `${image} may change under its name; give it a version or a digest`);
  },
);

export const exposureRules: readonly Rule[] = [
  openPorts,
  privateStores,
  privateBuckets,
  metadataService,
  noPublicAddress,
  kubernetesEndpoint,
  leastPrivilege,
  pinnedImages,
];
