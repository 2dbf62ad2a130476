import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("containers-images");

describe("containers-images", () => {
  it("names every image with its version", async () => {
    const { outputs } = await runStack("containers-images");
    expect(outputs.imageUris).toEqual({
      api: "123456789012.dkr.ecr.us-east-1.amazonaws.com/api:1.0.0",
      worker: "123456789012.dkr.ecr.us-east-1.amazonaws.com/worker:1.0.0",
    });
  });

  it("lets a build push its own image and read its own sources only", async () => {
    const run = await runStack("containers-images");
    const policy = run.inputs("containers-images-api-role-policy").policy as string;
    const statements = (JSON.parse(policy) as { Statement: Array<Record<string, unknown>> })
      .Statement;
    const push = statements.find((statement) =>
      (statement.Action as string[]).includes("ecr:PutImage"),
    );
    expect(push?.Resource).toMatch(/repositoryArn$/);
    expect(statements[0]?.Resource).toMatch(/\/api\/\*$/);
  });

  it("builds with pinned tools, encrypted, and keeps the logs", async () => {
    const run = await runStack("containers-images", { environment: "prod" });
    const project = run.inputs("containers-images-api");
    expect(project.environment).toMatchObject({
      image: "aws/codebuild/amazonlinux-x86_64-standard:5.0",
      computeType: "BUILD_GENERAL1_MEDIUM",
    });
    expect(project.encryptionKey).toMatch(/dataKeyArn$/);
    expect(run.inputs("containers-images-api-logs").retentionInDays).toBe(365);
    const dev = (await runStack("containers-images")).inputs("containers-images-api");
    expect(dev.environment.computeType).toBe("BUILD_GENERAL1_SMALL");
  });

  it("uses what another environment built, by digest, and builds nothing", async () => {
    const sharedRegistry = "111111111111.dkr.ecr.us-east-1.amazonaws.com/d1brv40/dev";
    const digest = `sha256:${"a".repeat(64)}`;
    const run = await runStack("containers-images", {
      environment: "prod",
      config: { sharedRegistry, images: [{ name: "api", version: "1.0.0", digest }] },
    });
    expect(run.resources).toEqual([]);
    expect(run.outputs).toEqual({
      imageUris: { api: `${sharedRegistry}/api@${digest}` },
      buildProjectNames: {},
      sourceBucketName: "",
    });
    await expect(
      runStack("containers-images", {
        config: { sharedRegistry, images: [{ name: "api", version: "1.0.0" }] },
      }),
    ).rejects.toThrow("containers-images:images has api without the digest");
  });

  it("refuses versions that say nothing and images without a repository", async () => {
    const images = (list: unknown): Promise<unknown> =>
      runStack("containers-images", { config: { images: list } });
    await expect(images([{ name: "api", version: "latest" }])).rejects.toThrow(
      "must be a list of images with a name and a version such as 1.0.0",
    );
    await expect(images([{ name: "web", version: "1.0.0" }])).rejects.toThrow(
      "containers-images:images has web, for which there is no repository in services-ecr",
    );
  });
});
