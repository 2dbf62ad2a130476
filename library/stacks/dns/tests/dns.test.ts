import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("dns");

describe("dns", () => {
  it("names the zone after the environment, and production after the domain", async () => {
    const zone = async (environment: "dev" | "prod"): Promise<unknown> =>
      (await runStack("dns", { environment })).outputs.zoneName;
    expect(await zone("dev")).toBe("dev.example.com");
    expect(await zone("prod")).toBe("example.com");
  });

  it("proves a wildcard certificate through its own zone and waits for it", async () => {
    const run = await runStack("dns");
    expect(run.inputs("dns-certificate")).toMatchObject({
      domainName: "dev.example.com",
      subjectAlternativeNames: ["*.dev.example.com"],
      validationMethod: "DNS",
    });
    expect(run.inputs("dns-certificate-proof")).toMatchObject({
      name: "_validation.dev.example.com",
      type: "CNAME",
      records: ["_value.acm.example.com"],
    });
    // What others get is the certificate that was issued, not the one that was asked for.
    const issued = "arn:aws:acm:us-east-1:123456789012:certificate/issued";
    const validated = await runStack("dns", {
      known: { "dns-certificate-validation": { certificateArn: issued } },
    });
    expect(validated.outputs.certificateArn).toBe(issued);
  });

  it("lets only the named authorities issue certificates", async () => {
    const run = await runStack("dns");
    expect(run.inputs("dns-caa").records).toEqual(['0 issue "amazon.com"']);
  });

  it("logs queries outside of dev, where Route 53 can write them", async () => {
    expect((await runStack("dns")).has("dns-query-log")).toBe(false);
    const prod = await runStack("dns", { environment: "prod" });
    expect(prod.has("dns-query-log")).toBe(true);
    expect(prod.inputs("dns-query-logs").retentionInDays).toBe(365);
    expect(prod.inputs("dns-query-log-region").region).toBe("us-east-1");
  });

  it("uses a zone that exists and leaves it alone", async () => {
    const run = await runStack("dns", { config: { existingZoneId: "Z0123456789ABC" } });
    expect(run.all("aws:route53/zone:Zone")).toEqual([]);
    expect(run.outputs).toMatchObject({ zoneId: "Z0123456789ABC", nameServers: [] });
    expect(run.inputs("dns-certificate-proof").zoneId).toBe("Z0123456789ABC");
  });

  it("refuses a name that is no domain", async () => {
    const wrong = runStack("dns", { config: { zoneName: "dev." } });
    await expect(wrong).rejects.toThrow('dns:zoneName is "dev."');
  });
});
