/** Rules that no resource breaks alone: only all of them together show it. */
import { isQueryLogName } from "./encryption";
import {
  isReplica,
  isTrue,
  knownType,
  objects,
  type Props,
  type Resource,
  type StackRule,
  text,
} from "./rule";

const BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock";

export const blockedBuckets: StackRule = {
  name: "blocked-buckets",
  description: "Every bucket has a block against public access",
  check(resources) {
    const buckets = resources.filter(({ type }) => knownType(type) === "aws:s3/bucket:Bucket");
    const blocked = new Set(
      resources
        .filter(({ type }) => type === BLOCK)
        .map((block) => only(block, "bucket", buckets)?.urn),
    );
    return buckets
      .filter(({ urn }) => !blocked.has(urn))
      .map(({ name }) => `${name} has no BucketPublicAccessBlock; use PrivateBucket`);
  },
};

export const plainRules: StackRule = {
  name: "plain-rules",
  description: "Rules of plain HTTP listeners only redirect",
  check(resources) {
    const plain = resources.filter(
      ({ type, props }) =>
        knownType(type) === "aws:lb/listener:Listener" && props.protocol === "HTTP",
    );
    return resources
      .filter(({ type }) => knownType(type) === "aws:lb/listenerRule:ListenerRule")
      .filter((rule) => plain.some((listener) => belongsTo(rule, listener)))
      .filter(({ props }) => objects(props.actions).some((action) => action.type !== "redirect"))
      .map(({ name }) => `${name} serves plain HTTP; attach it to the HTTPS listener`);
  },
};

/**
 * RDS makes no replica of an instance whose password it keeps. Such an instance has one of its own,
 * which must be renewed as soon as somebody keeps it in a secret.
 */
export const ownPasswords: StackRule = {
  name: "own-passwords",
  description: "Only instances with replicas have a password of their own, renewed at once",
  check(resources) {
    const instances = resources.filter(({ type }) => type === "aws:rds/instance:Instance");
    const renewed = resources.some(
      ({ type, props }) =>
        type === "aws:secretsmanager/secretRotation:SecretRotation" &&
        props.rotateImmediately !== false &&
        props.rotationLambdaArn !== undefined,
    );
    return instances
      .filter(({ props }) => !isTrue(props.manageMasterUserPassword) && !isReplica(props))
      .flatMap((source) => {
        const replicated = instances.some((one) => isReplica(one.props) && belongsTo(one, source));
        return replicated && renewed
          ? []
          : [
              `${source.name} has a password that the state knows; set manageMasterUserPassword, or, with replicas, rotate it at once`,
            ];
      });
  },
};

/** Query logs may be without a key; other logs do not become some by their name. */
export const queryLogs: StackRule = {
  name: "query-logs",
  description: "Only logs that Route 53 writes are under no customer key",
  check(resources) {
    const writers = resources.filter(({ type }) => type === "aws:route53/queryLog:QueryLog");
    return resources
      .filter(({ type, props }) => type === LOGS && isQueryLogName(props.name) && !props.kmsKeyId)
      .filter((group) => !writers.some((writer) => belongsTo(writer, group)))
      .map(({ name }) => `${name} is no query log of this unit; set kmsKeyId`);
  },
};

const LOGS = "aws:cloudwatch/logGroup:LogGroup";

/**
 * The one that a property of a part names. A part may wait for many things, but it belongs to one:
 * where nobody can tell which of several it is, it is none.
 */
function only(part: Resource, property: string, wholes: readonly Resource[]): Resource | undefined {
  const id = knownText(part.props, property);
  const named = wholes.filter(({ props }) => id !== "" && knownText(props, "id") === id);
  const byProperty = part.propertyDependencies?.[property] ?? [];
  const needed = byProperty.length > 0 ? byProperty : (part.dependencies ?? []);
  const found = named.length > 0 ? named : wholes.filter(({ urn }) => needed.includes(urn));
  return found.length === 1 ? found[0] : undefined;
}

/** A text, or nothing: in a preview the SDK throws when somebody reads what is not known yet. */
function knownText(props: Props, property: string): string {
  try {
    return text(props[property]);
  } catch {
    return "";
  }
}

/** By what the engine recorded, or by the id where that is known. */
function belongsTo(part: Resource, whole: Resource): boolean {
  if (part.dependencies?.includes(whole.urn)) {
    return true;
  }
  const ids = [whole.props.id, whole.props.arn, whole.props.bucket, whole.props.identifier].filter(
    (id) => typeof id === "string" && id !== "",
  );
  return [
    part.props.bucket,
    part.props.listenerArn,
    part.props.replicateSourceDb,
    part.props.cloudwatchLogGroupArn,
  ].some((id) => ids.includes(id));
}

export const wholeRules: readonly StackRule[] = [
  blockedBuckets,
  plainRules,
  ownPasswords,
  queryLogs,
];
