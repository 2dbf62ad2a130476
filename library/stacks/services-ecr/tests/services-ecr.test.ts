import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("services-ecr");

describe("services-ecr", () => {
  it("scans, encrypts, and never lets a tag change", async () => {
    const repositories = (await runStack("services-ecr")).all("aws:ecr/repository:Repository");
    expect(repositories.map((repository) => repository.inputs.name)).toEqual([
      "d1brv40/dev/api",
      "d1brv40/dev/worker",
    ]);
    for (const { inputs } of repositories) {
      expect(inputs).toMatchObject({
        imageTagMutability: "IMMUTABLE",
        imageScanningConfiguration: { scanOnPush: true },
      });
      expect(inputs.encryptionConfigurations[0].encryptionType).toBe("KMS");
    }
  });

  it("keeps more images in production and never deletes a full repository there", async () => {
    for (const [environment, keep, force] of [
      ["dev", 20, true],
      ["prod", 200, false],
    ] as const) {
      const run = await runStack("services-ecr", { environment });
      expect(run.inputs("services-ecr-api").forceDelete).toBe(force);
      expect(run.inputs("services-ecr-api-lifecycle").policy).toContain(`"countNumber":${keep}`);
    }
  });

  it("refuses other accounts", async () => {
    const { policy } = (await runStack("services-ecr")).inputs("services-ecr-api-access");
    expect(policy).toContain('"Effect":"Deny"');
    expect(policy).toContain('"aws:PrincipalAccount":"123456789012"');
  });

  it("refuses names that ECR refuses", async () => {
    const wrong = runStack("services-ecr", { config: { repositories: ["My Api"] } });
    await expect(wrong).rejects.toThrow('services-ecr:repositories has "My Api"');
  });
});
