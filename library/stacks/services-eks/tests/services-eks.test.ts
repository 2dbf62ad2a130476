import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("services-eks");

describe("services-eks", () => {
  it("is private, pinned, and encrypts its secrets", async () => {
    const cluster = (await runStack("services-eks")).inputs("services-eks-cluster");
    expect(cluster.version).toBe("1.33");
    expect(cluster.vpcConfig).toMatchObject({
      endpointPrivateAccess: true,
      endpointPublicAccess: false,
    });
    expect(cluster.encryptionConfig.provider.keyArn).toMatch(/secretsKeyArn$/);
    expect(cluster.enabledClusterLogTypes).toContain("audit");
  });

  it("lets in named networks and administrators only", async () => {
    const run = await runStack("services-eks", {
      config: {
        publicEndpointCidrs: ["198.51.100.0/24"],
        adminRoleArns: ["arn:aws:iam::123456789012:role/admin"],
      },
    });
    const cluster = run.inputs("services-eks-cluster");
    expect(cluster.vpcConfig.publicAccessCidrs).toEqual(["198.51.100.0/24"]);
    expect(cluster.accessConfig).toEqual({
      authenticationMode: "API",
      bootstrapClusterCreatorAdminPermissions: false,
    });
    expect(run.inputs("services-eks-admin-0").principalArn).toMatch(/role\/admin$/);
  });

  it("runs nodes with IMDSv2 and encrypted disks", async () => {
    const template = (await runStack("services-eks")).inputs("services-eks-node-template");
    expect(template.metadataOptions).toMatchObject({
      httpTokens: "required",
      httpPutResponseHopLimit: 1,
    });
    expect(template.blockDeviceMappings[0].ebs.encrypted).toBe("true");
  });

  it("has one spare node in dev and three reserved ones in production", async () => {
    const nodes = async (environment: "dev" | "prod"): Promise<unknown> => {
      const inputs = (await runStack("services-eks", { environment })).inputs("services-eks-nodes");
      return [inputs.capacityType, inputs.scalingConfig.minSize, inputs.instanceTypes[0]];
    };
    expect(await nodes("dev")).toEqual(["SPOT", 1, "t3.medium"]);
    expect(await nodes("prod")).toEqual(["ON_DEMAND", 3, "m6i.large"]);
  });

  it("refuses to open the Kubernetes API to everybody", async () => {
    const wrong = runStack("services-eks", { config: { publicEndpointCidrs: ["0.0.0.0/0"] } });
    await expect(wrong).rejects.toThrow("opens the Kubernetes API to everybody");
  });
});
