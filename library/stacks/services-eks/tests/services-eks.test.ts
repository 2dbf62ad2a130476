import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import {
  DEFAULT_KUBERNETES_VERSION,
  supportNotice,
} from "../../shared/components/kubernetes/support";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("services-eks");

describe("services-eks", () => {
  it("is private, pinned, and encrypts its secrets", async () => {
    const cluster = (await runStack("services-eks")).inputs("services-eks-cluster");
    expect(cluster.version).toBe("1.35");
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
    expect(run.all("aws:eks/accessEntry:AccessEntry")[0]?.inputs.principalArn).toMatch(
      /role\/admin$/,
    );
  });

  it("leaves nodes, disks and load balancers to AWS, which renews them with the cluster", async () => {
    const run = await runStack("services-eks");
    const cluster = run.inputs("services-eks-cluster");
    expect(cluster).toMatchObject({
      bootstrapSelfManagedAddons: false,
      computeConfig: { enabled: true, nodePools: ["system", "general-purpose"] },
      kubernetesNetworkConfig: { elasticLoadBalancing: { enabled: true } },
      storageConfig: { blockStorage: { enabled: true } },
      upgradePolicy: { supportType: "STANDARD" },
    });
    const role = run
      .all("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
      .filter(({ name }) => name.startsWith("services-eks-cluster-role"));
    expect(role.map(({ inputs }) => inputs.policyArn.split("/").at(-1))).toEqual([
      "AmazonEKSClusterPolicy",
      "AmazonEKSComputePolicy",
      "AmazonEKSBlockStoragePolicy",
      "AmazonEKSLoadBalancingPolicy",
      "AmazonEKSNetworkingPolicy",
    ]);
  });

  it("has add-ons whose versions follow the cluster's and nothing else", async () => {
    const names = async (kubernetesVersion: string): Promise<string[]> => {
      const run = await runStack("services-eks", { config: { kubernetesVersion } });
      for (const addon of run.all("aws:eks/addon:Addon")) {
        expect(addon.inputs.addonVersion).toBeTruthy();
      }
      const memories = run.all("random:index/randomShuffle:RandomShuffle");
      expect(memories.every(({ request }) => request.ignoreChanges.includes("inputs"))).toBe(true);
      return memories.map(({ name }) => name);
    };
    expect(await names("1.35")).toEqual([
      "services-eks-version-of-metrics-server-1-35",
      "services-eks-version-of-amazon-cloudwatch-observability-1-35",
      "services-eks-version-of-aws-efs-csi-driver-1-35",
    ]);
    expect(await names("1.36")).toEqual([
      "services-eks-version-of-metrics-server-1-36",
      "services-eks-version-of-amazon-cloudwatch-observability-1-36",
      "services-eks-version-of-aws-efs-csi-driver-1-36",
    ]);
  });

  it("watches with an agent that may write, to logs that end", async () => {
    const run = await runStack("services-eks", { environment: "prod" });
    const agent = run.inputs("services-eks-addon-amazon-cloudwatch-observability");
    expect(agent.podIdentityAssociations[0].serviceAccount).toBe("cloudwatch-agent");
    expect(run.inputs("services-eks-application-logs")).toMatchObject({
      name: "/aws/containerinsights/d1brv40-prod-services-eks-cluster/application",
      retentionInDays: 365,
    });
    expect(run.before("services-eks-addon-amazon-cloudwatch-observability")).toContain(
      "services-eks-performance-logs",
    );
  });

  it("lets pods reach databases and shared files", async () => {
    const run = await runStack("services-eks");
    const ways = run
      .all("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
      .map(({ inputs }) => [inputs.referencedSecurityGroupId, inputs.fromPort]);
    expect(ways).toEqual([
      ["sg-0cluster", 5432],
      ["sg-0cluster", 2049],
    ]);
  });

  it("has the driver that mounts shared files, where there are any, and opens no port else", async () => {
    const run = await runStack("services-eks");
    expect(
      run.inputs("services-eks-addon-aws-efs-csi-driver").podIdentityAssociations[0],
    ).toMatchObject({ serviceAccount: "efs-csi-controller-sa" });
    const node = run.inputs("services-eks-files-node-kube-system-efs-csi-node-sa");
    expect(node.roleArn).toMatch(/files-node-role$/);
    expect(run.inputs("services-eks-files-node-role-policy").policy).toContain(
      "elasticfilesystem:AccessPointArn",
    );
    const without = await runStack("services-eks", { config: { fileSystemId: "" } });
    expect(without.has("services-eks-addon-aws-efs-csi-driver")).toBe(false);
    expect(without.has("services-eks-file-system-from-pods-2049")).toBe(false);
  });

  it("gives the database's secret to pods that are named, and to no others", async () => {
    expect((await runStack("services-eks")).outputs.databasePodRoleArn).toBe("");
    const run = await runStack("services-eks", { config: { databasePods: ["shop/api"] } });
    expect(run.inputs("services-eks-database-pods-shop-api")).toMatchObject({
      namespace: "shop",
      serviceAccount: "api",
      roleArn: run.outputs.databasePodRoleArn,
    });
    expect(run.inputs("services-eks-database-pods-role-policy").policy).toMatch(
      /GetSecretValue.*databaseSecretArn/,
    );
    const wrong = (config: object): Promise<unknown> =>
      runStack("services-eks", { config: { ...config } });
    await expect(wrong({ databasePods: ["api"] })).rejects.toThrow("write namespace/service-acc");
    await expect(wrong({ databasePods: ["a/b"], databaseSecretArn: "" })).rejects.toThrow(
      "services-eks:databasePods are there, but no database",
    );
  });

  it("does not replace a cluster that came with add-ons of its own", async () => {
    const run = await runStack("services-eks", { environment: "prod" });
    const cluster = run.resources.find(({ name }) => name === "services-eks-cluster");
    expect(cluster?.request.ignoreChanges).toEqual(["bootstrapSelfManagedAddons"]);
  });

  it("asks who administers it", async () => {
    await expect(runStack("services-eks", { config: { adminRoleArns: [] } })).rejects.toThrow(
      "services-eks:adminRoleArns",
    );
    await expect(runStack("services-eks", { config: { adminRoleArns: ["me"] } })).rejects.toThrow(
      'services-eks:adminRoleArns has "me", which is no role of an account',
    );
  });

  it("says when AWS stops supporting a version, and its own default is fine for a while", () => {
    const day = (text: string): Date => new Date(`${text}T00:00:00Z`);
    expect(supportNotice("1.33", day("2026-11-16"))).toMatch(/1.33 ended on 2026-07-29/);
    expect(supportNotice("1.34", day("2026-11-16"))).toMatch(/1.34 ends on 2026-12-02/);
    expect(supportNotice(DEFAULT_KUBERNETES_VERSION, day("2026-11-16"))).toBeUndefined();
    expect(supportNotice("1.99", day("2026-11-16"))).toBeUndefined();
  });

  it("refuses to open the Kubernetes API to everybody", async () => {
    const wrong = runStack("services-eks", { config: { publicEndpointCidrs: ["0.0.0.0/0"] } });
    await expect(wrong).rejects.toThrow("opens the Kubernetes API to everybody");
  });
});
