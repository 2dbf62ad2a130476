import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { type Recorded, type Run, runStack } from "../../shared/testing/harness";

keepsItsContract("compute-ec2");

describe("compute-ec2", () => {
  it("starts instances with IMDSv2, an encrypted disk and no way in from outside", async () => {
    const template = (await runStack("compute-ec2")).inputs("compute-ec2-launch-template");
    expect(template.metadataOptions.httpTokens).toBe("required");
    expect(template.blockDeviceMappings[0].ebs).toMatchObject({
      encrypted: "true",
      kmsKeyId: expect.stringMatching(/dataKeyArn$/) as string,
    });
    expect(template.networkInterfaces[0].associatePublicIpAddress).toBe("false");
    expect(template.keyName).toBeUndefined();
  });

  it("runs in private subnets behind TLS, and answers before there is an application", async () => {
    const run = await runStack("compute-ec2");
    expect(run.inputs("compute-ec2-group").vpcZoneIdentifiers).toHaveLength(3);
    expect(run.inputs("compute-ec2-https-listener").defaultActions).toEqual([
      {
        type: "forward",
        targetGroupArn: "arn:aws:lb:us-east-1:123456789012:compute-ec2-targets",
      },
    ]);
    const script = Buffer.from(
      run.inputs("compute-ec2-launch-template").userData as string,
      "base64",
    ).toString();
    expect(script).toContain("http.server 8080");
    expect(run.outputs.serviceUrl).toBe("https://web.dev.example.com");
  });

  it("uses one spare instance in dev and three reserved ones in production", async () => {
    const group = async (environment: "dev" | "prod"): Promise<unknown> => {
      const inputs = (await runStack("compute-ec2", { environment })).inputs("compute-ec2-group");
      return [
        inputs.minSize,
        inputs.mixedInstancesPolicy.instancesDistribution.onDemandPercentageAboveBaseCapacity,
      ];
    };
    expect(await group("dev")).toEqual([1, 0]);
    expect(await group("prod")).toEqual([3, 100]);
  });

  it("takes a fixed image when one is given", async () => {
    const fixed = await runStack("compute-ec2", { config: { amiId: "ami-0feed" } });
    expect(fixed.inputs("compute-ec2-launch-template").imageId).toBe("ami-0feed");
    const newest = await runStack("compute-ec2");
    expect(newest.inputs("compute-ec2-launch-template").imageId).toBe("ami-0123456789abcdef0");
  });

  it("renews instances when a release says so, and not when AWS has a newer image", async () => {
    const image = (run: Run): Recorded | undefined =>
      run.all("random:index/randomShuffle:RandomShuffle")[0];
    const run = await runStack("compute-ec2");
    expect(image(run)?.name).toBe("compute-ec2-image-1");
    expect(image(run)?.request.ignoreChanges).toEqual(["inputs"]);
    const next = await runStack("compute-ec2", { config: { imageRelease: "2026-11" } });
    expect(image(next)?.name).toBe("compute-ec2-image-2026-11");
  });

  it("takes spare capacity of several types only", async () => {
    const { mixedInstancesPolicy } = (await runStack("compute-ec2")).inputs("compute-ec2-group");
    expect(mixedInstancesPolicy.launchTemplate.overrides).toEqual([
      { instanceType: "t3.micro" },
      { instanceType: "t3a.micro" },
      { instanceType: "t2.micro" },
    ]);
    await expect(
      runStack("compute-ec2", { config: { spot: true, instanceTypes: ["t3.micro"] } }),
    ).rejects.toThrow("compute-ec2:instanceTypes needs at least 3 types for spare capacity");
    await expect(
      runStack("compute-ec2", { config: { spot: false, instanceTypes: ["large"] } }),
    ).rejects.toThrow('compute-ec2:instanceTypes has "large", which is no type like t3.micro');
  });

  it("opens the port that it listens on, whichever that is", async () => {
    const run = await runStack("compute-ec2", { config: { appPort: 3000 } });
    expect(run.inputs("compute-ec2-ec2-from-alb-3000").fromPort).toBe(3000);
    expect(run.inputs("compute-ec2-targets").port).toBe(3000);
  });

  it("refuses a group that is larger than its limit", async () => {
    await expect(runStack("compute-ec2", { config: { minSize: 5 } })).rejects.toThrow(
      "compute-ec2:maxSize must not be less than minSize",
    );
  });
});
