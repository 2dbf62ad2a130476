import { describe, expect, it } from "vitest";
import {
  KeyValueTable,
  MemoryCache,
  PrivateBucket,
  ServiceRole,
  trustServicePlainly,
} from "../index";
import { type Run, runComponents } from "../testing/harness";

const KEY = "arn:aws:kms:us-east-1:123456789012:key/1";
const TOPIC = "arn:aws:sns:us-east-1:123456789012:alarms";

describe("components in a program of one's own", () => {
  it("exist twice under different names", async () => {
    const run = await runComponents((context) => {
      for (const color of ["blue", "green"]) {
        new PrivateBucket(context.within(color), "archive", { forceDestroy: false });
      }
    });
    expect(run.all("aws:s3/bucket:Bucket").map(({ name }) => name)).toEqual([
      "demo-blue-archive",
      "demo-green-archive",
    ]);
    expect(run.inputs("demo-blue-archive").bucketPrefix).toMatch(
      /^d1brv40-prod-demo-blue-archive-/,
    );
  });
});

describe("a table", () => {
  const orders = (): Promise<Run> =>
    runComponents((context) => {
      const table = new KeyValueTable(context, "orders", {
        partitionKey: { name: "customer", type: "S" },
        sortKey: { name: "placed", type: "N" },
        indexes: [
          {
            name: "by-state",
            partitionKey: { name: "state", type: "S" },
            sortKey: { name: "placed", type: "N" },
          },
        ],
        expiryAttribute: "expires",
        kmsKeyArn: KEY,
        alarmTopicArn: TOPIC,
      });
      new ServiceRole(context, "reader", {
        description: "Reads orders",
        trust: trustServicePlainly("lambda.amazonaws.com"),
        statements: table.access("read"),
      });
    });

  it("is encrypted, can be restored, and refuses to be deleted", async () => {
    const run = await orders();
    expect(run.inputs("demo-orders")).toMatchObject({
      name: "d1brv40-prod-demo-orders",
      billingMode: "PAY_PER_REQUEST",
      serverSideEncryption: { enabled: true, kmsKeyArn: KEY },
      pointInTimeRecovery: { enabled: true },
      deletionProtectionEnabled: true,
      ttl: { enabled: true, attributeName: "expires" },
    });
    expect(run.all("aws:cloudwatch/metricAlarm:MetricAlarm")).toHaveLength(2);
  });

  it("declares every key once, and none of two types", async () => {
    const run = await orders();
    expect(run.inputs("demo-orders").attributes).toEqual([
      { name: "customer", type: "S" },
      { name: "placed", type: "N" },
      { name: "state", type: "S" },
    ]);
    const twisted = runComponents((context) => {
      new KeyValueTable(context, "twisted", {
        partitionKey: { name: "id", type: "S" },
        sortKey: { name: "id", type: "N" },
        kmsKeyArn: KEY,
        alarmTopicArn: TOPIC,
      });
    });
    await expect(twisted).rejects.toThrow("id cannot be of type S and N");
  });

  it("gives a reader no way to write", async () => {
    const { policy } = (await orders()).inputs("demo-reader-policy");
    expect(policy).toContain("dynamodb:Query");
    expect(policy).not.toMatch(/dynamodb:(Put|Update|Delete|Batch?Write|\*)/);
    expect(policy).toContain("demo-orders/index/*");
  });
});

describe("a cache", () => {
  const cache = (replicas?: number): Promise<Run> =>
    runComponents((context) => {
      new MemoryCache(context, "sessions", {
        description: "Sessions of users",
        subnetIds: ["subnet-1", "subnet-2"],
        securityGroupId: "sg-1",
        kmsKeyArn: KEY,
        alarmTopicArn: TOPIC,
        nodeType: "cache.t4g.small",
        replicas,
      });
    });

  it("is encrypted at rest and on the wire, and another node takes over", async () => {
    const run = await cache();
    expect(run.inputs("demo-sessions")).toMatchObject({
      engine: "valkey",
      engineVersion: "8.0",
      parameterGroupName: "default.valkey8",
      numCacheClusters: 2,
      automaticFailoverEnabled: true,
      multiAzEnabled: true,
      atRestEncryptionEnabled: true,
      kmsKeyId: KEY,
      transitEncryptionEnabled: true,
    });
    expect(run.inputs("demo-sessions").replicationGroupId.length).toBeLessThanOrEqual(40);
  });

  it("watches every node under the name that its metrics have", async () => {
    const nodes = (run: Run): string[] =>
      run
        .all("aws:cloudwatch/metricAlarm:MetricAlarm")
        .map(({ inputs }) => inputs.dimensions.CacheClusterId as string);
    expect(nodes(await cache())).toEqual([
      "d1brv40-prod-demo-sessions-001",
      "d1brv40-prod-demo-sessions-002",
    ]);
    const alone = await cache(0);
    expect(nodes(alone)).toEqual(["d1brv40-prod-demo-sessions-001"]);
    expect(alone.inputs("demo-sessions").automaticFailoverEnabled).toBe(false);
  });
});
