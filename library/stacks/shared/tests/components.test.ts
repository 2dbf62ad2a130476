import { describe, expect, it } from "vitest";
import {
  KeyValueTable,
  MemoryCache,
  PrivateBucket,
  ServiceRole,
  StaticSite,
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

describe("a table that begins with another one's past", () => {
  it("is restored once", async () => {
    const run = await runComponents((context) => {
      for (const [name, time] of [
        ["one", "latest"],
        ["two", "2026-05-01T12:00:00Z"],
      ] as const) {
        new KeyValueTable(context, name, {
          partitionKey: { name: "id", type: "S" },
          kmsKeyArn: KEY,
          alarmTopicArn: TOPIC,
          restoreFrom: { tableArn: "arn:aws:dynamodb:us-east-1:1:table/orders", time },
        });
      }
    });
    expect(run.inputs("demo-one").restoreToLatestTime).toBe(true);
    expect(run.inputs("demo-two").restoreDateTime).toBe("2026-05-01T12:00:00Z");
    const table = run.resources.find(({ name }) => name === "demo-two");
    expect(table?.request.ignoreChanges).toContain("restoreSourceTableArn");
  });
});

describe("a site", () => {
  const site = (more: object = {}): Promise<Run> =>
    runComponents((context) => {
      new StaticSite(context, "shop", { description: "Shop", forceDestroy: false, ...more });
    });

  it("serves a private bucket over TLS, behind a firewall, and nobody goes around", async () => {
    const run = await site();
    expect(run.inputs("demo-shop-files-access").restrictPublicBuckets).toBe(true);
    expect(run.inputs("demo-shop-files-policy").policy).toMatch(
      /CloudFrontReads.*"Service":"cloudfront.amazonaws.com".*"aws:SourceAccount":"123456789012"/,
    );
    const made = run.inputs("demo-shop");
    expect(made.origins[0].originAccessControlId).toBe("demo-shop-access-id");
    expect(made.defaultCacheBehavior.viewerProtocolPolicy).toBe("redirect-to-https");
    expect(made.webAclId).toBe("arn:aws:wafv2:us-east-1:123456789012:demo-shop-firewall");
    expect(run.inputs("demo-shop-firewall")).toMatchObject({
      scope: "CLOUDFRONT",
      region: "us-east-1",
      defaultAction: { allow: {} },
    });
    expect(run.inputs("demo-shop-access").signingBehavior).toBe("always");
    expect(run.before("demo-shop")).toContain("demo-shop-files-policy");
  });

  it("has names of its own with a certificate, and one page for all paths, where wanted", async () => {
    const run = await site({
      names: {
        hosts: ["shop.example.com"],
        certificateArn: "arn:aws:acm:us-east-1:1:certificate/1",
      },
      fallbackPage: "/index.html",
    });
    expect(run.inputs("demo-shop")).toMatchObject({
      aliases: ["shop.example.com"],
      viewerCertificate: { minimumProtocolVersion: "TLSv1.2_2021", sslSupportMethod: "sni-only" },
      customErrorResponses: [{ errorCode: 403, responseCode: 200 }],
    });
  });
});

describe("a cache", () => {
  const cache = (replicas?: number, restoreFromSnapshot?: string): Promise<Run> =>
    runComponents((context) => {
      const sessions = new MemoryCache(context, "sessions", {
        description: "Sessions of users",
        vpcId: "vpc-1",
        subnetIds: ["subnet-1", "subnet-2"],
        clients: [{ name: "app", id: "sg-1" }],
        kmsKeyArn: KEY,
        alarmTopicArn: TOPIC,
        nodeType: "cache.t4g.small",
        replicas,
        restoreFromSnapshot,
      });
      new ServiceRole(context, "app-role", {
        description: "Uses sessions",
        trust: trustServicePlainly("ecs-tasks.amazonaws.com"),
        statements: sessions.access(),
      });
    });

  it("lets in who is named, on its port, and signs them in with their role", async () => {
    const run = await cache();
    expect(run.inputs("demo-sessions").securityGroupIds).toEqual(["sg-demo-sessions-group-id"]);
    expect(run.inputs("demo-sessions-from-app-6379")).toMatchObject({
      referencedSecurityGroupId: "sg-1",
      fromPort: 6379,
      toPort: 6379,
    });
    expect(run.inputs("demo-app-to-sessions-6379").securityGroupId).toBe("sg-1");
    const user = run.inputs("demo-sessions-user");
    expect(user).toMatchObject({ authenticationMode: { type: "iam" }, userName: user.userId });
    expect(user.accessString).not.toContain("nopass");
    expect(run.inputs("demo-sessions").userGroupIds).toEqual(["d1brv40-prod-demo-sessions-users"]);
    expect(run.inputs("demo-app-role-policy").policy).toMatch(
      /elasticache:Connect.*demo-sessions".*demo-sessions-user"/,
    );
  });

  it("starts from a snapshot once", async () => {
    const run = await cache(1, "before-the-accident");
    const made = run.resources.find(({ name }) => name === "demo-sessions");
    expect(made?.inputs.snapshotName).toBe("before-the-accident");
    expect(made?.request.ignoreChanges).toEqual(["snapshotName"]);
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
