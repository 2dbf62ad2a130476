/** What a real account refuses, forgets or breaks, although every program runs on mocks. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { StaticSite } from "../components/static-site";
import { compose, type Composition } from "../testing/composition";
import { readStackConfig, runComponents, runStack } from "../testing/harness";
import { ENVIRONMENTS, stackNames, STACKS } from "../testing/template";

const LOAD_BALANCER = "aws:lb/loadBalancer:LoadBalancer";

describe("zones", () => {
  it("that take no clusters are left out, whatever letter an account gives them", async () => {
    const { outputs } = await runStack("network", { environment: "prod" });
    expect(outputs.availabilityZones).toEqual(["us-east-1a", "us-east-1b", "us-east-1c"]);
  });

  it("may come and go in a region without moving a subnet", async () => {
    const run = await runStack("network", { environment: "prod" });
    for (const { name, request } of run.all("aws:ec2/subnet:Subnet")) {
      expect(request.ignoreChanges, name).toEqual(["availabilityZone"]);
    }
  });

  it("more of them replace neither the proxy, nor the API's link before another is there", async () => {
    const database = await runStack("database-rds", { environment: "prod" });
    const [proxy] = database.all("aws:rds/proxy:Proxy");
    expect(proxy?.request.ignoreChanges).toEqual(["vpcSubnetIds"]);
    const api = await runStack("services-api", { environment: "prod" });
    const [link] = api.all("aws:apigatewayv2/vpcLink:VpcLink");
    expect(link?.request.deleteBeforeReplace).toBe(false);
  });
});

describe("roles", () => {
  /** Services whose documents say that they send the account they act for. */
  const SAY_FOR_WHOM = [
    "codebuild.amazonaws.com",
    "config.amazonaws.com",
    "ecs-tasks.amazonaws.com",
    "monitoring.rds.amazonaws.com",
    "vpc-flow-logs.amazonaws.com",
  ];

  it("ask a service for the account only where the service tells it", async () => {
    const deployment = await compose("default", {
      environment: "prod",
      config: { security: { manageAccountBaseline: true } },
    });
    const asked = new Set<string>();
    for (const { inputs } of deployment.all("aws:iam/role:Role")) {
      const policy = JSON.parse(inputs.assumeRolePolicy as string) as {
        Statement: Array<{ Principal: { Service: string }; Condition?: object }>;
      };
      for (const { Principal, Condition } of policy.Statement) {
        if (JSON.stringify(Condition ?? {}).includes("aws:SourceAccount")) {
          asked.add(Principal.Service);
        }
      }
    }
    expect([...asked].sort()).toEqual(SAY_FOR_WHOM);
  });

  it("and policies name no partition: there is more than one", () => {
    const files = readdirSync(STACKS, { recursive: true, encoding: "utf8" })
      .filter((file) => /^(shared|[a-z0-9-]+\/src)\/.*\.ts$/.test(file))
      .filter((file) => !/^shared\/test|node_modules/.test(file));
    expect(files.length).toBeGreaterThan(90);
    for (const file of files) {
      expect(readFileSync(join(STACKS, file), "utf8"), file).not.toMatch(/\barn:aws:/);
    }
  });
});

describe("addresses of IPv6", () => {
  const doors = (deployment: Composition): string[] =>
    deployment
      .all("aws:route53/record:Record")
      .filter(({ inputs }) => inputs.type === "AAAA")
      .map(({ name }) => name)
      .sort();
  const open = (deployment: Composition): string[] =>
    deployment
      .all("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
      .filter(({ inputs }) => inputs.cidrIpv6 !== undefined)
      .map(({ inputs }) => `${inputs.securityGroupId} ${inputs.cidrIpv6} ${inputs.fromPort}`)
      .sort();

  it("are at every public door, and let nobody in anywhere else", async () => {
    const deployment = await compose("default", {
      config: { network: { dualStack: true }, "services-ecs": { publicLoadBalancer: true } },
    });
    for (const { name, inputs } of deployment.all(LOAD_BALANCER)) {
      expect(inputs.ipAddressType, name).toBe(inputs.internal ? undefined : "dualstack");
    }
    const [domain] = deployment.all("aws:apigatewayv2/domainName:DomainName");
    expect(domain?.inputs.domainNameConfiguration.ipAddressType).toBe("dualstack");
    expect(doors(deployment)).toEqual([
      "compute-ec2-host-record-ipv6",
      "services-api-domain-record-ipv6",
      "services-ecs-host-record-ipv6",
    ]);
    const group = deployment.output("security", "albSecurityGroupId") as string;
    expect(open(deployment)).toEqual([`${group} ::/0 443`, `${group} ::/0 80`]);
  });

  it("are nowhere unless somebody wants them", async () => {
    const deployment = await compose("default");
    expect(doors(deployment)).toEqual([]);
    expect(open(deployment)).toEqual([]);
    for (const { inputs } of deployment.all(LOAD_BALANCER)) {
      expect(inputs.ipAddressType).toBeUndefined();
    }
  });

  it("open no more than the older ones do", async () => {
    const config = { dualStack: true, publicIngressCidrs: ["198.51.100.0/24", "2001:db8::/32"] };
    const run = await runStack("security", { config });
    const networks = run
      .all("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
      .map(({ inputs }) => (inputs.cidrIpv4 ?? inputs.cidrIpv6) as string | undefined)
      .filter((network) => network !== undefined);
    expect([...new Set(networks)]).toEqual(["198.51.100.0/24", "2001:db8::/32"]);
    for (const [publicIngressCidrs, reason] of [
      [["2001:db8::/32"], "set network:dualStack"],
      [["everybody"], "which is no network"],
    ] as const) {
      await expect(readStackConfig("security", { config: { publicIngressCidrs } })).rejects.toThrow(
        reason,
      );
    }
  });
});

describe("a destroy", () => {
  it("is not stopped by backups where nothing is worth keeping", async () => {
    const backups = { sharedFileSystem: true, backups: true };
    const vault = async (forceDestroy: boolean): Promise<unknown> =>
      (await runStack("storage", { config: { ...backups, forceDestroy } })).inputs(
        "storage-backup-vault",
      ).forceDestroy;
    expect(await vault(true)).toBe(true);
    expect(await vault(false)).toBe(false);
  });
});

describe("firewalls", () => {
  it("let bodies through that are larger than 8 KiB", async () => {
    const deployment = await compose("default", { environment: "prod" });
    const firewalls = deployment.all("aws:wafv2/webAcl:WebAcl");
    expect(firewalls).toHaveLength(2);
    for (const { name, inputs } of firewalls) {
      const common = (inputs.rules as any[]).find(
        (rule) => rule.name === "AWSManagedRulesCommonRuleSet",
      );
      expect(common.statement.managedRuleGroupStatement.ruleActionOverrides, name).toEqual([
        { name: "SizeRestrictions_BODY", actionToUse: { count: {} } },
      ]);
    }
  });
});

describe("rules of security groups", () => {
  it.each(ENVIRONMENTS)("in %s: none is made by two components", async (environment) => {
    const deployment = await compose("default", { environment });
    for (const direction of ["Ingress", "Egress"]) {
      const seen = new Map<string, string>();
      const type = `aws:vpc/securityGroup${direction}Rule:SecurityGroup${direction}Rule`;
      for (const { stack, name, inputs } of deployment.all(type)) {
        const { securityGroupId, referencedSecurityGroupId, cidrIpv4, cidrIpv6 } = inputs;
        const { ipProtocol, fromPort, toPort } = inputs;
        const other = referencedSecurityGroupId ?? cidrIpv4 ?? cidrIpv6;
        const rule = [securityGroupId, other, ipProtocol, fromPort, toPort].join(" ");
        expect(seen.get(rule), `${stack}/${name}`).toBeUndefined();
        seen.set(rule, `${stack}/${name}`);
      }
      expect(seen.size).toBeGreaterThan(8);
    }
  });
});

describe("order", () => {
  it("a budget and every alarm wait until they may tell somebody", async () => {
    const run = await runStack("security");
    expect(run.before("security-budget")).toContain("security-alarms-policy");
  });
});

describe("other regions", () => {
  it("are reached with the same sign-in as the deployment's own", async () => {
    const run = await runStack("dns", {
      environment: "prod",
      provider: { profile: "shop-prod", allowedAccountIds: '["333333333333"]' },
    });
    const [provider] = run.all("pulumi:providers:aws");
    expect(provider?.inputs).toMatchObject({ region: "us-east-1", profile: "shop-prod" });
    expect(JSON.stringify(provider?.inputs.allowedAccountIds)).toContain("333333333333");
  });

  it("have no certificates for CloudFront", async () => {
    const site = (region: string): Promise<unknown> =>
      runComponents((context) => {
        const certificateArn = `arn:aws:acm:${region}:123456789012:certificate/one`;
        new StaticSite(context, "site", {
          description: "Pages",
          forceDestroy: false,
          names: { hosts: ["www.example.com"], certificateArn },
        });
      });
    await expect(site("eu-west-1")).rejects.toThrow("is not in us-east-1");
    await expect(site("us-east-1")).resolves.toBeDefined();
  });
});

describe("instances", () => {
  it("are of a kind that the image runs on", async () => {
    const read = (config: object): Promise<unknown> =>
      readStackConfig("compute-ec2", { config: { ...config } });
    const arm = ["t4g.small", "m7gd.large", "c8g.large"];
    await expect(read({ instanceTypes: arm })).rejects.toThrow("processors of ARM");
    await expect(read({ instanceTypes: arm, amiId: "ami-0123" })).resolves.toBeDefined();
    const x86 = ["t3.small", "m7i.large", "g5.xlarge", "i4i.large"];
    await expect(read({ instanceTypes: x86 })).resolves.toBeDefined();
  });
});

/** The most characters that AWS takes, by type and property; less what it adds to a prefix. */
const LONGEST: ReadonlyArray<readonly [type: string, property: string, most: number]> = [
  ["aws:apigatewayv2/api:Api", "name", 128],
  ["aws:athena/workgroup:Workgroup", "name", 128],
  ["aws:autoscaling/group:Group", "name", 255],
  ["aws:backup/plan:Plan", "name", 50],
  ["aws:backup/selection:Selection", "name", 50],
  ["aws:backup/vault:Vault", "name", 50],
  ["aws:batch/computeEnvironment:ComputeEnvironment", "namePrefix", 102],
  ["aws:batch/jobDefinition:JobDefinition", "name", 128],
  ["aws:batch/jobQueue:JobQueue", "name", 128],
  ["aws:budgets/budget:Budget", "name", 100],
  ["aws:cloudwatch/dashboard:Dashboard", "dashboardName", 255],
  ["aws:cloudwatch/eventRule:EventRule", "name", 64],
  ["aws:cloudwatch/logGroup:LogGroup", "name", 512],
  ["aws:cloudwatch/metricAlarm:MetricAlarm", "name", 255],
  ["aws:codebuild/project:Project", "name", 150],
  ["aws:cognito/userPool:UserPool", "name", 128],
  ["aws:cognito/userPoolDomain:UserPoolDomain", "domain", 63],
  ["aws:ec2/launchTemplate:LaunchTemplate", "namePrefix", 102],
  ["aws:ecr/repository:Repository", "name", 256],
  ["aws:ecs/cluster:Cluster", "name", 255],
  ["aws:ecs/service:Service", "name", 255],
  ["aws:eks/cluster:Cluster", "name", 100],
  ["aws:iam/instanceProfile:InstanceProfile", "name", 128],
  ["aws:iam/role:Role", "name", 64],
  ["aws:kms/alias:Alias", "name", 256],
  ["aws:lambda/function:Function", "name", 64],
  ["aws:lb/loadBalancer:LoadBalancer", "name", 32],
  ["aws:lb/targetGroup:TargetGroup", "namePrefix", 6],
  ["aws:rds/instance:Instance", "identifier", 63],
  ["aws:rds/parameterGroup:ParameterGroup", "namePrefix", 229],
  ["aws:rds/proxy:Proxy", "name", 63],
  ["aws:rds/subnetGroup:SubnetGroup", "name", 255],
  ["aws:s3/bucket:Bucket", "bucketPrefix", 37],
  ["aws:secretsmanager/secret:Secret", "name", 512],
  ["aws:sns/topic:Topic", "name", 256],
  ["aws:sqs/queue:Queue", "name", 80],
  ["aws:wafv2/webAcl:WebAcl", "name", 128],
];

describe("names", () => {
  it.each(ENVIRONMENTS)(
    "in %s: fit into what AWS takes, however long the deployment's id",
    async (environment) => {
      const long = { deploymentId: "D".padEnd(16, "Z") };
      const config = Object.fromEntries(stackNames().map((stack) => [stack, long]));
      const deployment = await compose("default", {
        environment,
        config: { ...config, storage: { ...long, sharedFileSystem: true, dataLake: true } },
      });
      const seen = new Set<string>();
      for (const { type, name, inputs } of deployment.resources) {
        for (const [limited, property, most] of LONGEST) {
          const text = limited === type ? (inputs[property] as unknown) : undefined;
          if (typeof text === "string") {
            seen.add(type);
            expect(text.length, `${name}: ${text}`).toBeLessThanOrEqual(most);
            expect(text, name).not.toMatch(/--/);
          }
        }
      }
      expect(seen.size).toBeGreaterThan(25);
    },
  );
});
