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

  it("lets named accounts pull what was built here, and push nothing", async () => {
    const run = await runStack("services-ecr", { config: { pullAccountIds: ["333333333333"] } });
    const { Statement } = JSON.parse(run.inputs("services-ecr-api-access").policy as string) as {
      Statement: Array<{ Sid: string; Effect: string; Action: string[]; Condition?: object }>;
    };
    const [others, pushers, allowed] = Statement;
    expect(others?.Condition).toMatchObject({
      StringNotEquals: { "aws:PrincipalAccount": ["123456789012", "333333333333"] },
    });
    expect(pushers).toMatchObject({
      Effect: "Deny",
      Action: expect.arrayContaining(["ecr:PutImage"]) as string[],
      Condition: { StringNotEquals: { "aws:PrincipalAccount": "123456789012" } },
    });
    expect(allowed).toMatchObject({
      Effect: "Allow",
      Principal: { AWS: ["arn:aws:iam::333333333333:root"] },
    });
    expect(allowed?.Action.filter((action) => /Put|Upload/.test(action))).toEqual([]);
    await expect(
      runStack("services-ecr", { config: { pullAccountIds: ["everybody"] } }),
    ).rejects.toThrow('services-ecr:pullAccountIds has "everybody"');
  });

  it("refuses names that ECR refuses", async () => {
    const wrong = runStack("services-ecr", { config: { repositories: ["My Api"] } });
    await expect(wrong).rejects.toThrow('services-ecr:repositories has "My Api"');
  });
});
