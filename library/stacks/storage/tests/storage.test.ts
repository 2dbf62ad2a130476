import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { type Recorded, runStack } from "../../shared/testing/harness";

keepsItsContract("storage");

const LAKE = { dataLake: true };

describe("storage", () => {
  it("opens no bucket to the public and refuses plain HTTP", async () => {
    const run = await runStack("storage", { config: LAKE });
    const buckets = run.all("aws:s3/bucket:Bucket");
    const of = (type: string): Recorded[] => run.all(`aws:s3/${type}`);
    const blocks = of("bucketPublicAccessBlock:BucketPublicAccessBlock");
    expect(blocks).toHaveLength(buckets.length);
    for (const block of blocks) {
      expect(block.inputs).toMatchObject({
        blockPublicAcls: true,
        blockPublicPolicy: true,
        ignorePublicAcls: true,
        restrictPublicBuckets: true,
      });
    }
    const policies = of("bucketPolicy:BucketPolicy");
    expect(policies).toHaveLength(buckets.length);
    for (const policy of policies) {
      expect(policy.inputs.policy).toContain('"aws:SecureTransport":"false"');
    }
  });

  it("encrypts data with the customer key and logs who asks for it", async () => {
    const run = await runStack("storage");
    const rule = run.inputs("storage-data-encryption").rules[0];
    expect(rule.applyServerSideEncryptionByDefault).toMatchObject({
      sseAlgorithm: "aws:kms",
      kmsMasterKeyId: expect.stringMatching(/dataKeyArn$/) as string,
    });
    expect(run.inputs("storage-data-logging").targetBucket).toBe("storage-logs-id");
    expect(run.inputs("storage-data-versioning").versioningConfiguration.status).toBe("Enabled");
  });

  it("deletes buckets that hold something in dev only", async () => {
    const force = async (environment: "dev" | "stage" | "prod"): Promise<unknown> =>
      (await runStack("storage", { environment })).inputs("storage-data").forceDestroy;
    expect([await force("dev"), await force("stage"), await force("prod")]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("shares an encrypted file system in every zone, with backups in production", async () => {
    expect((await runStack("storage")).outputs.fileSystemId).toBe("");
    const stage = await runStack("storage", { environment: "stage" });
    expect(stage.all("aws:backup/plan:Plan")).toEqual([]);
    const prod = await runStack("storage", { environment: "prod" });
    expect(prod.inputs("storage-file-system").encrypted).toBe(true);
    expect(prod.all("aws:efs/mountTarget:MountTarget")).toHaveLength(3);
    expect(prod.all("aws:backup/plan:Plan")).toHaveLength(1);
  });

  it("refuses to delete the file system, unless its content may go", async () => {
    const guarded = async (config: object): Promise<unknown> =>
      (await runStack("storage", { environment: "stage", config: { ...config } })).resources.find(
        ({ name }) => name === "storage-file-system",
      )?.request.protect;
    expect(await guarded({})).toBe(true);
    expect(await guarded({ forceDestroy: true })).toBe(false);
  });

  it("lets nobody mount without a role, past an access point or in plain text", async () => {
    const run = await runStack("storage", { environment: "prod" });
    const { Statement } = JSON.parse(run.inputs("storage-file-system-policy").policy as string) as {
      Statement: Array<{ Sid: string; Effect: string; Condition: object }>;
    };
    // Nothing is allowed here, so whoever has no role of its own gets nothing.
    expect(Statement.map(({ Effect }) => Effect)).toEqual(["Deny", "Deny", "Deny"]);
    expect(Statement[0]?.Condition).toEqual({
      Null: { "elasticfilesystem:AccessPointArn": "true" },
    });
  });

  it("makes a data lake whose queries are encrypted and limited", async () => {
    const run = await runStack("storage", { config: LAKE });
    expect(run.outputs.lakeDatabaseName).toBe("d1brv40_dev_storage_lake");
    const { configuration } = run.inputs("storage-lake-queries");
    expect(configuration.enforceWorkgroupConfiguration).toBe(true);
    expect(configuration.bytesScannedCutoffPerQuery).toBe(107374182400);
  });

  it("refuses archiving sooner than AWS does", async () => {
    await expect(runStack("storage", { config: { archiveAfterDays: 7 } })).rejects.toThrow(
      'storage:archiveAfterDays is "7"; it must be a whole number from 30 to 3650',
    );
  });
});
