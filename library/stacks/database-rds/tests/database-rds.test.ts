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

  it("has alarms that tell the topic", async () => {
    const alarms = (await runStack("database-rds")).all("aws:cloudwatch/metricAlarm:MetricAlarm");
    expect(alarms.map((alarm) => alarm.inputs.metricName)).toEqual([
      "CPUUtilization",
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
    await expect(wrong).rejects.toThrow("monitoringIntervalSeconds must be one of 0, 1, 5");
  });
});
