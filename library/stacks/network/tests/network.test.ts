import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";
import { layout } from "../src/config";

keepsItsContract("network");

describe("network", () => {
  it("puts NAT gateways in public subnets and routes private ones through them", async () => {
    const run = await runStack("network", { environment: "prod" });
    const gateways = run.all("aws:ec2/natGateway:NatGateway");
    expect(gateways.map((gateway) => gateway.inputs.subnetId)).toEqual([
      "network-public-subnet-0-id",
      "network-public-subnet-1-id",
      "network-public-subnet-2-id",
    ]);
    expect(run.inputs("network-private-route-1")).toMatchObject({
      routeTableId: "network-private-1-routes-id",
      destinationCidrBlock: "0.0.0.0/0",
      natGatewayId: "network-nat-gateway-1-id",
    });
    expect(run.inputs("network-public-route").gatewayId).toBe("network-internet-gateway-id");
    expect(run.inputs("network-public-association-0").routeTableId).toBe(
      "network-public-routes-id",
    );
  });

  it("gives data subnets no way out", async () => {
    const run = await runStack("network");
    const routes = run.all("aws:ec2/route:Route").map((route) => route.inputs.routeTableId);
    expect(routes).not.toContain("network-data-routes-id");
  });

  it("saves on NAT gateways, zones and endpoints in dev only", async () => {
    const count = async (environment: "dev" | "prod"): Promise<number[]> => {
      const run = await runStack("network", { environment });
      return [
        run.all("aws:ec2/natGateway:NatGateway").length,
        run.all("aws:ec2/subnet:Subnet").length,
        run.all("aws:ec2/vpcEndpoint:VpcEndpoint").length,
      ];
    };
    expect(await count("dev")).toEqual([1, 6, 2]);
    expect(await count("prod")).toEqual([3, 9, 11]);
  });

  it("works without any NAT gateway", async () => {
    const run = await runStack("network", { config: { natStrategy: "none" } });
    expect(run.all("aws:ec2/route:Route")).toHaveLength(1);
    expect(run.outputs.natGatewayIds).toEqual([]);
  });

  it("lets service accounts take roles of this account through the STS endpoint", async () => {
    const run = await runStack("network", { environment: "stage" });
    const { Statement } = JSON.parse(run.inputs("network-endpoint-sts").policy as string) as {
      Statement: Array<Record<string, unknown>>;
    };
    // They have no credentials, and so no account, until STS gave them some.
    const tokens = Statement.find(({ Sid }) => Sid === "OwnRolesForTokens");
    expect(tokens).toEqual({
      Sid: "OwnRolesForTokens",
      Effect: "Allow",
      Principal: "*",
      Action: ["sts:AssumeRoleWithWebIdentity", "sts:AssumeRoleWithSAML"],
      Resource: "arn:aws*:iam::123456789012:role/*",
    });
  });

  it("has a policy on every endpoint, and sends data to trusted accounts only", async () => {
    const run = await runStack("network", {
      environment: "prod",
      config: { trustedAccountIds: ["210987654321"] },
    });
    const endpoints = run.all("aws:ec2/vpcEndpoint:VpcEndpoint");
    expect(endpoints.every(({ inputs }) => inputs.policy !== undefined)).toBe(true);
    for (const { name, inputs } of endpoints) {
      const { Statement } = JSON.parse(inputs.policy as string) as {
        Statement: Array<{ Action: unknown; Condition?: Record<string, Record<string, unknown>> }>;
      };
      const everything = Statement.filter(({ Action }) => Action === "*");
      for (const { Condition } of everything) {
        expect(Condition?.StringEquals?.["aws:PrincipalAccount"], name).toBe("123456789012");
      }
    }
    expect(run.inputs("network-endpoint-s3").policy).toContain(
      '"aws:ResourceAccount":["123456789012","210987654321"]',
    );
    expect(run.inputs("network-endpoint-s3").policy).toContain(
      "arn:aws:s3:::prod-us-east-1-starport-layer-bucket/*",
    );
    await expect(
      runStack("network", { config: { trustedAccountIds: ["partner"] } }),
    ).rejects.toThrow('network:trustedAccountIds has "partner", which is no account id');
  });

  it("closes the default security group and gives no public addresses", async () => {
    const run = await runStack("network");
    expect(run.inputs("network-default-security-group")).toMatchObject({ ingress: [], egress: [] });
    for (const subnet of run.all("aws:ec2/subnet:Subnet")) {
      expect(subnet.inputs.mapPublicIpOnLaunch).toBe(false);
    }
  });

  it("records all traffic, encrypted, for a year in production", async () => {
    const run = await runStack("network", { environment: "prod" });
    expect(run.inputs("network-flow-log").trafficType).toBe("ALL");
    expect(run.inputs("network-flow-logs")).toMatchObject({
      retentionInDays: 365,
      kmsKeyId: "arn:aws:kms:us-east-1:123456789012:network-flow-log-key",
    });
    expect(run.inputs("network-flow-log-key").enableKeyRotation).toBe(true);
  });

  it("moves no subnet when a zone is added", () => {
    const [two, four] = [layout("10.0.0.0/16", 2), layout("10.0.0.0/16", 4)];
    expect(four.private.slice(0, 2)).toEqual(two.private);
    expect(four.public.slice(0, 2)).toEqual(two.public);
    expect(four.data.slice(0, 2)).toEqual(two.data);
    expect(two).toEqual({
      private: ["10.0.0.0/19", "10.0.32.0/19"],
      public: ["10.0.128.0/22", "10.0.132.0/22"],
      data: ["10.0.144.0/22", "10.0.148.0/22"],
    });
  });

  it("says all that is wrong at once", async () => {
    const wrong = runStack("network", { config: { vpcCidr: "10.0.1.0/16", natStrategy: "many" } });
    await expect(wrong).rejects.toThrow("network:vpcCidr 10.0.1.0/16 has bits set");
    await expect(wrong).rejects.toThrow('network:natStrategy is "many"; it must be one of none');
  });
});
