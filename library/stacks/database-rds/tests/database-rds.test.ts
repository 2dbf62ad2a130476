import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("database-rds");

describe("database-rds", () => {
  it("is encrypted, private, and speaks TLS only", async () => {
    const run = await runStack("database-rds");
    expect(run.inputs("database-rds-postgres")).toMatchObject({
      storageEncrypted: true,
      kmsKeyId: expect.stringMatching(/dataKeyArn$/) as string,
      publiclyAccessible: false,
      engineVersion: "17.6",
      autoMinorVersionUpgrade: false,
    });
    expect(run.inputs("database-rds-parameters").parameters).toContainEqual({
      name: "rds.force_ssl",
      value: "1",
    });
  });

  it("leaves the master password to RDS, under the secrets key, and rotates it", async () => {
    const run = await runStack("database-rds", { environment: "prod" });
    const instance = run.inputs("database-rds-postgres");
    expect(instance.manageMasterUserPassword).toBe(true);
    expect(instance.password).toBeUndefined();
    expect(instance.masterUserSecretKmsKeyId).toMatch(/secretsKeyArn$/);
    expect(run.inputs("database-rds-master-rotation")).toMatchObject({
      secretId: run.outputs.masterSecretArn,
      rotationRules: { automaticallyAfterDays: 7 },
    });
  });

  it("is small in dev, and hard to lose in production", async () => {
    const settings = async (environment: "dev" | "prod"): Promise<unknown> => {
      const instance = (await runStack("database-rds", { environment })).inputs(
        "database-rds-postgres",
      );
      return [
        instance.instanceClass,
        instance.multiAz,
        instance.deletionProtection,
        instance.backupRetentionPeriod,
        instance.skipFinalSnapshot,
      ];
    };
    expect(await settings("dev")).toEqual(["db.t3.micro", false, false, 1, true]);
    expect(await settings("prod")).toEqual(["db.r5.large", true, true, 35, false]);
  });

  it("puts a TLS proxy in front in production, with the application's credentials", async () => {
    expect((await runStack("database-rds")).outputs.proxyEndpoint).toBe("");
    const run = await runStack("database-rds", { environment: "prod" });
    const proxy = run.inputs("database-rds-proxy");
    expect(proxy.requireTls).toBe(true);
    expect(proxy.auths[0].secretArn).toMatch(/databaseSecretArn$/);
  });

  it("makes the applications' user, writes its whole secret and renews it", async () => {
    const run = await runStack("database-rds", { environment: "prod" });
    expect(run.inputs("database-rds-credentials").environment.variables).toMatchObject({
      SECRET_ARN: expect.stringMatching(/databaseSecretArn$/) as string,
      MASTER_SECRET_ARN: run.outputs.masterSecretArn,
      DATABASE_HOST: run.outputs.endpoint,
      DATABASE_PORT: "5432",
      DATABASE_NAME: "app",
      USER_NAME: "app",
    });
    expect(run.inputs("database-rds-credentials-rotation")).toMatchObject({
      rotationLambdaArn: expect.stringMatching(/database-rds-credentials$/) as string,
      rotationRules: { automaticallyAfterDays: 7 },
    });
    // Nobody connects before there is somebody to connect as.
    expect(run.before("database-rds-proxy")).toContain("database-rds-credentials-prepared");
    expect(run.before("database-rds-credentials-prepared")).toContain(
      "database-rds-credentials-role-policy",
    );
  });

  it("gives its last snapshot a name that no other database has", async () => {
    const run = await runStack("database-rds", { environment: "prod" });
    expect(run.inputs("database-rds-postgres").finalSnapshotIdentifier).toBe(
      "d1brv40-prod-database-rds-postgres-final-0123abcd",
    );
  });

  it("has replicas that only answer, where wanted", async () => {
    const run = await runStack("database-rds", { config: { readReplicas: 2 } });
    expect(run.inputs("database-rds-replica-1")).toMatchObject({
      replicateSourceDb: "d1brv40-dev-database-rds-postgres",
      publiclyAccessible: false,
      storageEncrypted: true,
    });
    expect(run.outputs.readerEndpoint).toBe("database-rds-replica-0.us-east-1.example.com");
    expect((await runStack("database-rds")).outputs.readerEndpoint).toBe(
      "database-rds-postgres.us-east-1.example.com",
    );
  });

  it("can be a cluster of Aurora, with the same promises", async () => {
    const run = await runStack("database-rds", {
      environment: "prod",
      config: { kind: "aurora", readReplicas: 2, instanceClass: "db.r6g.large" },
    });
    const cluster = run.inputs("database-rds-aurora");
    expect(cluster).toMatchObject({
      engine: "aurora-postgresql",
      storageEncrypted: true,
      manageMasterUserPassword: true,
      deletionProtection: true,
      skipFinalSnapshot: false,
      backupRetentionPeriod: 35,
    });
    expect(run.inputs("database-rds-cluster-parameters").family).toBe("aurora-postgresql17");
    expect(run.all("aws:rds/clusterInstance:ClusterInstance")).toHaveLength(3);
    expect(run.has("database-rds-postgres")).toBe(false);
    expect(run.inputs("database-rds-proxy-target").dbClusterIdentifier).toBe(
      "d1brv40-prod-database-rds-aurora",
    );
    expect(run.outputs.metricDimension).toBe("DBClusterIdentifier");
    expect(run.before("database-rds-credentials")).toContain("database-rds-aurora-0");
  });

  it("starts from a snapshot once, and never again", async () => {
    const run = await runStack("database-rds", {
      config: { restoreFromSnapshot: "rds:before-the-accident" },
    });
    const instance = run.resources.find(({ name }) => name === "database-rds-postgres");
    expect(instance?.inputs.snapshotIdentifier).toBe("rds:before-the-accident");
    expect(instance?.request.ignoreChanges).toContain("snapshotIdentifier");
    expect((await runStack("database-rds")).inputs("database-rds-postgres")).not.toHaveProperty(
      "snapshotIdentifier",
    );
  });

  it("has alarms that tell the topic", async () => {
    const alarms = (await runStack("database-rds")).all("aws:cloudwatch/metricAlarm:MetricAlarm");
    expect(alarms.map((alarm) => alarm.inputs.metricName).sort()).toEqual([
      "CPUUtilization",
      "Errors",
      "FreeStorageSpace",
      "FreeableMemory",
    ]);
    for (const alarm of alarms) {
      expect(alarm.inputs.alarmActions).toEqual([
        expect.stringMatching(/alarmTopicArn$/) as string,
      ]);
    }
  });

  it("refuses storage that cannot grow and intervals that RDS does not have", async () => {
    const wrong = runStack("database-rds", {
      config: { maxAllocatedStorageGb: 20, monitoringIntervalSeconds: 7 },
    });
    await expect(wrong).rejects.toThrow(
      "database-rds:maxAllocatedStorageGb must be more than allocatedStorageGb",
    );
    await expect(
      runStack("database-rds", { config: { applicationUser: "nimbus_admin" } }),
    ).rejects.toThrow("database-rds:applicationUser must not be the master user");
    await expect(wrong).rejects.toThrow("monitoringIntervalSeconds must be one of 0, 1, 5");
  });
});
