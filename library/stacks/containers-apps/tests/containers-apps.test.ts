import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { type Run, runStack } from "../../shared/testing/harness";

keepsItsContract("containers-apps");

interface Container {
  name: string;
  image: string;
  essential: boolean;
  command?: string[];
  readonlyRootFilesystem: boolean;
  environment: Array<{ name: string; value: string }>;
  secrets: Array<{ name: string; valueFrom: string }>;
  mountPoints: Array<{ sourceVolume: string; containerPath: string; readOnly?: boolean }>;
  linuxParameters: {
    capabilities: { drop: string[] };
    tmpfs?: Array<{ containerPath: string; size: number; mountOptions: string[] }>;
  };
}

function containers(run: Run, app = "api"): Container[] {
  const definitions = run.inputs(`containers-apps-${app}-task`).containerDefinitions as string;
  return JSON.parse(definitions) as Container[];
}

function container(run: Run): Container {
  const [first] = containers(run);
  if (first === undefined) {
    throw new Error("the task has no containers");
  }
  return first;
}

const IMAGE = "registry.example.com/thing:1.2.3";

function withApps(...apps: object[]): Promise<Run> {
  return runStack("containers-apps", { environment: "prod", config: { apps } });
}

const SECRET = "arn:aws:sample:us-east-1:123456789012:secrets/applicationSecretArn";
const DATABASE = "arn:aws:sample:us-east-1:123456789012:database-rds/applicationSecretArn";

describe("containers-apps", () => {
  it("runs containers without privileges, and without anything they did not ask for", async () => {
    const api = container(await runStack("containers-apps", { environment: "prod" }));
    expect(api.readonlyRootFilesystem).toBe(true);
    expect(api.linuxParameters.capabilities.drop).toEqual(["ALL"]);
    expect(api.secrets).toEqual([]);
    expect(api.environment).toEqual([
      { name: "ENVIRONMENT", value: "prod" },
      { name: "PORT", value: "8080" },
    ]);
  });

  it("lets every container write to /tmp, whoever it runs as", async () => {
    const run = await withApps(
      {
        name: "api",
        path: "/*",
        image: IMAGE,
        memoryMb: 4096,
        sidecars: [{ name: "agent", image: IMAGE }],
      },
      { name: "large", image: IMAGE, memoryMb: 4096, tmpMb: 2048 },
    );
    // Volumes of a Fargate task belong to root; the template's image runs as somebody else.
    expect(run.inputs("containers-apps-api-task").volumes).toEqual([]);
    for (const one of containers(run)) {
      expect(one.mountPoints ?? [], one.name).toEqual([]);
      expect(one.linuxParameters.tmpfs, one.name).toEqual([
        {
          containerPath: "/tmp",
          size: 512,
          mountOptions: ["mode=1777", "nosuid", "nodev", "exec"],
        },
      ]);
    }
    expect(containers(run, "large")[0]?.linuxParameters.tmpfs?.[0]?.size).toBe(2048);
  });

  it("takes no more than half of a task's memory for /tmp, all containers together", async () => {
    const sized = (more: object): Promise<Run> =>
      withApps({ name: "api", image: IMAGE, memoryMb: 2048, ...more });
    const beside = (count: number): object => ({
      sidecars: Array.from({ length: count }, (_, index) => ({ name: `s${index}`, image: IMAGE })),
    });
    await expect(sized({ tmpMb: 1025 })).rejects.toThrow(
      "has api with 1025 MB in /tmp of all containers, which is memory; at most half of its 2048 MB",
    );
    await expect(sized({ tmpMb: 512, ...beside(2) })).rejects.toThrow("has api with 1536 MB");
    const most = await sized({ tmpMb: 512, ...beside(1) });
    expect(containers(most).map((one) => one.linuxParameters.tmpfs?.[0]?.size)).toEqual([512, 512]);
    // Nobody who left it to us is refused.
    const many = await sized(beside(7));
    expect(containers(many).map((one) => one.linuxParameters.tmpfs?.[0]?.size)).toEqual(
      Array.from({ length: 8 }, () => 128),
    );
  });

  it("leaves /tmp on the disk where the root can be written to", async () => {
    const open = { name: "api", image: IMAGE, readOnlyRoot: false };
    const run = await withApps({ ...open, sidecars: [{ name: "agent", image: IMAGE }] });
    expect(containers(run)).toHaveLength(2);
    for (const one of containers(run)) {
      expect(one.linuxParameters.tmpfs, one.name).toBeUndefined();
    }
    const asked = await withApps({ ...open, tmpMb: 64 });
    expect(containers(asked)[0]?.linuxParameters.tmpfs?.[0]?.size).toBe(64);
  });

  it("takes every privilege of Linux away but those that a container keeps", async () => {
    const run = await withApps({
      name: "api",
      path: "/*",
      image: IMAGE,
      keepCapabilities: ["CHOWN", "SETGID", "SETUID"],
      sidecars: [
        { name: "agent", image: IMAGE },
        { name: "proxy", image: IMAGE, keepCapabilities: ["NET_BIND_SERVICE"] },
      ],
    });
    const [api, agent, proxy] = containers(run).map(
      ({ linuxParameters }) => linuxParameters.capabilities.drop,
    );
    expect(agent).toEqual(["ALL"]);
    expect(proxy).toContain("SETUID");
    expect(proxy).not.toContain("NET_BIND_SERVICE");
    expect(api).toHaveLength(11);
    // Fargate would not give one back that went with all of them.
    expect(api).not.toContain("ALL");
    expect(api).toContain("NET_RAW");
    for (const kept of [["SYS_ADMIN"], ["ALL"], "CHOWN"]) {
      await expect(withApps({ name: "api", image: IMAGE, keepCapabilities: kept })).rejects.toThrow(
        "containers-apps:apps",
      );
    }
  });

  it("gives each application its own settings, secrets, size and scale", async () => {
    const run = await withApps(
      {
        name: "api",
        path: "/*",
        image: IMAGE,
        env: { LOG_LEVEL: "debug" },
        secrets: { SIGNING_KEY: "api", DATABASE_PASSWORD: "database#password" },
        database: true,
        cpu: 2048,
        memoryMb: 8192,
        minTasks: 2,
        maxTasks: 7,
      },
      { name: "quiet", path: "/quiet/*", image: IMAGE },
    );
    const api = container(run);
    expect(api.secrets).toEqual([
      { name: "SIGNING_KEY", valueFrom: SECRET },
      { name: "DATABASE_PASSWORD", valueFrom: `${DATABASE}:password::` },
    ]);
    expect(Object.fromEntries(api.environment.map(({ name, value }) => [name, value]))).toEqual({
      ENVIRONMENT: "prod",
      PORT: "8080",
      DATABASE_HOST: "database-rds-applicationEndpoint",
      DATABASE_PORT: "5432",
      DATABASE_NAME: "database-rds-databaseName",
      DATABASE_SECRET_ARN: DATABASE,
      LOG_LEVEL: "debug",
    });
    expect(run.inputs("containers-apps-api-task")).toMatchObject({ cpu: "2048", memory: "8192" });
    expect(run.inputs("containers-apps-api-scaling")).toMatchObject({
      minCapacity: 2,
      maxCapacity: 7,
    });
    expect(containers(run, "quiet")[0]?.secrets).toEqual([]);
    expect(run.has("containers-apps-quiet-role-policy")).toBe(false);
  });

  it("lets a role read the secrets of its own application only", async () => {
    const run = await withApps(
      { name: "api", path: "/*", image: IMAGE, secrets: { KEY: "api" } },
      { name: "other", path: "/other", image: IMAGE, secrets: { KEY: "worker" }, database: true },
    );
    const secretsOf = (role: string): string[] => {
      const policy = run.inputs(`containers-apps-${role}-policy`).policy as string;
      const { Statement } = JSON.parse(policy) as {
        Statement: Array<{ Sid?: string; Resource: string[] }>;
      };
      return Statement.find(({ Sid }) => Sid === "OwnSecrets")?.Resource ?? [];
    };
    expect(secretsOf("api-role")).toEqual([SECRET]);
    expect(secretsOf("api-execution-role")).toEqual([SECRET]);
    expect(secretsOf("other-role")).toHaveLength(2);
    // What an application reads at run time is nothing that ECS has to know.
    expect(secretsOf("other-execution-role")).not.toContain(DATABASE);
  });

  it("reads secrets under other keys, where it names the keys", async () => {
    const key = "arn:aws:kms:us-east-1:444455556666:key/0123abcd-12ab-34cd-56ef-0123456789ab";
    const secrets = {
      TOKEN: "arn:aws:secretsmanager:us-east-1:444455556666:secret:partner-a1b2c3",
    };
    const run = await withApps({ name: "api", image: IMAGE, secrets, secretKeys: [key] });
    // ECS hands the secret over when a task starts, and the application may read it again.
    for (const role of ["api-role", "api-execution-role"]) {
      const { Statement } = JSON.parse(
        run.inputs(`containers-apps-${role}-policy`).policy as string,
      ) as { Statement: Array<{ Sid?: string; Resource: string[] }> };
      expect(Statement.find(({ Sid }) => Sid === "OwnSecretsKey")?.Resource, role).toEqual([
        "arn:aws:sample:us-east-1:123456789012:security/secretsKeyArn",
        key,
      ]);
    }
    for (const wrong of ["arn:aws:kms:us-east-1:444455556666:alias/a", "arn:aws:kms:*:*:key/*"]) {
      await expect(
        withApps({ name: "api", image: IMAGE, secrets, secretKeys: [wrong] }),
      ).rejects.toThrow("containers-apps:apps");
    }
  });

  it("lets a worker take its own work, and what is written down, and nothing else", async () => {
    const run = await withApps(
      {
        name: "mailer",
        image: IMAGE,
        queue: { name: "mails", messagesPerTask: 50 },
        permissions: [
          { actions: ["s3:GetObject"], resources: ["arn:aws:s3:::templates/*"] },
          { actions: ["ses:SendEmail"], resources: ["arn:aws:ses:us-east-1:1:identity/a.org"] },
        ],
      },
      { name: "other", image: IMAGE },
    );
    const { Statement } = JSON.parse(
      run.inputs("containers-apps-mailer-role-policy").policy as string,
    ) as { Statement: Array<Record<string, unknown>> };
    expect(Statement).toContainEqual(
      expect.objectContaining({
        Action: expect.arrayContaining(["sqs:ReceiveMessage", "sqs:DeleteMessage"]) as string[],
        Resource: "arn:aws:sqs:us-east-1:123456789012:mails",
      }),
    );
    expect(Statement.map(({ Sid }) => Sid)).toEqual(["Own0", "Own1", "OwnWork", "OwnDataKey"]);
    expect(Statement.at(-1)?.Condition).toEqual({
      StringLike: { "kms:ViaService": ["s3.*.amazonaws.com", "sqs.*.amazonaws.com"] },
    });
    expect(run.has("containers-apps-other-role-policy")).toBe(false);
    for (const permission of [
      { actions: ["s3:*"], resources: ["arn:aws:s3:::templates/*"] },
      { actions: ["s3:GetObject"], resources: ["*"] },
      { actions: ["s3:GetObject"], resources: ["arn:aws:s3:::*"] },
      { actions: [], resources: ["arn:aws:s3:::templates/*"] },
    ]) {
      await expect(
        withApps({ name: "mailer", image: IMAGE, permissions: [permission] }),
        JSON.stringify(permission),
      ).rejects.toThrow("containers-apps:apps");
    }
  });

  it("runs sidecars, and keeps an application's files where only it finds them", async () => {
    const run = await withApps({
      name: "api",
      path: "/*",
      image: IMAGE,
      sidecars: [{ name: "agent", image: IMAGE, env: { A: "b" } }],
      mounts: [{ path: "/data" }, { path: "/shared", readOnly: true }],
    });
    const [api, agent] = containers(run);
    expect(agent).toMatchObject({ name: "agent", essential: false });
    expect(api?.mountPoints).toContainEqual({
      sourceVolume: "files",
      containerPath: "/shared",
      readOnly: true,
    });
    expect(run.inputs("containers-apps-api-files").rootDirectory.path).toBe("/apps/api");
    const [files] = run.inputs("containers-apps-api-task").volumes;
    expect(files.efsVolumeConfiguration).toMatchObject({
      transitEncryption: "ENABLED",
      authorizationConfig: { iam: "ENABLED", accessPointId: "containers-apps-api-files-id" },
    });
    expect(run.inputs("containers-apps-api-role-policy").policy).toContain(
      '"elasticfilesystem:AccessPointArn":"arn:aws:efs:us-east-1:123456789012:containers-apps-api-files"',
    );
    await expect(
      runStack("containers-apps", {
        config: {
          fileSystemId: "",
          apps: [{ name: "api", image: IMAGE, mounts: [{ path: "/d" }] }],
        },
      }),
    ).rejects.toThrow("storage has no shared file system");
  });

  it("finds an application's files again after another name", async () => {
    const mounts = [{ path: "/data" }];
    const run = await withApps({ name: "shop", image: IMAGE, filesDirectory: "api", mounts });
    expect(run.inputs("containers-apps-shop-files").rootDirectory.path).toBe("/apps/api");
    await expect(
      withApps(
        { name: "shop", image: IMAGE, filesDirectory: "api", mounts },
        { name: "api", image: IMAGE, mounts },
      ),
    ).rejects.toThrow("containers-apps:apps has shop and api with the files of api");
  });

  it("opens the ports that applications listen on, from their door, and no others", async () => {
    const run = await runStack("containers-apps", {
      config: {
        apps: [
          { name: "api", path: "/*", image: IMAGE, port: 3000 },
          { name: "site", path: "/site/*", image: IMAGE, port: 8080, exposure: "public" },
          { name: "worker", image: IMAGE, port: 9000 },
        ],
      },
    });
    const rules = run
      .all("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
      .map(({ name }) => name.replace("containers-apps-app-from-", ""));
    expect(rules.sort()).toEqual([
      "alb-8080",
      "app-3000",
      "app-8080",
      "app-9000",
      "internal-alb-3000",
    ]);
  });

  it("attaches an application to one door: the internal one unless it says it is public", async () => {
    const run = await withApps(
      { name: "api", path: "/*", image: IMAGE },
      { name: "site", path: "/site/*", image: IMAGE, exposure: "public" },
    );
    expect(run.inputs("containers-apps-api-rule").listenerArn).toMatch(/\/httpsListenerArn$/);
    expect(run.inputs("containers-apps-site-rule").listenerArn).toMatch(/\/publicListenerArn$/);
    await expect(
      runStack("containers-apps", {
        config: {
          publicListenerArn: "",
          apps: [{ name: "site", path: "/*", image: IMAGE, exposure: "public" }],
        },
      }),
    ).rejects.toThrow("there is no public load balancer; set services-ecs:publicLoadBalancer");
  });

  it("rolls a release back that answers with errors", async () => {
    const run = await runStack("containers-apps");
    expect(run.inputs("containers-apps-api-service").alarms).toEqual({
      enable: true,
      rollback: true,
      alarmNames: ["d1brv40-dev-containers-apps-api-errors"],
    });
  });

  it("calls a share of the answers errors, not a number that busy applications always have", async () => {
    const alarm = (await runStack("containers-apps")).inputs("containers-apps-api-errors-alarm");
    expect(alarm.threshold).toBe(5);
    const [part, whole, share] = alarm.metricQueries;
    expect([part.metric.metricName, whole.metric.metricName]).toEqual([
      "HTTPCode_Target_5XX_Count",
      "RequestCount",
    ]);
    expect(part.metric.dimensions).toEqual(whole.metric.dimensions);
    expect(share).toMatchObject({
      expression: "IF(part >= 10, 100 * part / whole, 0)",
      returnData: true,
    });
    expect(alarm.metricName).toBeUndefined();
  });

  it("allows sessions only with everything that sessions need", async () => {
    const dev = await runStack("containers-apps");
    expect(dev.inputs("containers-apps-api-service").enableExecuteCommand).toBe(true);
    expect(container(dev).readonlyRootFilesystem).toBe(false);
    const { policy } = dev.inputs("containers-apps-api-role-policy");
    for (const needed of ["ssmmessages:OpenDataChannel", "logs:PutLogEvents", "kms:Decrypt"]) {
      expect(policy).toContain(needed);
    }
    await expect(
      withApps({ name: "api", path: "/*", image: IMAGE, sessions: true, readOnlyRoot: true }),
    ).rejects.toThrow("the agent of a session must write there");
  });

  it("refuses sizes that Fargate does not have, and what the deployment does not have", async () => {
    await expect(
      withApps({ name: "api", path: "/*", image: IMAGE, cpu: 256, memoryMb: 4096 }),
    ).rejects.toThrow("has api with 4096 MB for 256 units; Fargate has 512 to 2048");
    await expect(
      withApps({ name: "api", path: "/*", image: IMAGE, secrets: { KEY: "nobody" } }),
    ).rejects.toThrow("has api with the secret nobody, which is none of: api, worker, database");
    await expect(
      runStack("containers-apps", {
        config: { databaseEndpoint: "", apps: [{ name: "api", image: IMAGE, database: true }] },
      }),
    ).rejects.toThrow("has api with a database, but the deployment has none");
    await expect(
      withApps({ name: "api", image: IMAGE }, { name: "api", image: IMAGE }),
    ).rejects.toThrow("containers-apps:apps names an application twice");
  });

  it("says itself where its capacity comes from, and takes another answer without being replaced", async () => {
    const service = async (spotPercent: number): Promise<any> =>
      (await runStack("containers-apps", { config: { spotPercent } })).inputs(
        "containers-apps-api-service",
      );
    const strategies = (made: any): string[] =>
      made.capacityProviderStrategies.map(
        (one: { capacityProvider: string; base?: number; weight: number }) =>
          `${one.capacityProvider} ${one.base ?? 0} ${one.weight}`,
      );
    expect(strategies(await service(0))).toEqual(["FARGATE 1 100"]);
    expect(strategies(await service(40))).toEqual(["FARGATE 1 60", "FARGATE_SPOT 0 40"]);
    expect(strategies(await service(100))).toEqual(["FARGATE_SPOT 0 100"]);
    expect((await service(40)).forceNewDeployment).toBe(true);
    expect((await service(40)).launchType).toBeUndefined();
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

  it("sends each path to its application, longer paths first, whatever the list's order", async () => {
    const priorities = async (...apps: Array<[name: string, path: string]>): Promise<number[]> => {
      const run = await runStack("containers-apps", {
        config: { apps: apps.map(([name, path]) => ({ name, path, image: "example/one:1.0.0" })) },
      });
      return apps.map(([name, path]) => {
        const rule = run.inputs(`containers-apps-${name}-rule`);
        expect(rule.conditions).toEqual([{ pathPattern: { values: [path] } }]);
        return rule.priority as number;
      });
    };
    const [api = 0, work = 0] = await priorities(["api", "/*"], ["worker", "/work/*"]);
    expect(work).toBeLessThan(api);
    expect(work).toBeGreaterThan(0);
    expect(api).toBeLessThanOrEqual(50_000);
    // AWS refuses two rules at one place, and makes the new one before it deletes the old one: who
    // is renamed must move, and nobody else may.
    const [shop = 0, same] = await priorities(["shop", "/*"], ["worker", "/work/*"]);
    expect(shop).not.toBe(api);
    expect(same).toBe(work);
    expect((await priorities(["new", "/new/*"], ["api", "/*"]))[1]).toBe(api);
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
