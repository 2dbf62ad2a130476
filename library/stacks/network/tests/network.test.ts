import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";
import { layout, newerRange } from "../../shared/components/network/settings";

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

  it("can have addresses of IPv6, which get out and let nothing in", async () => {
    expect(
      (await runStack("network")).all(
        "aws:ec2/egressOnlyInternetGateway:EgressOnlyInternetGateway",
      ),
    ).toEqual([]);
    const run = await runStack("network", { config: { dualStack: true } });
    expect(run.outputs.dualStack).toBe(true);
    expect(run.inputs("network-vpc").assignGeneratedIpv6CidrBlock).toBe(true);
    expect(run.inputs("network-private-subnet-1")).toMatchObject({
      ipv6CidrBlock: "2001:db8:1234:ab01::/64",
      assignIpv6AddressOnCreation: true,
    });
    expect(run.inputs("network-data-subnet-0").assignIpv6AddressOnCreation).toBe(false);
    expect(run.inputs("network-private-route-ipv6-0")).toMatchObject({
      destinationIpv6CidrBlock: "::/0",
      egressOnlyGatewayId: "network-egress-only-gateway-id",
    });
    expect(run.inputs("network-public-route-ipv6").gatewayId).toBe("network-internet-gateway-id");
    const ranges = run
      .all("aws:ec2/subnet:Subnet")
      .map(({ inputs }) => inputs.ipv6CidrBlock as string);
    expect(new Set(ranges).size).toBe(6);
    // A zone more moves none of them.
    expect(newerRange("2001:db8:1234:ab00::/56", "data", 3)).toBe("2001:db8:1234:ab23::/64");
    expect(newerRange("2001:db8::/56", "public", 1)).toBe("2001:db8:0:11::/64");
    expect(() => newerRange("10.0.0.0/16", "data", 0)).toThrow("is not a network of 56 bits");
  });

  it("uses a VPC that is there already, and changes nothing of it", async () => {
    const existing = {
      existingVpcId: "vpc-1",
      existingPublicSubnetIds: ["subnet-1", "subnet-2"],
      existingPrivateSubnetIds: ["subnet-3", "subnet-4"],
      existingDataSubnetIds: ["subnet-5", "subnet-6"],
      existingPrivateRouteTableIds: ["rtb-1"],
    };
    const run = await runStack("network", {
      environment: "stage",
      config: { ...existing, interfaceEndpoints: ["sts"] },
    });
    expect(run.outputs).toMatchObject({
      vpcId: "vpc-1",
      vpcCidr: "172.31.0.0/16",
      availabilityZones: ["us-east-1a", "us-east-1a"],
      dataSubnetIds: ["subnet-5", "subnet-6"],
      natGatewayIds: [],
    });
    const types = new Set(run.resources.map(({ type }) => type.split(":").at(-1)));
    for (const none of ["Vpc", "Subnet", "RouteTable", "Route", "NatGateway", "InternetGateway"]) {
      expect(types, none).not.toContain(none);
    }
    expect(run.inputs("network-endpoint-sts").subnetIds).toEqual(["subnet-3", "subnet-4"]);
    expect(run.inputs("network-endpoint-ingress").cidrIpv4).toBe("172.31.0.0/16");
    expect(run.inputs("network-flow-log").vpcId).toBe("vpc-1");
    await expect(
      runStack("network", { config: { ...existing, existingDataSubnetIds: ["subnet-5"] } }),
    ).rejects.toThrow("network:existingDataSubnetIds must name at least two subnets");
    await expect(
      runStack("network", { config: { existingPrivateRouteTableIds: ["rtb-1"] } }),
    ).rejects.toThrow("network:existingVpcId is missing");
  });
});
