import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("secrets");

const SECRET = "aws:secretsmanager/secret:Secret";

describe("secrets", () => {
  it("encrypts every secret with the customer key, under the deployment's path", async () => {
    const run = await runStack("secrets");
    const secrets = run.all(SECRET);
    expect(secrets.map((secret) => secret.inputs.name)).toEqual([
      "/d1brv40/dev/session-signing-key",
      "/d1brv40/dev/database-user",
    ]);
    for (const secret of secrets) {
      expect(secret.inputs.kmsKeyId).toMatch(/secretsKeyArn$/);
    }
  });

  it("keeps deleted secrets for a month in production and not at all in dev", async () => {
    for (const [environment, days] of [
      ["dev", 0],
      ["stage", 7],
      ["prod", 30],
    ] as const) {
      const run = await runStack("secrets", { environment });
      expect(run.inputs("secrets-database-user").recoveryWindowInDays).toBe(days);
    }
  });

  it("hands out addresses, never values", async () => {
    const { outputs } = await runStack("secrets");
    expect(JSON.stringify(outputs)).not.toContain("generated-secret-value");
    expect(Object.keys(outputs.applicationSecretArns as object)).toEqual(["session-signing-key"]);
  });

  it("leaves the database's secret to whoever knows the database", async () => {
    const versions = (await runStack("secrets")).all(
      "aws:secretsmanager/secretVersion:SecretVersion",
    );
    expect(versions.map(({ inputs }) => inputs.secretId)).toEqual([
      "secrets-session-signing-key-id",
    ]);
  });

  it("lets nobody read by itself: who uses a secret is given it", async () => {
    const run = await runStack("secrets");
    expect(run.resources.filter(({ type }) => type.startsWith("aws:iam"))).toEqual([]);
  });

  it("copies secrets to a second region when asked", async () => {
    const run = await runStack("secrets", { config: { replicaRegion: "us-west-2" } });
    expect(run.inputs("secrets-database-user").replicas).toEqual([{ region: "us-west-2" }]);
  });

  it("refuses a recovery time that AWS refuses, and names given twice", async () => {
    await expect(runStack("secrets", { config: { recoveryWindowDays: 3 } })).rejects.toThrow(
      "secrets:recoveryWindowDays must be 0 or from 7 to 30",
    );
    await expect(
      runStack("secrets", { config: { applicationSecrets: ["a", "a"] } }),
    ).rejects.toThrow("names a secret twice");
  });
});
