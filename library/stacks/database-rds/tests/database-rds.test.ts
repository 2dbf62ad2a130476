import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { sameKind, sameOrigin } from "../../shared/components/postgres/retention";
import type { DatabaseSettings } from "../../shared/components/postgres/settings";
import { changesOf, leftBy } from "../../shared/testing/changes";
import {
  readStackConfig,
  type Recorded,
  type Run,
  runRefused,
  runStack,
} from "../../shared/testing/harness";
import type { Values } from "../../shared/testing/template";

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

  it("changes production in its own hour, and at once where old parameters must go", async () => {
    for (const [environment, allowMajorUpgrade, atOnce] of [
      ["dev", false, true],
      ["prod", false, false],
      ["prod", true, true],
    ] as const) {
      const run = await runStack("database-rds", { environment, config: { allowMajorUpgrade } });
      expect(run.inputs("database-rds-postgres").applyImmediately, environment).toBe(atOnce);
    }
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

  it("puts a TLS proxy in front in production, with a secret for each of the users", async () => {
    expect((await runStack("database-rds")).outputs.proxyEndpoint).toBe("");
    const run = await runStack("database-rds", { environment: "prod" });
    const proxy = run.inputs("database-rds-proxy");
    expect(proxy.requireTls).toBe(true);
    const secrets = (proxy.auths as Array<{ secretArn: string }>).map((auth) => auth.secretArn);
    expect(secrets.map((arn) => arn.split(":").at(-1))).toEqual([
      "database-rds-credentials-first-user",
      "database-rds-credentials-second-user",
    ]);
    const { variables } = run.inputs("database-rds-credentials").environment;
    expect(JSON.parse(variables.USER_SECRET_ARNS as string)).toEqual({
      app: secrets[0],
      app_b: secrets[1],
    });
    expect(run.inputs("database-rds-credentials-role-policy").policy).toContain(secrets[1]);
    // Applications are told of the proxy, when it is there and not before.
    expect(JSON.parse(run.inputs("database-rds-credentials-prepared").input as string)).toEqual({
      prepare: true,
    });
    expect(JSON.parse(run.inputs("database-rds-credentials-published").input as string)).toEqual({
      prepare: true,
      host: run.outputs.proxyEndpoint,
    });
    expect(run.before("database-rds-credentials-published")).toContain("database-rds-proxy-target");
    expect(run.before("database-rds-credentials-rotation")).toContain(
      "database-rds-credentials-published",
    );
  });

  it("manages credentials again when a restore made another database of the same name", async () => {
    const triggers = async (known: object): Promise<unknown> =>
      (await runStack("database-rds", { known: { "database-rds-postgres": { ...known } } })).inputs(
        "database-rds-credentials-prepared",
      ).triggers;
    const before = await triggers({ resourceId: "db-1" });
    expect(await triggers({ resourceId: "db-2" })).not.toEqual(before);
    expect(before).toMatchObject({
      master: expect.stringContaining("secret:database-rds-postgres") as string,
    });
  });

  it("has a master secret of its own with replicas, which RDS makes of no other instance", async () => {
    const run = await runStack("database-rds", {
      environment: "prod",
      config: { readReplicas: 1 },
    });
    const instance = run.inputs("database-rds-postgres");
    expect(instance.manageMasterUserPassword).toBeUndefined();
    // Marked as a secret, so the state has it encrypted only.
    expect(instance.password.value).toBe("generated-secret-value");
    expect(run.outputs.masterSecretArn).toMatch(/:database-rds-master$/);
    const { input } = run.inputs("database-rds-credentials-prepared");
    expect(JSON.parse(input.value as string)).toEqual({
      prepare: true,
      master: { username: "nimbus_admin", password: "generated-secret-value" },
    });
    // What the state knows is worth nothing as soon as the function has it.
    expect(run.inputs("database-rds-master-rotation")).toMatchObject({
      secretId: run.outputs.masterSecretArn,
      rotationLambdaArn: expect.stringMatching(/database-rds-credentials$/) as string,
      rotateImmediately: true,
    });
    expect(run.inputs("database-rds-credentials-role-policy").policy).toMatch(
      /PutSecretValue[^}]*database-rds-master"/,
    );
    const aurora = await runStack("database-rds", { config: { kind: "aurora", readReplicas: 1 } });
    expect(aurora.inputs("database-rds-aurora").manageMasterUserPassword).toBe(true);
    expect(aurora.has("database-rds-master")).toBe(false);
  });

  it("refuses to become another kind of database, unless it is restored", async () => {
    const memory = async (config: Values): Promise<unknown> => {
      const run = await runStack("database-rds", { config });
      const [found] = run.resources.filter(({ name }) => name.startsWith("database-rds-kind-"));
      expect(found?.request.ignoreChanges).toEqual(["inputs"]);
      return [found?.name, found?.inputs.inputs];
    };
    // What was remembered stays; a restore begins with a memory of its own.
    expect(await memory({})).toEqual(["database-rds-kind-empty", ["instance"]]);
    expect(await memory({ kind: "aurora" })).toEqual(["database-rds-kind-empty", ["aurora"]]);
    const [restored] = (await memory({ kind: "aurora", restoreFromSnapshot: "last" })) as string[];
    expect(restored).not.toBe("database-rds-kind-empty");
    expect(sameKind("instance", "instance")).toBe("instance");
    expect(() => sameKind("instance", "aurora")).toThrow(
      "the database is of kind instance; aurora would be an empty one beside it",
    );
  });

  it("leaves everything alone when it refuses: no server beside it, no function with another name", async () => {
    const first = await runStack("database-rds", { environment: "prod" });
    for (const [config, reason, server] of [
      [{ kind: "aurora" }, "the database is of kind instance", 0],
      [{ databaseName: "shop" }, "has the databaseName app", 1],
      [{ masterUsername: "postgres" }, "has the masterUsername nimbus_admin", 1],
      [{ restoreFromSnapshot: "last" }, "is there already and began empty", 1],
    ] as const) {
      const known = leftBy(first);
      const refused = await runRefused("database-rds", { environment: "prod", config, known });
      expect(refused.reason).toContain(reason);
      const asked = (form: RegExp): string[] => refused.asked.filter((one) => form.test(one));
      // The one that is there, of which nothing changes.
      expect(asked(/^aws:rds\/(instance|cluster):/)).toHaveLength(server);
      expect(asked(/^aws:(lambda\/|rds\/proxy|cloudwatch\/metricAlarm)/)).toEqual([]);
      // And it remembers nothing that did not happen.
      expect(asked(/(origin-aurora|kind-[0-9a-f]+)$/)).toEqual(
        "restoreFromSnapshot" in config ? [expect.stringMatching(/kind-[0-9a-f]+$/)] : [],
      );
    }
  });

  it("is of the kind that was restored, also when the restore leaves the configuration", async () => {
    for (const [kind, other, beginning] of [
      ["aurora", "instance", { restoreFromSnapshot: "last" }],
      ["instance", "aurora", { restoreFromDatabase: "shop" }],
    ] as const) {
      const restored = await runStack("database-rds", { config: { kind, ...beginning } });
      const known = leftBy(restored);
      // Together with the restore, or with the setting left where it was.
      for (const setting of [{}, beginning]) {
        const refused = await runRefused("database-rds", {
          config: { kind: other, ...setting },
          known,
        });
        expect(refused.reason).toContain(`the database is of kind ${kind}; ${other} would be`);
        expect(refused.asked.filter((one) => /^aws:rds\/(instance|cluster):/.test(one))).toEqual(
          [],
        );
      }
      const later = await runStack("database-rds", { config: { kind }, known });
      expect(changesOf(restored, later).lost).toEqual([]);
      // And so on, however many deployments later.
      const again = await runRefused("database-rds", {
        config: { kind: other },
        known: leftBy(later),
      });
      expect(again.reason).toContain(`the database is of kind ${kind}`);
    }
  });

  it("may become another kind with a restore, and remembers it when the server is there", async () => {
    const first = await runStack("database-rds", {});
    const config = { kind: "aurora", restoreFromSnapshot: "copy" };
    const second = await runStack("database-rds", { config, known: leftBy(first) });
    expect(second.inputs("database-rds-kind-empty").inputs).toEqual(["aurora"]);
    const present = second.resources.find(({ name }) => name === "database-rds-kind-empty");
    // Written over, while every other memory stays as it is.
    expect(present?.request.ignoreChanges).toEqual([]);
    // A restore that fails must not be remembered: neither its kind nor its name.
    for (const memory of ["database-rds-kind-empty", "database-rds-origin-aurora"]) {
      expect(second.before(memory), memory).toContain("database-rds-aurora-0");
    }
    expect(second.before("database-rds-aurora")).not.toContain("database-rds-origin-aurora");
    const refused = await runRefused("database-rds", { config: {}, known: leftBy(second) });
    expect(refused.reason).toContain("the database is of kind aurora; instance would be");
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
    // All that RDS replaces a database for; then the next one gets another name.
    expect(Object.keys(run.inputs("database-rds-final-snapshot").keepers as object).sort()).toEqual(
      ["dataKey", "databaseName", "identifier", "kind", "masterUsername"],
    );
  });

  it("has replicas that only answer, where wanted", async () => {
    const run = await runStack("database-rds", { config: { readReplicas: 2 } });
    expect(run.inputs("database-rds-replica-1")).toMatchObject({
      replicateSourceDb: "d1brv40-dev-database-rds-postgres",
      maxAllocatedStorage: run.inputs("database-rds-postgres").maxAllocatedStorage as number,
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
      config: { kind: "aurora", readReplicas: 2 },
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

  it("grows and shrinks by itself as Aurora in dev, where no small class exists", async () => {
    const run = await runStack("database-rds", { config: { kind: "aurora" } });
    expect(run.inputs("database-rds-aurora-0").instanceClass).toBe("db.serverless");
    expect(run.inputs("database-rds-aurora").serverlessv2ScalingConfiguration).toEqual({
      minCapacity: 0,
      maxCapacity: 2,
    });
    const prod = await runStack("database-rds", {
      environment: "prod",
      config: { kind: "aurora" },
    });
    expect(prod.inputs("database-rds-aurora-0").instanceClass).toBe("db.r6g.large");
    expect(prod.inputs("database-rds-aurora")).not.toHaveProperty(
      "serverlessv2ScalingConfiguration",
    );
    await expect(
      runStack("database-rds", { config: { kind: "aurora", auroraClass: "db.t3.micro" } }),
    ).rejects.toThrow("database-rds:auroraClass is db.t3.micro; Aurora has db.serverless");
  });

  it("starts from another database's past, once", async () => {
    const past = { restoreFromDatabase: "shop", restoreToTime: "2026-05-01T12:00:00Z" };
    const one = await runStack("database-rds", { config: past });
    expect(one.inputs("database-rds-postgres").restoreToPointInTime).toEqual({
      sourceDbInstanceIdentifier: "shop",
      restoreTime: "2026-05-01T12:00:00Z",
    });
    const cluster = await runStack("database-rds", {
      config: { kind: "aurora", restoreFromDatabase: "shop" },
    });
    const made = cluster.resources.find(({ name }) => name === "database-rds-aurora");
    expect(made?.inputs.restoreToPointInTime).toEqual({
      sourceClusterIdentifier: "shop",
      useLatestRestorableTime: true,
    });
    expect(made?.request.ignoreChanges).toContain("restoreToPointInTime");
    await expect(
      runStack("database-rds", { config: { ...past, restoreFromSnapshot: "other" } }),
    ).rejects.toThrow("restoreFromDatabase cannot be together with restoreFromSnapshot");
  });

  it("starts from the backups that a database left which is gone", async () => {
    const arn = "arn:aws:rds:us-east-1:123456789012:auto-backup:ab-abc123def";
    const one = await runStack("database-rds", { config: { restoreFromDatabase: arn } });
    expect(one.inputs("database-rds-postgres").restoreToPointInTime).toEqual({
      sourceDbInstanceAutomatedBackupsArn: arn,
      useLatestRestorableTime: true,
    });
    const id = "cluster-ABC123DEF";
    const gone = { kind: "aurora", restoreFromDatabase: id };
    const cluster = await runStack("database-rds", { config: gone });
    expect(cluster.inputs("database-rds-aurora").restoreToPointInTime).toEqual({
      sourceClusterResourceId: id,
      useLatestRestorableTime: true,
    });
    const refused = (config: Values): Promise<unknown> => runStack("database-rds", { config });
    await expect(refused({ ...gone, restoreFromDatabase: arn })).rejects.toThrow(
      "restoreFromDatabase has backups of an instance",
    );
    await expect(refused({ restoreFromDatabase: id })).rejects.toThrow(
      "restoreFromDatabase is a cluster's id",
    );
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

  it("stays what it is after a restore from a snapshot under another key", async () => {
    const other = "arn:aws:kms:us-east-1:123456789012:key/another";
    const restored = await runStack("database-rds", {
      config: { restoreFromSnapshot: "rds:before-the-accident", readReplicas: 1 },
      known: { "database-rds-postgres": { kmsKeyId: other } },
    });
    const later = await runStack("database-rds", { config: { readReplicas: 1 } });
    for (const run of [restored, later]) {
      for (const name of ["database-rds-postgres", "database-rds-replica-0"]) {
        const found = run.resources.find((one) => one.name === name);
        expect(found?.request.ignoreChanges, name).toContain("kmsKeyId");
      }
    }
    // RDS makes replicas under the key of their source only.
    expect(restored.inputs("database-rds-replica-0").kmsKeyId).toBe(other);
    // Aurora takes the key together with the snapshot.
    const aurora = await runStack("database-rds", {
      config: { kind: "aurora", restoreFromSnapshot: "last" },
    });
    const cluster = aurora.resources.find(({ name }) => name === "database-rds-aurora");
    expect(cluster?.request.ignoreChanges).not.toContain("kmsKeyId");
  });

  it("is not replaced by the deployment after a restore, whatever names the backup has", async () => {
    for (const [kind, name, names] of [
      ["instance", "database-rds-postgres", { username: "postgres", dbName: "shop" }],
      ["aurora", "database-rds-aurora", { masterUsername: "postgres", databaseName: "shop" }],
    ] as const) {
      const config = { kind, restoreFromSnapshot: "rds:of-another-system", databaseName: "orders" };
      const there = { [name]: { ...names, snapshotIdentifier: "rds:of-another-system" } };
      const first = await runStack("database-rds", { environment: "prod", config, known: there });
      const left = leftBy(first);
      const known = { ...left, [name]: { ...left[name], ...there[name] } };
      // The same again, and then without the setting.
      for (const restoreFromSnapshot of ["rds:of-another-system", ""]) {
        const second = await runStack("database-rds", {
          environment: "prod",
          config: { ...config, restoreFromSnapshot },
          known,
        });
        expect(changesOf(first, second, there).lost, kind).toEqual([]);
        expect(second.outputs.databaseName).toBe("orders");
      }
    }
  });

  it("signs in as the master that a restored database has, where it keeps the secret", async () => {
    const run = await runStack("database-rds", {
      config: { restoreFromSnapshot: "rds:of-another-system", readReplicas: 1 },
      known: { "database-rds-postgres": { username: "postgres" } },
    });
    const { input } = run.inputs("database-rds-credentials-prepared");
    expect(JSON.parse(input.value as string)).toMatchObject({ master: { username: "postgres" } });
  });

  it("gets its first replica without a word to the secret that RDS takes away", async () => {
    const SCHEDULE = "aws:secretsmanager/secretRotation:SecretRotation";
    const schedules = (run: Run): Recorded[] =>
      run.all(SCHEDULE).filter(({ name }) => name === "database-rds-master-rotation");
    const alone = await runStack("database-rds", { environment: "prod" });
    const [ofRds] = schedules(alone);
    // Secrets Manager cannot end the schedule of a secret that is gone, and the deployment would
    // fail at its end, every time.
    expect(ofRds?.inputs.rotationLambdaArn).toBeUndefined();
    expect(ofRds?.request.retainOnDelete).toBe(true);
    const config = { readReplicas: 1 };
    const replicated = await runStack("database-rds", {
      environment: "prod",
      config,
      known: leftBy(alone),
    });
    const [ofOurs] = schedules(replicated);
    expect(ofOurs?.request.urn).not.toBe(ofRds?.request.urn);
    expect(ofOurs?.request.retainOnDelete).toBe(false);
    expect(changesOf(alone, replicated).lost).toEqual([]);
  });

  it("refuses a restore that would not happen, because a database is there", async () => {
    const settings = async (config: Values): Promise<DatabaseSettings> =>
      ((await readStackConfig("database-rds", { config })) as { database: DatabaseSettings })
        .database;
    const last = await settings({ restoreFromSnapshot: "last" });
    expect(() => sameOrigin("", last)).toThrow(
      "the database is there already and began empty; a restore from last",
    );
    expect(() => sameOrigin("first", last)).toThrow(
      "was made from first; a restore from last is for one that is not there",
    );
    const past = await settings({ restoreFromDatabase: "shop" });
    expect(() => sameOrigin("last", past)).toThrow("a restore from shop latest is for one that");
    // The setting may stay, and may go.
    expect(sameOrigin("last", last)).toBe("last");
    expect(sameOrigin("shop latest", past)).toBe("shop latest");
    expect(sameOrigin("last", await settings({}))).toBe("last");
    // Whatever the state of a server says, or leaves out: what is remembered counts.
    for (const kind of ["instance", "aurora"]) {
      const first = await runStack("database-rds", { config: { kind } });
      const { reason } = await runRefused("database-rds", {
        config: { kind, restoreFromSnapshot: "last" },
        known: leftBy(first),
      });
      expect(reason, kind).toContain("the database is there already and began empty");
    }
  });

  it("leaves its backups and the key to them wherever it leaves a last snapshot", async () => {
    for (const kind of ["instance", "aurora"]) {
      const name = kind === "aurora" ? "database-rds-aurora" : "database-rds-postgres";
      for (const [finalSnapshot, deletionProtection] of [
        [true, false],
        [false, false],
      ]) {
        const run = await runStack("database-rds", {
          config: { kind, finalSnapshot, deletionProtection },
        });
        // Protection is off on the way to a destroy, and must not take the backups along.
        expect(run.inputs(name).deleteAutomatedBackups, name).toBe(!finalSnapshot);
      }
    }
    await expect(
      runStack("database-rds", { config: { finalSnapshot: true, dataKeyRetained: false } }),
    ).rejects.toThrow("database-rds:finalSnapshot needs security:retainDataKey");
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
