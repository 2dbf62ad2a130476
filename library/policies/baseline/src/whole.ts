/** Rules that no resource breaks alone: only all of them together show it. */
import { isTrue, knownType, objects, type Resource, type StackRule } from "./rule";

const BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock";

export const blockedBuckets: StackRule = {
  name: "blocked-buckets",
  description: "Every bucket has a block against public access",
  check(resources) {
    const blocks = resources.filter(({ type }) => type === BLOCK);
    return resources
      .filter(({ type }) => /^aws:s3\/bucket(V2)?:Bucket(V2)?$/.test(type))
      .filter((bucket) => !blocks.some((block) => belongsTo(block, bucket)))
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
      .filter(
        ({ props }) =>
          !isTrue(props.manageMasterUserPassword) && props.replicateSourceDb === undefined,
      )
      .flatMap((source) => {
        const replicated = instances.some(
          (one) => one.props.replicateSourceDb !== undefined && belongsTo(one, source),
        );
        return replicated && renewed
          ? []
          : [
              `${source.name} has a password that the state knows; set manageMasterUserPassword, or, with replicas, rotate it at once`,
            ];
      });
  },
};

/** By what the engine recorded, or by the id where that is known. */
function belongsTo(part: Resource, whole: Resource): boolean {
  if (part.dependencies?.includes(whole.urn)) {
    return true;
  }
  const ids = [whole.props.id, whole.props.arn, whole.props.bucket, whole.props.identifier].filter(
    (id) => typeof id === "string" && id !== "",
  );
  return [part.props.bucket, part.props.listenerArn, part.props.replicateSourceDb].some((id) =>
    ids.includes(id),
  );
}

export const wholeRules: readonly StackRule[] = [blockedBuckets, plainRules, ownPasswords];
