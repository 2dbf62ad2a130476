import { describe, expect, it } from "vitest";
import {
  arn,
  canReach,
  publicDoors,
  secretReaders,
  lostKeys,
  servedBy,
  statements,
  survivors,
  waysIn,
} from "../testing/claims";
import { whoMay } from "../testing/access";
import { compose, type Composition } from "../testing/composition";
import { ENVIRONMENTS } from "../testing/template";

const LOAD_BALANCER = "aws:lb/loadBalancer:LoadBalancer";
const ROUTE = "aws:apigatewayv2/route:Route";

describe("the API's tokens", () => {
  it.each(ENVIRONMENTS)("in %s: no application can be reached without one", async (environment) => {
    const deployment = await compose("default", { environment });
    const [integration] = deployment.all("aws:apigatewayv2/integration:Integration");
    const [internal, ...others] = deployment
      .all(LOAD_BALANCER)
      .filter(({ stack }) => stack === "services-ecs");
    expect(others).toEqual([]);
    expect(internal?.inputs.internal).toBe(true);
    // What the API serves is behind this load balancer, and behind no other one.
    expect(integration?.inputs.integrationUri).toBe(
      arn("lb", "services-ecs-internal-https-listener"),
    );
    const served = internal ? servedBy(deployment, internal) : [];
    expect(served).toEqual(["containers-apps-api-targets"]);
    for (const open of deployment.all(LOAD_BALANCER).filter(({ inputs }) => !inputs.internal)) {
      expect(servedBy(deployment, open)).not.toContain("containers-apps-api-targets");
    }
    for (const { inputs } of deployment.all(ROUTE)) {
      expect(inputs.authorizationType).toBe("JWT");
      expect(inputs.authorizationScopes).not.toEqual([]);
    }
    // Only the API's link gets to the load balancer, and only it and other containers get further.
    const into = (group: string): string[] =>
      waysIn(deployment)
        .filter(({ to }) => to === group)
        .map(({ from, port }) => `${from} ${port}`)
        .sort();
    expect(into("security-internal-alb-group")).toEqual(["security-link-group 443"]);
    expect(into("security-app-group")).toEqual([
      "security-app-group 8080",
      "security-internal-alb-group 8080",
    ]);
    expect(into("security-link-group")).toEqual([]);
  });

  it("is not walked around by an application that goes public: it leaves the API's door", async () => {
    const deployment = await compose("default", {
      config: {
        "services-ecs": { publicLoadBalancer: true },
        "containers-apps": {
          apps: [
            { name: "api", path: "/*", image: "example/api:1.0.0" },
            { name: "site", path: "/*", image: "example/site:1.0.0", exposure: "public" },
          ],
        },
      },
    });
    const served = deployment
      .all(LOAD_BALANCER)
      .filter(({ stack }) => stack === "services-ecs")
      .map((one) => [one.inputs.internal, servedBy(deployment, one)]);
    expect(served).toEqual([
      [true, ["containers-apps-api-targets"]],
      [false, ["containers-apps-site-targets"]],
    ]);
  });

  it("leave the browser's question alone, which carries none", async () => {
    const deployment = await compose("microservices");
    const routes = deployment.all(ROUTE).map(({ inputs }) => inputs.routeKey as string);
    // API Gateway answers preflight requests itself when no route takes them.
    expect(routes.filter((key) => /^(ANY|OPTIONS|\$default)/.test(key))).toEqual([]);
    const [api] = deployment.all("aws:apigatewayv2/api:Api");
    const { allowOrigins, allowMethods, allowHeaders } = api?.inputs.corsConfiguration ?? {};
    expect(allowOrigins).toEqual(["http://localhost:3000"]);
    expect(allowHeaders).toContain("authorization");
    for (const key of routes) {
      expect(allowMethods).toContain(key.split(" ")[0]);
    }
  });

  it("can carry every scope that a route asks for, for pages and for services", async () => {
    const deployment = await compose("microservices");
    const wanted = new Set(
      deployment.all(ROUTE).flatMap(({ inputs }) => inputs.authorizationScopes as string[]),
    );
    expect([...wanted].sort()).toEqual(["api/read", "api/write"]);
    const clients = deployment.all("aws:cognito/userPoolClient:UserPoolClient");
    expect(clients).toHaveLength(2);
    for (const { inputs } of clients) {
      expect(inputs.allowedOauthScopes).toEqual(expect.arrayContaining([...wanted]));
    }
    const audiences = deployment.all("aws:apigatewayv2/authorizer:Authorizer")[0]?.inputs
      .jwtConfiguration.audiences as string[];
    expect(audiences).toEqual(clients.map(({ name }) => `${name}-id`).reverse());
  });
});

describe("order", () => {
  /** Every resource that names something of its own component, with what it must wait for. */
  function usersOf(
    deployment: Composition,
    owner: string,
    parts: readonly string[],
  ): Array<{ user: string; missing: string[] }> {
    const found: Array<{ user: string; missing: string[] }> = [];
    for (const run of deployment.runs.values()) {
      for (const thing of run.all(owner)) {
        const partNames = run.resources
          .filter(
            ({ type, request }) =>
              parts.includes(type) && request.dependencies.includes(thing.request.urn),
          )
          .map(({ name }) => name);
        const inside = run.resources.filter(
          ({ request }) => request.parent === thing.request.parent,
        );
        const words = [arn(owner.split(/[:/]/)[1] ?? "", thing.name), `${thing.name}-id`];
        for (const user of run.resources.filter((one) => !inside.includes(one))) {
          const text = JSON.stringify(user.inputs);
          if (words.some((word) => text.includes(word))) {
            const before = run.before(user.name);
            found.push({
              user: `${user.name} of ${thing.name}`,
              missing: partNames.filter((name) => !before.has(name)),
            });
          }
        }
      }
    }
    return found;
  }

  it.each(ENVIRONMENTS)(
    "in %s: whoever uses a role waits for what it may do",
    async (environment) => {
      const deployment = await compose("default", { environment });
      const users = usersOf(deployment, "aws:iam/role:Role", [
        "aws:iam/rolePolicy:RolePolicy",
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
      ]);
      expect(users.length).toBeGreaterThan(8);
      expect(users.filter(({ missing }) => missing.length > 0)).toEqual([]);
      const cluster = deployment.run("services-eks").before("services-eks-cluster");
      expect(cluster).toContain("services-eks-cluster-role-managed-4");
      expect(cluster).toContain("services-eks-node-role-managed-1");
    },
  );

  it.each(ENVIRONMENTS)(
    "in %s: whoever uses a bucket waits for its protection",
    async (environment) => {
      const deployment = await compose("default", { environment });
      const users = usersOf(deployment, "aws:s3/bucket:Bucket", [
        "aws:s3/bucketPolicy:BucketPolicy",
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
      ]);
      expect(users.length).toBeGreaterThan(3);
      expect(users.filter(({ missing }) => missing.length > 0)).toEqual([]);
    },
  );

  it("the driver of shared files starts when its pods can get their role", async () => {
    const deployment = await compose("default", { environment: "prod" });
    const before = deployment.run("services-eks").before("services-eks-addon-aws-efs-csi-driver");
    expect(before).toContain("services-eks-files-node-kube-system-efs-csi-node-sa");
  });

  it("moves nothing that the first edition made: every part of a component has an alias", async () => {
    const deployment = await compose("default", { environment: "prod" });
    const moved = deployment.resources.filter(({ request }) =>
      request.parent.includes("cloud:components:"),
    );
    expect(moved.length).toBeGreaterThan(100);
    expect(moved.filter(({ request }) => !request.hasAliases).map(({ name }) => name)).toEqual([]);
  });
});

describe("the database", () => {
  const apps = [
    { name: "api", path: "/*", image: "example/api:1.0.0", database: true, port: 3000 },
    {
      name: "other",
      path: "/other/*",
      image: "example/other:1.0.0",
      secrets: { KEY: "session-signing-key" },
    },
  ];

  it("can be used by an application that says so, from its first moment", async () => {
    const deployment = await compose("default", {
      environment: "prod",
      config: { "containers-apps": { apps } },
    });
    const definition = deployment.run("containers-apps").inputs("containers-apps-api-task");
    const [container] = JSON.parse(definition.containerDefinitions as string) as Array<{
      environment: Array<{ name: string; value: string }>;
    }>;
    const env = Object.fromEntries(
      (container?.environment ?? []).map(({ name, value }) => [name, value]),
    );
    expect(env).toMatchObject({
      DATABASE_HOST: "database-rds-proxy.us-east-1.example.com",
      DATABASE_PORT: "5432",
      DATABASE_NAME: "app",
      DATABASE_SECRET_ARN: arn("secretsmanager", "secrets-database-user"),
    });
    // Its group gets to the database's, on the port that the database listens on.
    const service = deployment.run("containers-apps").inputs("containers-apps-api-service");
    const database = deployment.run("database-rds").inputs("database-rds-postgres");
    const [from] = service.networkConfiguration.securityGroups as [string];
    const [to] = database.vpcSecurityGroupIds as [string];
    expect(canReach(deployment, from, to, database.port as number)).toBe(true);
    expect(canReach(deployment, from, to, 22)).toBe(false);
    expect(deployment.needs.get("containers-apps")).toContain("database-rds");
  });

  it("gives its secrets to those who use it, and to whoever manages them", async () => {
    const deployment = await compose("default", {
      environment: "prod",
      config: { "containers-apps": { apps }, "services-eks": { databasePods: ["shop/api"] } },
    });
    expect(secretReaders(deployment)).toEqual({
      "secrets-database-user": [
        "containers-apps-api-role",
        "database-rds-credentials-role",
        "services-eks-database-pods-role",
      ],
      "database-rds-credentials-first-user": [
        "database-rds-credentials-role",
        "database-rds-proxy-role",
      ],
      "database-rds-credentials-second-user": [
        "database-rds-credentials-role",
        "database-rds-proxy-role",
      ],
      "secrets-session-signing-key": [
        "containers-apps-other-execution-role",
        "containers-apps-other-role",
      ],
      "authentication-machine-client-secret": [],
    });
    const master = deployment.output("database-rds", "masterSecretArn") as string;
    expect(whoMay(deployment, "secretsmanager:GetSecretValue", master)).toEqual([
      "database-rds-credentials-role",
    ]);
  });

  it("is not there in every deployment, and nobody minds", async () => {
    const deployment = await compose("microservices", { enable: ["containers-apps"] });
    expect(deployment.needs.get("containers-apps")).not.toContain("database-rds");
    expect(deployment.runs.has("containers-apps")).toBe(true);
    await expect(
      compose("microservices", {
        enable: ["containers-apps"],
        config: { "containers-apps": { apps } },
      }),
    ).rejects.toThrow("has api with a database, but the deployment has none; enable database-rds");
  });
});

describe("what is public", () => {
  it.each([
    [
      "default",
      [
        "authentication-login-domain for signing in",
        "compute-ec2-load-balancer for compute-ec2-targets",
        "services-api-domain with tokens",
      ],
    ],
    ["minimal", []],
    [
      "microservices",
      ["authentication-login-domain for signing in", "services-api-domain with tokens"],
    ],
    ["data-platform", []],
  ])("in %s: exactly this", async (template, doors) => {
    for (const environment of template === "minimal" ? (["dev"] as const) : ENVIRONMENTS) {
      expect(publicDoors(await compose(template, { environment })), environment).toEqual(doors);
    }
  });

  it.each(["default", "microservices", "data-platform"])(
    "%s lets the internet in on the ports of the web only, at public load balancers only",
    async (template) => {
      const deployment = await compose(template, { environment: "prod" });
      const open = waysIn(deployment).filter(({ from }) => from === "0.0.0.0/0" || from === "::/0");
      expect(open.map(({ to, port }) => `${to} ${port}`).sort()).toEqual([
        "security-alb-group 443",
        "security-alb-group 80",
      ]);
    },
  );
});

describe("ports", () => {
  it("are open between a load balancer and what it serves, whichever they are", async () => {
    const deployment = await compose("default", {
      config: {
        "compute-ec2": { appPort: 3000 },
        "containers-apps": {
          apps: [
            { name: "api", path: "/*", image: "example/api:1.0.0", port: 9090 },
            { name: "web", path: "/web/*", image: "example/web:1.0.0", port: 8081 },
          ],
        },
      },
    });
    const groupOf: Record<string, string> = {
      "compute-ec2": deployment.output("security", "ec2SecurityGroupId"),
      "containers-apps": deployment.output("security", "appSecurityGroupId"),
    };
    let checked = 0;
    for (const balancer of deployment.all(LOAD_BALANCER)) {
      for (const name of servedBy(deployment, balancer)) {
        const targets = deployment
          .all("aws:lb/targetGroup:TargetGroup")
          .find((group) => group.name === name);
        const [from] = balancer.inputs.securityGroups as [string];
        const to = groupOf[targets?.stack ?? ""] ?? "";
        expect(canReach(deployment, from, to, targets?.inputs.port as number), name).toBe(true);
        checked += 1;
      }
    }
    expect(checked).toBe(3);
  });
});

describe("spare capacity", () => {
  it("is what the cluster says, for every service of every environment", async () => {
    for (const [environment, spotPercent] of [
      ["dev", 100],
      ["stage", 50],
      ["prod", 0],
    ] as const) {
      const deployment = await compose("default", {
        environment,
        config: { "services-ecs": { spotPercent } },
      });
      const [cluster] = deployment.all("aws:ecs/clusterCapacityProviders:ClusterCapacityProviders");
      const services = deployment.all("aws:ecs/service:Service");
      expect(services).toHaveLength(1);
      for (const { inputs } of services) {
        expect(inputs.capacityProviderStrategies, environment).toEqual(
          cluster?.inputs.defaultCapacityProviderStrategies,
        );
      }
    }
  });
});

describe("monitoring", () => {
  it.each([
    ["minimal", "dev"],
    ["microservices", "prod"],
    ["data-platform", "stage"],
  ] as const)("works with what %s has in %s", async (template, environment) => {
    const deployment = await compose(template, { environment, enable: ["monitoring"] });
    const others = [...deployment.runs.keys()].filter((stack) => stack !== "monitoring");
    // It comes last, and waits for everything that is there.
    expect([...deployment.runs.keys()].at(-1)).toBe("monitoring");
    expect([...(deployment.needs.get("monitoring") ?? [])].sort()).toEqual(others.sort());
    const { dashboardBody } = deployment.run("monitoring").inputs("monitoring-dashboard");
    expect(dashboardBody).not.toMatch(/"(undefined|null|)"\]/);
  });

  it.each(["default", "minimal", "microservices", "data-platform"])(
    "%s has somebody who hears alarms, and a budget",
    async (template) => {
      const deployment = await compose(template);
      expect(deployment.all("aws:sns/topicSubscription:TopicSubscription")).toHaveLength(1);
      expect(deployment.all("aws:budgets/budget:Budget")).toHaveLength(1);
    },
  );
});

describe("ownership", () => {
  it.each(ENVIRONMENTS)("in %s: nothing is made twice, under any name", async (environment) => {
    const deployment = await compose("default", { environment });
    const names = new Map<string, string>();
    for (const { stack, type, name, inputs } of deployment.resources) {
      const physical = inputs.name ?? inputs.identifier ?? inputs.domainName;
      if (typeof physical !== "string" || type.startsWith("aws:route53/record")) {
        continue;
      }
      const key = `${type} ${physical}`;
      expect(names.get(key), `${stack}/${name} makes ${key} again`).toBeUndefined();
      names.set(key, `${stack}/${name}`);
    }
    expect(names.size).toBeGreaterThan(60);
  });

  it("is recorded: every resource says which unit knows it", async () => {
    const deployment = await compose("default", { environment: "stage" });
    for (const { stack, inputs } of deployment.resources) {
      if (inputs.tags?.Unit !== undefined) {
        expect(inputs.tags.Unit).toBe(`D1BRV40-${stack}-stage`);
      }
    }
  });
});

describe("what survives a destroy", () => {
  it("is nothing but keys in dev", async () => {
    const left = survivors(await compose("default"));
    expect(left).toEqual([
      // As long as the secret that it belongs to, which RDS takes away with the database.
      "database-rds-master-rotation stays",
      "network-flow-log-key can be had back for 7 days",
      "security-data-key can be had back for 7 days",
      "security-logs-key can be had back for 7 days",
      "security-secrets-key can be had back for 7 days",
    ]);
  });

  it("is everything that somebody could miss in production", async () => {
    const left = survivors(await compose("default", { environment: "prod" }));
    expect(left).toEqual(
      expect.arrayContaining([
        "authentication-users refuses",
        "database-rds-postgres leaves a snapshot",
        "database-rds-postgres refuses",
        "secrets-database-user can be had back for 30 days",
        "security-data-key stays",
        "services-ecr-api refuses while it holds something",
        "services-eks-cluster refuses",
        "services-ecs-internal-load-balancer refuses",
        "storage-data refuses while it holds something",
        "storage-file-system refuses",
      ]),
    );
  });

  it.each(ENVIRONMENTS)(
    "in %s: can still be decrypted as long as it is there",
    async (environment) => {
      for (const template of ["default", "data-platform"]) {
        const deployment = await compose(template, { environment });
        expect(lostKeys(deployment), template).toEqual([]);
      }
      const aurora = await compose("default", {
        environment,
        config: { "database-rds": { kind: "aurora" } },
      });
      expect(lostKeys(aurora)).toEqual([]);
    },
  );

  it("is lost with its key, and then the deployment is refused", async () => {
    await expect(
      compose("default", { environment: "prod", config: { security: { retainDataKey: false } } }),
    ).rejects.toThrow("database-rds:finalSnapshot needs security:retainDataKey");
  });
});

describe("policies of roles", () => {
  it.each(ENVIRONMENTS)("in %s: none allows a whole service on everything", async (environment) => {
    const deployment = await compose("default", { environment });
    for (const { name, inputs } of deployment.all("aws:iam/rolePolicy:RolePolicy")) {
      for (const { Action, Resource } of statements(inputs.policy as string)) {
        const actions = [Action].flat();
        expect(
          actions.filter((action) => /^(\*|[a-z0-9-]+:\*)$/.test(action)),
          name,
        ).toEqual([]);
        if ([Resource].flat().includes("*")) {
          // Only what AWS itself cannot limit to resources.
          expect(
            actions.filter(
              (action) =>
                !/^(ecr:GetAuthorizationToken|ssmmessages:|xray:Put|logs:DescribeLogGroups|secretsmanager:GetRandomPassword)/.test(
                  action,
                ),
            ),
            name,
          ).toEqual([]);
        }
      }
    }
  });
});
