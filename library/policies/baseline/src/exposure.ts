/** Exposure: what the internet may reach, and what a stolen credential could do. */
import { isInternet } from "./networks";
import { parse } from "./policy-document";
import { about, isObject, isTrue, objects, type Props, type Rule, text, texts } from "./rule";

const WEB_PORTS = new Set([80, 443]);

export const openPorts = about(
  [
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:ec2/securityGroupRule:SecurityGroupRule",
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
    "aws:ec2/managedPrefixList:ManagedPrefixList",
    "aws:ec2/managedPrefixListEntry:ManagedPrefixListEntry",
    "aws:lightsail/instancePublicPorts:InstancePublicPorts",
  ],
  { name: "open-ports", description: "The internet reaches ports 80 and 443 only" },
  (props, { type }) => {
    if (type.endsWith(":SecurityGroupRule") && props.type !== "ingress") {
      return [];
    }
    if (type.includes("PrefixList")) {
      const networks = [props.cidr, ...objects(props.entries).map(({ cidr }) => cidr)];
      return networks.some((network) => isInternet(text(network)))
        ? ["a list of networks that has the whole internet opens whatever uses it"]
        : [];
    }
    const rules = type.endsWith("SecurityGroup")
      ? objects(props.ingress)
      : type.endsWith("PublicPorts")
        ? objects(props.portInfos).map(publicPort)
        : [props];
    return rules.filter(isOpen).map((rule) => {
      const which =
        rule.fromPort === undefined
          ? "all ports"
          : `ports ${Number(rule.fromPort)} to ${Number(rule.toPort)}`;
      return `${which} are open to the internet; name a security group or a network`;
    });
  },
);

/** A port of Lightsail, which is open to everybody unless it names networks. */
function publicPort({ cidrs, ipv6Cidrs, cidrListAliases, ...port }: Props): Props {
  const named = [...texts(cidrs), ...texts(ipv6Cidrs), ...texts(cidrListAliases)];
  return { ...port, cidrBlocks: named.length > 0 ? named : ["0.0.0.0/0"] };
}

/** Protocols on which the web is served; another one has no ports, or all of them. */
const WEB_PROTOCOLS = new Set(["tcp", "udp", "6", "17"]);

function isOpen(rule: Props): boolean {
  const sources = [
    rule.cidrIpv4,
    rule.cidrIpv6,
    ...texts(rule.cidrBlocks),
    ...texts(rule.ipv6CidrBlocks),
  ];
  const protocol = (text(rule.ipProtocol ?? rule.protocol) || "tcp").toLowerCase();
  const web =
    WEB_PROTOCOLS.has(protocol) &&
    Number(rule.fromPort) === Number(rule.toPort) &&
    WEB_PORTS.has(Number(rule.fromPort));
  return !web && sources.some((source) => isInternet(text(source)));
}

export const privateStores = about(
  [
    "aws:rds/instance:Instance",
    "aws:rds/clusterInstance:ClusterInstance",
    "aws:rds/cluster:Cluster",
    "aws:redshift/cluster:Cluster",
    "aws:dms/replicationInstance:ReplicationInstance",
    "aws:mq/broker:Broker",
    "aws:redshiftserverless/workgroup:Workgroup",
    "aws:docdb/clusterInstance:ClusterInstance",
    "aws:neptune/clusterInstance:ClusterInstance",
    "aws:msk/cluster:Cluster",
  ],
  { name: "private-stores", description: "Databases have no public address" },
  (props) => {
    const brokers = inside(inside(props.brokerNodeGroupInfo, "connectivityInfo"), "publicAccess");
    const addresses = text(inside(brokers, "type"));
    return [
      ...(isTrue(props.publiclyAccessible) ? ["publiclyAccessible must be false"] : []),
      ...(addresses !== "" && addresses !== "DISABLED" ? ["publicAccess must be DISABLED"] : []),
    ];
  },
);

export const privateCopies = about(
  [
    "aws:rds/snapshot:Snapshot",
    "aws:rds/snapshotCopy:SnapshotCopy",
    "aws:rds/clusterSnapshot:ClusterSnapshot",
    "aws:rds/clusterSnapshotCopy:ClusterSnapshotCopy",
    "aws:ec2/amiLaunchPermission:AmiLaunchPermission",
    "aws:ecrpublic/repository:Repository",
    "aws:ssm/document:Document",
  ],
  { name: "private-copies", description: "Snapshots and images are shared with accounts only" },
  ({ sharedAccounts, group, permissions }, { type }) =>
    texts(sharedAccounts).includes("all") ||
    text(group) === "all" ||
    text(inside(permissions, "accountIds")).toLowerCase() === "all" ||
    type.startsWith("aws:ecrpublic/")
      ? ["everybody may copy it; name accounts"]
      : [],
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
    "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock",
    "aws:s3/objectCopy:ObjectCopy",
    "aws:s3/bucketAcl:BucketAcl",
    "aws:s3/bucketAclV2:BucketAclV2",
    "aws:s3/bucket:Bucket",
    "aws:s3/bucketV2:BucketV2",
    "aws:s3/bucketObjectv2:BucketObjectv2",
    "aws:s3/bucketObject:BucketObject",
  ],
  { name: "private-buckets", description: "No bucket is open to the public" },
  (props, { type }) => {
    if (/:(Bucket|Account)PublicAccessBlock$/.test(type)) {
      return BLOCKS.filter((block) => !isTrue(props[block])).map(
        (block) => `${block} must be true`,
      );
    }
    if (typeof props.acl === "string" && /public|authenticated-read/.test(props.acl)) {
      return [`the ACL ${props.acl} opens the bucket`];
    }
    // Grants name groups such as "all users" by address, however deep they are written.
    return /groups\/global\/(AllUsers|AuthenticatedUsers)/.test(
      JSON.stringify([props.grants, props.accessControlPolicy]),
    )
      ? ["a grant to everybody opens the bucket"]
      : [];
  },
);

const MACHINES = [
  "aws:ec2/instance:Instance",
  "aws:ec2/spotInstanceRequest:SpotInstanceRequest",
  "aws:ec2/launchTemplate:LaunchTemplate",
  "aws:ec2/launchConfiguration:LaunchConfiguration",
];

export const metadataService = about(
  MACHINES,
  { name: "metadata-service", description: "Instances answer to IMDSv2 only" },
  ({ metadataOptions }) =>
    isObject(metadataOptions) && metadataOptions.httpTokens === "required"
      ? []
      : ["metadataOptions.httpTokens must be required"],
);

export const noPublicAddress = about(
  [
    ...MACHINES,
    "aws:ec2/subnet:Subnet",
    "aws:ecs/service:Service",
    "aws:ecs/taskSet:TaskSet",
    "aws:cloudwatch/eventTarget:EventTarget",
    "aws:scheduler/schedule:Schedule",
    "aws:ec2/eipAssociation:EipAssociation",
    "aws:ec2/eip:Eip",
  ],
  { name: "no-public-address", description: "Instances have no public address" },
  (props, { type }) => {
    const tasks = [props, props.ecsTarget, inside(inside(props, "target"), "ecsParameters")];
    const attached = [props.instance, props.instanceId, props.networkInterface].some(
      (one) => one !== undefined && one !== "",
    );
    const asked =
      isTrue(props.associatePublicIpAddress) ||
      isTrue(props.mapPublicIpOnLaunch) ||
      tasks.some((task) =>
        isTrue(inside(inside(task, "networkConfiguration"), "assignPublicIp")),
      ) ||
      (type.startsWith("aws:ec2/eip") && (attached || text(props.networkInterfaceId) !== "")) ||
      objects(props.networkInterfaces).some((one) => isTrue(one.associatePublicIpAddress));
    return asked ? ["nothing may get a public address; put a load balancer in front"] : [];
  },
);

function inside(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined;
}

export const kubernetesEndpoint = about(
  ["aws:eks/cluster:Cluster"],
  { name: "kubernetes-endpoint", description: "The Kubernetes API is not open to everybody" },
  ({ vpcConfig }) => {
    if (!isObject(vpcConfig) || vpcConfig.endpointPublicAccess === false) {
      return [];
    }
    const sources = texts(vpcConfig.publicAccessCidrs);
    return sources.length === 0 || sources.some(isInternet)
      ? ["set endpointPublicAccess to false, or name networks in publicAccessCidrs"]
      : [];
  },
);

/** Three numbers at least, or a digest: `1` and `1.28` move with every release. */
const PINNED = /(:v?\d+\.\d+\.\d+[\w.-]*|@sha256:[0-9a-f]{64})$/;

export const pinnedImages = about(
  [
    "aws:ecs/taskDefinition:TaskDefinition",
    "aws:batch/jobDefinition:JobDefinition",
    "aws:lambda/function:Function",
  ],
  { name: "pinned-images", description: "Images have a version or a digest" },
  (props) => {
    const written = [
      props.containerDefinitions,
      props.containerProperties,
      props.ecsProperties,
      props.eksProperties,
    ];
    const images = [
      ...written.flatMap((value) => imagesIn(typeof value === "string" ? parse(value) : value)),
      ...(typeof props.imageUri === "string" ? [props.imageUri] : []),
    ];
    return images
      .filter((image) => !PINNED.test(image))
      .map((image) => `${image} may change under its name; give it a version or a digest`);
  },
);

/** Every text under a key `image`, wherever it is. */
function imagesIn(value: unknown): string[] {
  if (Array.isArray(value)) {
    return value.flatMap(imagesIn);
  }
  if (!isObject(value)) {
    return [];
  }
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "image" && typeof inner === "string" ? [inner] : imagesIn(inner),
  );
}

export const exposureRules: readonly Rule[] = [
  openPorts,
  privateStores,
  privateCopies,
  privateBuckets,
  metadataService,
  noPublicAddress,
  kubernetesEndpoint,
  pinnedImages,
];
