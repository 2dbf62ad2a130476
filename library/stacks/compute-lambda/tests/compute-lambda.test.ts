import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("compute-lambda");

describe("compute-lambda", () => {
  it("runs in private subnets, pinned, with encrypted settings", async () => {
    const lambda = (await runStack("compute-lambda")).inputs("compute-lambda-processor");
    expect(lambda).toMatchObject({ runtime: "nodejs22.x", publish: true, timeout: 60 });
    expect(lambda.kmsKeyArn).toMatch(/dataKeyArn$/);
    expect(lambda.vpcConfig.subnetIds).toHaveLength(3);
  });

  it("loses no work: failures come back and end in a queue that raises an alarm", async () => {
    const run = await runStack("compute-lambda");
    const { redrivePolicy, visibilityTimeoutSeconds } = run.inputs("compute-lambda-work");
    expect(JSON.parse(redrivePolicy as string)).toMatchObject({ maxReceiveCount: 5 });
    expect(visibilityTimeoutSeconds).toBe(360);
    expect(run.inputs("compute-lambda-work-source").functionResponseTypes).toEqual([
      "ReportBatchItemFailures",
    ]);
    expect(run.inputs("compute-lambda-failed-work-alarm").threshold).toBe(0);
  });

  it("takes objects under its prefix only, from its own rule only", async () => {
    const run = await runStack("compute-lambda");
    expect(run.inputs("compute-lambda-arrivals").eventPattern).toContain('{"prefix":"incoming/"}');
    expect(run.inputs("compute-lambda-work-policy").policy).toContain("aws:SourceArn");
  });

  it("is larger in production", async () => {
    const run = await runStack("compute-lambda", { environment: "prod" });
    expect(run.inputs("compute-lambda-processor").memorySize).toBe(1024);
    expect(run.inputs("compute-lambda-work-source").scalingConfig.maximumConcurrency).toBe(50);
    const dev = await runStack("compute-lambda");
    expect(dev.inputs("compute-lambda-processor").memorySize).toBe(256);
  });

  it("makes a queue for batch jobs when asked, on spare capacity outside of production", async () => {
    expect((await runStack("compute-lambda")).outputs.batchQueueArn).toBe("");
    const run = await runStack("compute-lambda", { config: { batch: true } });
    expect(run.inputs("compute-lambda-batch-environment").computeResources.type).toBe(
      "FARGATE_SPOT",
    );
    const properties = run.inputs("compute-lambda-batch-job").containerProperties as string;
    expect(JSON.parse(properties)).toMatchObject({
      readonlyRootFilesystem: true,
      networkConfiguration: { assignPublicIp: "DISABLED" },
    });
  });

  it("reads the secrets that it names, and the database's when it uses it", async () => {
    const plain = await runStack("compute-lambda");
    expect(plain.inputs("compute-lambda-processor-role-policy").policy).not.toContain(
      "secretsmanager",
    );
    const run = await runStack("compute-lambda", {
      config: { secretNames: ["api"], useDatabase: true, batch: true },
    });
    for (const role of ["processor-role", "batch-job-role"]) {
      const { policy } = run.inputs(`compute-lambda-${role}-policy`);
      expect(policy).toContain("secrets/applicationSecretArn");
      expect(policy).toContain("database-rds/applicationSecretArn");
    }
    expect(run.inputs("compute-lambda-processor").environment.variables).toMatchObject({
      DATABASE_HOST: "database-rds-applicationEndpoint",
      SECRET_ARNS: expect.stringContaining('"api"') as string,
    });
    await expect(
      runStack("compute-lambda", { config: { secretNames: ["nobody"] } }),
    ).rejects.toThrow("compute-lambda:secretNames has nobody, which is none of: api, worker");
  });

  it("has a handler that reports exactly the messages that failed", async () => {
    const { handler } = (await import(join(__dirname, "../src/handler/index.mjs"))) as {
      handler: (event: unknown) => Promise<unknown>;
    };
    const log = vi.spyOn(console, "log").mockReturnValue();
    const error = vi.spyOn(console, "error").mockReturnValue();
    const detail = { bucket: { name: "data" }, object: { key: "incoming/a", size: 1 } };
    const result = await handler({
      Records: [
        { messageId: "good", body: JSON.stringify({ detail }) },
        { messageId: "bad", body: "no JSON" },
        { messageId: "empty", body: "{}" },
      ],
    });
    expect(result).toEqual({
      batchItemFailures: [{ itemIdentifier: "bad" }, { itemIdentifier: "empty" }],
    });
    expect([log.mock.calls.length, error.mock.calls.length]).toEqual([1, 2]);
    vi.restoreAllMocks();
  });

  it("refuses an image that may change", async () => {
    const wrong = runStack("compute-lambda", { config: { batchImage: "alpine:latest" } });
    await expect(wrong).rejects.toThrow('compute-lambda:batchImage is "alpine:latest"');
  });
});
