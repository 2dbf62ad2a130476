import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { type Run, runStack } from "../../shared/testing/harness";

keepsItsContract("containers-apps");

interface Container {
  image: string;
  readonlyRootFilesystem: boolean;
  secrets: Array<{ name: string; valueFrom: string }>;
  linuxParameters: { capabilities: { drop: string[] } };
}

function container(run: Run): Container {
  const definitions = run.inputs("containers-apps-api-task").containerDefinitions as string;
  return (JSON.parse(definitions) as [Container])[0];
}

describe("containers-apps", () => {
  it("runs containers without privileges, with secrets from Secrets Manager", async () => {
    const api = container(await runStack("containers-apps"));
    expect(api.readonlyRootFilesystem).toBe(true);
    expect(api.linuxParameters.capabilities.drop).toEqual(["ALL"]);
    expect(api.secrets[0]?.valueFrom).toMatch(/databaseSecretArn$/);
  });

  it("runs in private subnets and rolls a bad release back", async () => {
    const service = (await runStack("containers-apps")).inputs("containers-apps-api-service");
    expect(service.networkConfiguration.assignPublicIp).toBe(false);
    expect(service.deploymentCircuitBreaker).toEqual({ enable: true, rollback: true });
  });

  it("runs the built image when none is named", async () => {
    const run = await runStack("containers-apps", {
      config: { apps: [{ name: "api", path: "/*" }] },
    });
    const built = "123456789012.dkr.ecr.us-east-1.amazonaws.com/api:1.0.0";
    expect(container(run).image).toBe(built);
    expect(run.outputs.imageUris).toEqual({ api: built });
  });

  it("sends each path to its application, in order", async () => {
    const run = await runStack("containers-apps", {
      config: {
        apps: [
          { name: "worker", path: "/work/*" },
          { name: "api", path: "/*" },
        ],
      },
    });
    expect(run.inputs("containers-apps-worker-rule")).toMatchObject({
      priority: 10,
      conditions: [{ pathPattern: { values: ["/work/*"] } }],
    });
    expect(run.inputs("containers-apps-api-rule").priority).toBe(20);
  });

  it("scales further in production and allows no sessions there", async () => {
    for (const [environment, range, sessions] of [
      ["dev", [1, 2], true],
      ["prod", [3, 20], false],
    ] as const) {
      const run = await runStack("containers-apps", { environment });
      const { minCapacity, maxCapacity } = run.inputs("containers-apps-api-scaling");
      expect([minCapacity, maxCapacity]).toEqual(range);
      expect(run.inputs("containers-apps-api-service").enableExecuteCommand).toBe(sessions);
    }
  });

  it("refuses images that may change and images that nobody built", async () => {
    const apps = (app: object): Promise<unknown> =>
      runStack("containers-apps", { config: { apps: [{ path: "/*", ...app }] } });
    for (const image of ["nginx:latest", "nginx", "nginx:stable"]) {
      await expect(apps({ name: "api", image })).rejects.toThrow("an image that has a version");
    }
    await expect(apps({ name: "web" })).rejects.toThrow(
      "containers-apps:apps has web without an image, and none of that name is built",
    );
  });
});
