import * as pulumi from "@pulumi/pulumi";
import { beforeEach, describe, expect, it } from "vitest";
import {
  carve,
  ConfigError,
  ConfigReader,
  fit,
  formatNetwork,
  isText,
  overlap,
  parseNetwork,
  policyDocument,
  StackContext,
  unitName,
} from "../index";
import { settle } from "../testing/harness";

const IDENTITY = {
  deploymentId: "D1BRV40",
  organization: "Müller & Söhne <AG>",
  project: "ecommerce",
  environment: "dev",
  domain: "example.com",
  team: "infrastructure",
  costCenter: "engineering",
} as const;

describe("names", () => {
  const context = new StackContext("database-rds", IDENTITY);

  it("start with the component in the state and with the deployment in the account", () => {
    expect(context.logical("subnet", 2)).toBe("database-rds-subnet-2");
    expect(context.physical(63, "postgres")).toBe("d1brv40-dev-database-rds-postgres");
    expect(context.path("logs")).toBe("/d1brv40/dev/database-rds/logs");
    expect(unitName("D1BRV40", "network", "prod")).toBe("D1BRV40-network-prod");
  });

  it("fit every limit and stay different", () => {
    for (const limit of [24, 32, 63]) {
      const names = ["a", "b"].map((end) => context.physical(limit, "x".repeat(80) + end));
      expect(names.every((name) => name.length <= limit)).toBe(true);
      expect(new Set(names).size).toBe(2);
    }
    expect(fit("short", 32)).toBe("short");
    expect(fit("a".repeat(20) + "-----" + "b".repeat(20), 32)).not.toContain("--");
  });

  it("are made of what AWS accepts", () => {
    const odd = new StackContext("network", { ...IDENTITY, deploymentId: "D1" });
    expect(odd.physical(64, "Über_Größe 7")).toMatch(/^[a-z0-9-]+$/);
  });

  it("tag whose a resource is, in characters that AWS accepts", () => {
    expect(context.tags("postgres", { Tier: "data" })).toEqual({
      Name: "d1brv40-dev-database-rds-postgres",
      Organization: "Müller   Söhne  AG ",
      Project: "ecommerce",
      Environment: "dev",
      Team: "infrastructure",
      CostCenter: "engineering",
      DeploymentId: "D1BRV40",
      ManagedBy: "nimbus",
      Unit: "D1BRV40-database-rds-dev",
      Tier: "data",
    });
  });
});

describe("networks", () => {
  it("are cut into parts that do not overlap", () => {
    const parts = carve("10.0.0.0/16", [19, 19, 22, 24, 20]);
    expect(parts).toEqual([
      "10.0.0.0/19",
      "10.0.32.0/19",
      "10.0.64.0/22",
      "10.0.68.0/24",
      "10.0.80.0/20",
    ]);
    parts.forEach((one, at) =>
      parts.slice(at + 1).forEach((other) => expect(overlap(one, other)).toBe(false)),
    );
  });

  it("are read and written back, up to the last address", () => {
    for (const text of ["0.0.0.0/0", "10.0.0.0/8", "255.255.255.255/32", "192.168.16.0/20"]) {
      expect(formatNetwork(parseNetwork(text))).toBe(text);
    }
  });

  it("refuse what is none, and parts that do not fit", () => {
    for (const wrong of [
      "10.0.0.0",
      "10.0.0.0/33",
      "256.0.0.0/8",
      "10.0.0.1/24",
      "",
      "a.b.c.d/8",
    ]) {
      expect(() => parseNetwork(wrong), wrong).toThrow(RangeError);
    }
    expect(() => carve("10.0.0.0/24", [25, 25, 25])).toThrow("no room");
    expect(() => carve("10.0.0.0/24", [16])).toThrow("no room");
  });
});

describe("configuration", () => {
  beforeEach(() =>
    pulumi.runtime.setAllConfig({
      "demo:count": "3",
      "demo:blank": " ",
      "demo:list": '["a","b"]',
      "demo:broken": "[",
      "other:flag": "true",
    }),
  );

  it("is typed, has defaults, and is of one component only", () => {
    const reader = new ConfigReader("demo");
    expect(reader.integer("count", { min: 1, max: 3 })).toBe(3);
    expect(reader.texts("list")).toEqual(["a", "b"]);
    expect(reader.flag("flag", false)).toBe(false);
    expect(reader.choice("size", ["small", "large"], "large")).toBe("large");
    expect(reader.finish("done")).toBe("done");
  });

  it("that nobody knows yet is no mistake, whatever its type", () => {
    const unknown = pulumi.runtime.unknownValue;
    pulumi.runtime.setAllConfig({
      "demo:vpc": unknown,
      "demo:nets": unknown,
      "demo:arns": unknown,
    });
    const reader = new ConfigReader("demo");
    expect(reader.id("vpc", "vpc-")).toBe(unknown);
    expect(reader.texts("nets", { min: 2 })).toEqual([unknown, unknown]);
    const arns = reader.textMap("arns");
    expect([arns["any"], Object.keys(arns), "any" in arns]).toEqual([unknown, [], true]);
    expect(reader.finish("done")).toBe("done");
  });

  it("reports everything that is wrong, together, as an error that engines know", () => {
    const reader = new ConfigReader("demo");
    reader.text("name");
    reader.integer("blank");
    reader.integer("count", { max: 2 });
    reader.list("broken", isText, { of: "names" });
    reader.problem("list", "is out of order");
    const finish = (): unknown => reader.finish(undefined);
    expect(finish).toThrow(ConfigError);
    expect(finish).toThrow(
      [
        "the configuration of demo is wrong:",
        "  - demo:name is missing; set it, for example to some text",
        '  - demo:blank is " "; it must be a whole number',
        '  - demo:count is "3"; it must be a whole number, at most 2',
        '  - demo:broken is "["; it must be a list of names',
        "  - demo:list is out of order",
      ].join("\n"),
    );
    const error = new ConfigError("demo", ["x"]);
    expect(pulumi.RunError.isInstance(error)).toBe(true);
  });
});

describe("policies", () => {
  it("wait for outputs in them", async () => {
    const text = await settle(
      policyDocument([
        { Effect: "Allow", Action: "s3:GetObject", Resource: pulumi.output("arn:aws:s3:::b/*") },
      ]),
    );
    expect(JSON.parse(text)).toEqual({
      Version: "2012-10-17",
      Statement: [{ Effect: "Allow", Action: "s3:GetObject", Resource: "arn:aws:s3:::b/*" }],
    });
  });
});
