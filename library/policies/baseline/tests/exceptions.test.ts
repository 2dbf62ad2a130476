import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { exceptionFor } from "../src/exceptions";
import { openPorts } from "../src/exposure";
import { resourcePolicies, resourcePolicy, stackPolicies } from "../src/pack";

const EXCEPTION = {
  resource: "compute-ec2-legacy-*",
  reason: "the partner's gateway has no fixed address",
  until: "2026-06-30",
};

describe("exceptions", () => {
  it("cover the named resources until their last day", () => {
    const on = (name: string, day: string): unknown =>
      exceptionFor(name, { exceptions: [EXCEPTION] }, new Date(`${day}T12:00:00Z`));
    expect(on("compute-ec2-legacy-ssh", "2026-06-30")).toBe(EXCEPTION);
    expect(on("compute-ec2-legacy-ssh", "2026-07-01")).toBeUndefined();
    expect(on("compute-ec2-other", "2026-01-01")).toBeUndefined();
    expect(exceptionFor("compute-ec2-legacy-ssh", {}, new Date())).toBeUndefined();
  });

  it("take other characters of a name literally", () => {
    const config = { exceptions: [{ ...EXCEPTION, resource: "a.b" }] };
    expect(exceptionFor("axb", config, new Date("2026-01-01"))).toBeUndefined();
    expect(exceptionFor("a.b", config, new Date("2026-01-01"))).toBeDefined();
  });
});

describe("the pack", () => {
  beforeEach(() => vi.useFakeTimers({ now: new Date("2026-01-01") }));
  afterEach(() => vi.useRealTimers());

  it("reports problems with the resource's name, and none for exceptions", () => {
    const validate = (name: string): string[] => {
      const reported: string[] = [];
      const args = {
        type: "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        name,
        urn: `urn:pulumi:D1BRV40-compute-ec2-dev::shop::t::${name}`,
        props: { cidrIpv4: "0.0.0.0/0", fromPort: 22, toPort: 22 },
        getConfig: () => ({ exceptions: [EXCEPTION] }),
      };
      const { validateResource } = resourcePolicy(openPorts);
      (validateResource as (args: unknown, report: (message: string) => void) => void)(
        args,
        (message) => reported.push(message),
      );
      return reported;
    };
    expect(validate("compute-ec2-ssh")).toEqual([
      "compute-ec2-ssh: ports 22 to 22 are open to the internet; name a security group or a network",
    ]);
    expect(validate("compute-ec2-legacy-ssh")).toEqual([]);
  });

  it("reports problems of a whole unit, unless it is excepted", () => {
    const validate = (exceptions: unknown[]): string[] => {
      const reported: string[] = [];
      const resources = Array.from({ length: 6 }, (_, n) => ({
        type: "aws:ec2/eip:Eip",
        name: `network-${n}`,
        urn: "",
        props: {},
      }));
      const [policy] = stackPolicies();
      (policy?.validateStack as (args: unknown, report: (message: string) => void) => void)(
        { resources, getConfig: () => ({ exceptions }) },
        (message) => reported.push(message),
      );
      return reported;
    };
    expect(validate([])).toHaveLength(1);
    expect(validate([{ ...EXCEPTION, resource: "unit" }])).toEqual([]);
  });

  it("refuses a deployment, and names each rule once", () => {
    const policies = [...resourcePolicies(), ...stackPolicies()];
    expect(policies.every((policy) => policy.enforcementLevel === "mandatory")).toBe(true);
    expect(new Set(policies.map((policy) => policy.name)).size).toBe(policies.length);
  });
});
