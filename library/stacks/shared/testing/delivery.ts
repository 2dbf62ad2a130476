/**
 * What one part of a deployment hands to another: alarms to a topic, logs to a group, events to a
 * queue. Each is an edge that works only when the policies of all that it touches agree: the
 * topic's, its key's, the role's and whom the role trusts. Conditions are evaluated with what the
 * service is documented to send.
 */
import { like, whoMay } from "./access";
import { arn } from "./claims";
import type { Composition, Owned } from "./composition";

const ACCOUNT = "123456789012";
const REGION = "us-east-1";

/** What a request says of itself; a key that is not here is not sent. */
export type Sent = Readonly<Record<string, string>>;

interface Statement {
  readonly Effect: string;
  readonly Action: string | string[];
  readonly Resource?: string | string[];
  readonly Principal?: string | Record<string, string | string[]>;
  readonly Condition?: Record<string, Record<string, string | string[]>>;
}

/** Whether a policy lets a service of AWS, or `account` for anybody of the own one, do something. */
export function policyLets(
  policy: string,
  who: string,
  action: string,
  resource: string,
  sent: Sent,
): boolean {
  const { Statement } = JSON.parse(policy) as { Statement: Statement | Statement[] };
  const meant = [Statement]
    .flat()
    .filter(
      (one) =>
        [one.Action].flat().some((pattern) => like(pattern, action)) &&
        [one.Resource ?? "*"].flat().some((pattern) => like(pattern, resource)) &&
        principals(one).some((principal) => principal === "*" || principal === who) &&
        meets(one.Condition ?? {}, sent),
    );
  return (
    meant.some(({ Effect }) => Effect === "Allow") && !meant.some(({ Effect }) => Effect === "Deny")
  );
}

function principals({ Principal = {} }: Statement): string[] {
  return typeof Principal === "string" ? [Principal] : Object.values(Principal).flat();
}

function meets(condition: NonNullable<Statement["Condition"]>, sent: Sent): boolean {
  return Object.entries(condition).every(([operator, keys]) =>
    Object.entries(keys).every(([key, wanted]) => {
      const value = sent[key];
      if (operator.endsWith("IfExists") && value === undefined) {
        return true;
      }
      return (
        value !== undefined &&
        [wanted].flat().some((one) => (/Like/.test(operator) ? like(one, value) : one === value))
      );
    }),
  );
}

const ENCRYPTS = ["kms:Decrypt", "kms:GenerateDataKey"];
const WRITES_LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"];

/** One thing that must be allowed for an edge to work. */
interface Need {
  readonly edge: string;
  readonly what: string;
  readonly met: boolean;
}

/** Every edge, with what it needs. */
export function needs(deployment: Composition): Need[] {
  return new Deliveries(deployment).all();
}

class Deliveries {
  private readonly found: Need[] = [];
  private edge = "";

  constructor(private readonly deployment: Composition) {}

  all(): Need[] {
    this.each("aws:cloudwatch/eventTarget:EventTarget", "fires at", ({ inputs }) => {
      const rule = arn("cloudwatch", this.named("aws:cloudwatch/eventRule:EventRule", inputs.rule));
      // EventBridge tells queues which rule it is, and topics nothing.
      if ((inputs.arn as string).includes(":sqs:")) {
        const sent = { "aws:SourceArn": rule, "aws:SourceAccount": ACCOUNT };
        this.intoQueue(inputs.arn, "events.amazonaws.com", sent);
      } else if ((inputs.arn as string).includes(":sns:")) {
        this.intoTopic(inputs.arn, "events.amazonaws.com", {});
      }
    });
    this.each("aws:cloudwatch/metricAlarm:MetricAlarm", "tells", ({ inputs }) => {
      for (const topic of (inputs.alarmActions as string[]).filter((to) => to.includes(":sns:"))) {
        this.intoTopic(topic, "cloudwatch.amazonaws.com", { "aws:SourceAccount": ACCOUNT });
      }
    });
    this.each("aws:budgets/budget:Budget", "tells", ({ inputs }) => {
      for (const { subscriberSnsTopicArns = [] } of inputs.notifications) {
        for (const topic of subscriberSnsTopicArns as string[]) {
          this.intoTopic(topic, "budgets.amazonaws.com", { "aws:SourceAccount": ACCOUNT });
        }
      }
    });
    this.each("aws:cloudwatch/logGroup:LogGroup", "is encrypted", ({ inputs }) => {
      const group = `arn:aws:logs:${REGION}:${ACCOUNT}:log-group:${inputs.name}`;
      const sent = { "kms:EncryptionContext:aws:logs:arn": group };
      this.underKey(inputs.kmsKeyId, `logs.${REGION}.amazonaws.com`, sent);
    });
    this.buckets();
    this.roles();
    this.grants();
    return this.found;
  }

  /** Services that write to buckets on their own. */
  private buckets(): void {
    const account = { "aws:SourceAccount": ACCOUNT };
    this.each("aws:lb/loadBalancer:LoadBalancer", "logs requests", ({ inputs }) => {
      const { bucket, prefix } = inputs.accessLogs ?? {};
      const path = `${prefix ? `${prefix}/` : ""}AWSLogs/${ACCOUNT}/one`;
      this.intoBucket(bucket, "logdelivery.elasticloadbalancing.amazonaws.com", path, account);
    });
    this.each("aws:s3/bucketLogging:BucketLogging", "logs requests", ({ inputs }) => {
      const path = `${inputs.targetPrefix}one`;
      this.intoBucket(inputs.targetBucket, "logging.s3.amazonaws.com", path, account);
    });
    this.each("aws:cloudtrail/trail:Trail", "records calls", ({ inputs }) => {
      const path = `AWSLogs/${ACCOUNT}/CloudTrail/one`;
      this.intoBucket(inputs.s3BucketName, "cloudtrail.amazonaws.com", path, account);
      this.underKey(inputs.kmsKeyId, "cloudtrail.amazonaws.com", account);
    });
    this.each("aws:cfg/deliveryChannel:DeliveryChannel", "records changes", ({ inputs }) => {
      const path = `AWSLogs/${ACCOUNT}/Config/one`;
      this.intoBucket(inputs.s3BucketName, "config.amazonaws.com", path, account);
    });
  }

  /** Services that take a role: they must be trusted, and the role must be enough. */
  private roles(): void {
    const account = { "aws:SourceAccount": ACCOUNT };
    this.each("aws:ec2/flowLog:FlowLog", "records traffic", ({ inputs }) => {
      this.taken(inputs.iamRoleArn, "vpc-flow-logs.amazonaws.com", account);
      this.may(inputs.iamRoleArn, WRITES_LOGS, `${inputs.logDestination}:log-stream:one`);
    });
    this.each("aws:ecs/taskDefinition:TaskDefinition", "starts", ({ inputs }) => {
      const { executionRoleArn, taskRoleArn } = inputs;
      this.taken(executionRoleArn, "ecs-tasks.amazonaws.com", account);
      this.taken(taskRoleArn, "ecs-tasks.amazonaws.com", account);
      this.may(executionRoleArn, ["ecr:GetAuthorizationToken", "ecr:BatchGetImage"], "*");
      for (const container of JSON.parse(inputs.containerDefinitions as string)) {
        const group = container.logConfiguration.options["awslogs-group"] as string;
        this.may(executionRoleArn, WRITES_LOGS, this.logStream(group));
        for (const { valueFrom } of container.secrets ?? []) {
          const secret = (valueFrom as string).split(":").slice(0, 6).join(":");
          this.readsSecret(executionRoleArn, secret);
        }
      }
    });
    this.each("aws:lambda/function:Function", "runs", ({ inputs }) => {
      this.taken(inputs.role, "lambda.amazonaws.com", {});
      this.may(inputs.role, WRITES_LOGS, this.logStream(inputs.loggingConfig.logGroup));
      this.may(inputs.role, ["ec2:CreateNetworkInterface"], "*");
      this.may(inputs.role, ["kms:Decrypt"], inputs.kmsKeyArn);
    });
    this.each("aws:secretsmanager/secretRotation:SecretRotation", "renews", ({ inputs }) => {
      const lambda = this.deployment
        .all("aws:lambda/function:Function")
        .find(({ name }) => arn("lambda", name) === inputs.rotationLambdaArn);
      if (lambda === undefined) {
        return;
      }
      const role = lambda.inputs.role as string;
      const invokes = this.deployment
        .all("aws:lambda/permission:Permission")
        .some(
          (one) =>
            one.inputs.function === lambda.inputs.name &&
            one.inputs.principal === "secretsmanager.amazonaws.com",
        );
      this.need("secretsmanager.amazonaws.com may call the function", invokes);
      this.readsSecret(role, inputs.secretId);
      this.may(role, ["secretsmanager:PutSecretValue"], inputs.secretId);
      this.may(role, ["kms:GenerateDataKey"], this.keyOfSecret(inputs.secretId));
    });
    this.each("aws:rds/proxy:Proxy", "signs in", ({ inputs }) => {
      this.taken(inputs.roleArn, "rds.amazonaws.com", {});
      for (const { secretArn } of inputs.auths) {
        this.readsSecret(inputs.roleArn, secretArn);
      }
    });
    this.each("aws:eks/cluster:Cluster", "runs", ({ inputs }) => {
      // Nodes that EKS makes itself carry tags of the session.
      const steps = inputs.computeConfig?.enabled ? ["sts:TagSession"] : [];
      this.taken(inputs.roleArn, "eks.amazonaws.com", {}, steps);
      this.taken(inputs.computeConfig?.nodeRoleArn, "ec2.amazonaws.com", {});
      this.may(inputs.roleArn, ["kms:Decrypt"], inputs.encryptionConfig.provider.keyArn);
    });
    this.each("aws:eks/podIdentityAssociation:PodIdentityAssociation", "runs", ({ inputs }) => {
      this.taken(inputs.roleArn, "pods.eks.amazonaws.com", {}, ["sts:TagSession"]);
    });
  }

  /**
   * Services that keep something under a key and come back for it later, for which they need a
   * grant. Who asks them may be a role of AWS's own, such as that of auto scaling, whose policies
   * nobody here writes: the key's policy alone must be enough.
   */
  private grants(): void {
    const keeps: Record<string, readonly [via: string, key: (inputs: any) => unknown]> = {
      "aws:rds/instance:Instance": ["rds", (inputs) => inputs.kmsKeyId],
      "aws:rds/cluster:Cluster": ["rds", (inputs) => inputs.kmsKeyId],
      "aws:efs/fileSystem:FileSystem": ["elasticfilesystem", (inputs) => inputs.kmsKeyId],
      "aws:ecr/repository:Repository": ["ecr", (i) => i.encryptionConfigurations?.[0]?.kmsKey],
      "aws:lambda/function:Function": ["lambda", (inputs) => inputs.kmsKeyArn],
      "aws:ec2/launchTemplate:LaunchTemplate": [
        "ec2",
        (inputs) => inputs.blockDeviceMappings?.[0]?.ebs?.kmsKeyId,
      ],
    };
    for (const [type, [via, keyOf]] of Object.entries(keeps)) {
      this.each(type, "is kept", ({ inputs }) => {
        const policy = this.keyPolicy(keyOf(inputs) as string | undefined);
        const sent = {
          "kms:CallerAccount": ACCOUNT,
          "kms:ViaService": `${via}.${REGION}.amazonaws.com`,
        };
        for (const action of ["kms:CreateGrant", "kms:GenerateDataKey", "kms:Decrypt"]) {
          const met = policy !== undefined && policyLets(policy, "account", action, "*", sent);
          this.need(`anybody of the account may ${action} through ${via}`, met);
        }
      });
    }
  }

  private each(type: string, verb: string, visit: (one: Owned) => void): void {
    for (const one of this.deployment.all(type)) {
      this.edge = `${one.name} ${verb}`;
      visit(one);
    }
  }

  private need(what: string, met: boolean): void {
    this.found.push({ edge: this.edge, what, met });
  }

  private intoTopic(topicArn: string, service: string, sent: Sent): void {
    const policy = this.policyOf("aws:sns/topicPolicy:TopicPolicy", "arn", topicArn);
    this.allowed(policy, service, "sns:Publish", topicArn, sent);
    this.underKey(this.made("sns", topicArn)?.inputs.kmsMasterKeyId, service, sent);
  }

  private intoQueue(queueArn: string, service: string, sent: Sent): void {
    const queue = this.made("sqs", queueArn);
    const policy = this.deployment
      .all("aws:sqs/queuePolicy:QueuePolicy")
      .find(({ inputs }) => String(inputs.queueUrl).includes(`${queue?.name}.`));
    this.allowed(policy?.inputs.policy, service, "sqs:SendMessage", queueArn, sent);
    this.underKey(queue?.inputs.kmsMasterKeyId, service, sent);
  }

  private intoBucket(bucketId: string, service: string, path: string, sent: Sent): void {
    const policy = this.policyOf("aws:s3/bucketPolicy:BucketPolicy", "bucket", bucketId);
    const bucketArn = arn("s3", bucketId.replace(/-id$/, ""));
    const over = { ...sent, "aws:SecureTransport": "true" };
    this.allowed(policy, service, "s3:PutObject", `${bucketArn}/${path}`, over);
  }

  private underKey(keyArn: string | undefined, service: string, sent: Sent): void {
    for (const action of keyArn === undefined ? [] : ENCRYPTS) {
      this.allowed(this.keyPolicy(keyArn), service, action, "*", sent);
    }
  }

  private allowed(
    policy: unknown,
    service: string,
    action: string,
    resource: string,
    sent: Sent,
  ): void {
    const met = typeof policy === "string" && policyLets(policy, service, action, resource, sent);
    this.need(`${service} may ${action}`, met);
  }

  private taken(roleArn: string, service: string, sent: Sent, more: readonly string[] = []): void {
    const policy = this.made("iam", roleArn)?.inputs.assumeRolePolicy as string;
    for (const action of ["sts:AssumeRole", ...more]) {
      this.allowed(policy, service, action, "*", sent);
    }
  }

  /** By the role's own policies, so that another key or queue does not silently lose it. */
  private may(roleArn: string, actions: readonly string[], resource: string): void {
    const role = roleArn.split(":").at(-1) ?? "";
    for (const action of actions) {
      this.need(`${role} may ${action}`, whoMay(this.deployment, action, resource).includes(role));
    }
  }

  private readsSecret(roleArn: string, secretArn: string): void {
    this.may(roleArn, ["secretsmanager:GetSecretValue"], secretArn);
    this.may(roleArn, ["kms:Decrypt"], this.keyOfSecret(secretArn));
  }

  private keyOfSecret(secretArn: string): string {
    return (this.made("secretsmanager", secretArn)?.inputs.kmsKeyId as string | undefined) ?? "";
  }

  private keyPolicy(keyArn: string | undefined): string | undefined {
    return this.made("kms", keyArn ?? "")?.inputs.policy as string | undefined;
  }

  private policyOf(type: string, property: string, value: string): unknown {
    return this.deployment.all(type).find(({ inputs }) => inputs[property] === value)?.inputs
      .policy;
  }

  private logStream(groupName: string): string {
    const group = this.named("aws:cloudwatch/logGroup:LogGroup", groupName);
    return `${arn("cloudwatch", group)}:log-stream:one`;
  }

  private named(type: string, name: string): string {
    return this.deployment.all(type).find(({ inputs }) => inputs.name === name)?.name ?? "";
  }

  private made(service: string, made: string): Owned | undefined {
    return this.deployment.resources.find(
      ({ type, name }) => type.startsWith(`aws:${service}/`) && arn(service, name) === made,
    );
  }
}
