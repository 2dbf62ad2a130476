/**
 * What each component is for, seen from those who use it: outputs of one are looked for in the
 * resources of the others, in all environments. A component alone could keep none of these.
 */
import { describe, expect, it } from "vitest";
import { whoMay } from "../testing/access";
import { canReach, servedBy, statements } from "../testing/claims";
import { compose, type Composition, type Owned } from "../testing/composition";
import { ENVIRONMENTS, type Environment, stackTemplate } from "../testing/template";

const LOAD_BALANCER = "aws:lb/loadBalancer:LoadBalancer";

/** Every environment, so that nothing holds in one of them by chance. */
function everywhere(
  name: string,
  claim: (deployment: Composition, environment: Environment) => void,
): void {
  it.each(ENVIRONMENTS)(`in %s: ${name}`, async (environment) => {
    const config = { "containers-apps": { apps: [{ name: "api", path: "/*", database: true }] } };
    claim(await compose("default", { environment, config }), environment);
  });
}

/** The component's place: what it waits for, and its priority among the ready. */
function place(deployment: Composition, stack: string): { after: string[]; priority: number } {
  return {
    after: [...(deployment.needs.get(stack) ?? [])].sort(),
    priority: stackTemplate(stack).priority,
  };
}

function inputs(deployment: Composition, stack: string, name: string): any {
  return deployment.run(stack).inputs(name);
}

function outside(deployment: Composition, stack: string, type: string): Owned[] {
  return deployment.all(type).filter((resource) => resource.stack !== stack);
}

describe("dns", () => {
  everywhere("its certificate is at every door, and every name is in its zone", (deployment) => {
    expect(place(deployment, "dns")).toEqual({ after: [], priority: 10 });
    const certificate = deployment.output("dns", "certificateArn") as string;
    const doors = [
      ...deployment
        .all("aws:lb/listener:Listener")
        .filter((listener) => listener.inputs.protocol === "HTTPS")
        .map((listener) => listener.inputs.certificateArn as string),
      ...deployment
        .all("aws:apigatewayv2/domainName:DomainName")
        .map((domain) => domain.inputs.domainNameConfiguration.certificateArn as string),
    ];
    expect(doors).toHaveLength(3);
    expect(new Set(doors)).toEqual(new Set([certificate]));
    const zone = deployment.output("dns", "zoneName") as string;
    const records = outside(deployment, "dns", "aws:route53/record:Record");
    expect(records).toHaveLength(3);
    for (const record of records) {
      expect(record.inputs.zoneId).toBe(deployment.output("dns", "zoneId"));
      expect(record.inputs.name).toMatch(new RegExp(`^[a-z]+\\.${zone.replaceAll(".", "\\.")}$`));
    }
  });
});

describe("network", () => {
  everywhere("what stands in it stands where it should", (deployment) => {
    expect(place(deployment, "network")).toEqual({ after: [], priority: 20 });
    const subnets = (tier: string): string[] =>
      deployment.output("network", `${tier}SubnetIds`) as string[];
    for (const { name, inputs: made } of deployment.all(LOAD_BALANCER)) {
      expect(made.subnets, name).toEqual(subnets(made.internal ? "private" : "public"));
    }
    const database = inputs(deployment, "database-rds", "database-rds-subnets");
    expect(database.subnetIds).toEqual(subnets("data"));
    for (const running of [
      inputs(deployment, "containers-apps", "containers-apps-api-service").networkConfiguration
        .subnets,
      inputs(deployment, "compute-lambda", "compute-lambda-processor").vpcConfig.subnetIds,
      inputs(deployment, "compute-ec2", "compute-ec2-group").vpcZoneIdentifiers,
      inputs(deployment, "services-eks", "services-eks-cluster").vpcConfig.subnetIds,
      inputs(deployment, "services-api", "services-api-vpc-link").subnetIds,
    ]) {
      expect(running).toEqual(subnets("private"));
    }
    for (const type of [
      "aws:ec2/securityGroup:SecurityGroup",
      "aws:lb/targetGroup:TargetGroup",
      "aws:ec2/flowLog:FlowLog",
    ]) {
      for (const { name, inputs: made } of deployment.all(type)) {
        expect(made.vpcId, name).toBe(deployment.output("network", "vpcId"));
      }
    }
  });

  everywhere("has the addresses and zones that are promised", (deployment, environment) => {
    const promised = { dev: ["10.0", 2], stage: ["10.1", 2], prod: ["10.2", 3] } as const;
    const [start, zones] = promised[environment];
    expect(inputs(deployment, "network", "network-vpc").cidrBlock).toBe(`${start}.0.0/16`);
    const made = deployment.all("aws:ec2/subnet:Subnet");
    expect(made).toHaveLength(3 * zones);
    for (const subnet of made) {
      expect(subnet.inputs.cidrBlock).toMatch(new RegExp(`^${start.replace(".", "\\.")}\\.`));
    }
    const used = new Set(made.map((subnet) => subnet.inputs.availabilityZone as string));
    expect([...used]).toEqual(deployment.output("network", "availabilityZones"));
  });

  everywhere("whatever runs gets out through a NAT gateway that gets out", (deployment) => {
    const run = deployment.run("network");
    const tables = (subnet: string): string[] =>
      run
        .all("aws:ec2/routeTableAssociation:RouteTableAssociation")
        .filter((one) => one.inputs.subnetId === subnet)
        .map((one) => one.inputs.routeTableId as string);
    const wayOut = (subnet: string): any => {
      const [table, ...others] = tables(subnet);
      expect(others).toEqual([]);
      return run
        .all("aws:ec2/route:Route")
        .find(
          ({ inputs: route }) =>
            route.routeTableId === table && route.destinationCidrBlock === "0.0.0.0/0",
        )?.inputs;
    };
    const places = inputs(deployment, "containers-apps", "containers-apps-api-service")
      .networkConfiguration.subnets as string[];
    for (const subnet of places) {
      const { natGatewayId, gatewayId } = wayOut(subnet);
      expect(gatewayId).toBeUndefined();
      const nat = run
        .all("aws:ec2/natGateway:NatGateway")
        .find(({ name }) => `${name}-id` === natGatewayId);
      expect(deployment.output("network", "publicSubnetIds")).toContain(nat?.inputs.subnetId);
      expect(wayOut(nat?.inputs.subnetId as string).gatewayId).toBe("network-internet-gateway-id");
    }
    // Stores have no way out at all.
    for (const subnet of deployment.output("network", "dataSubnetIds") as string[]) {
      expect(wayOut(subnet)).toBeUndefined();
    }
  });
});

describe("security", () => {
  everywhere("its groups, keys and roles are those that the others use", (deployment) => {
    expect(place(deployment, "security")).toEqual({ after: ["network"], priority: 30 });
    const given = (name: string): string => deployment.output("security", name) as string;
    const template = inputs(deployment, "compute-ec2", "compute-ec2-launch-template");
    expect(template.networkInterfaces[0].securityGroups).toEqual([given("ec2SecurityGroupId")]);
    expect(template.iamInstanceProfile.name).toBe(given("ec2InstanceProfileName"));
    const keys = ["dataKeyArn", "logsKeyArn", "secretsKeyArn"].map(given);
    for (const { stack, name, inputs: made } of deployment.resources) {
      const key = (made.kmsKeyId ?? made.kmsKeyArn ?? made.kmsMasterKeyId) as string | undefined;
      // The network comes first and brings a key of its own for its records.
      if (key !== undefined && stack !== "network") {
        expect(keys, name).toContain(key);
      }
    }
    const alarms = deployment.all("aws:cloudwatch/metricAlarm:MetricAlarm");
    const told = alarms.filter(({ inputs: alarm }) =>
      (alarm.alarmActions as string[]).includes(given("alarmTopicArn")),
    );
    expect(told.length).toBeGreaterThan(15);
  });
});

describe("secrets", () => {
  everywhere("are under its path and key, and filled by who knows the values", (deployment) => {
    expect(place(deployment, "secrets")).toEqual({ after: ["security"], priority: 40 });
    const prefix = deployment.output("secrets", "secretPathPrefix") as string;
    for (const { name, inputs: made } of deployment.all("aws:secretsmanager/secret:Secret")) {
      expect((made.name ?? made.namePrefix) as string, name).toContain(`${prefix}/`);
      expect(made.kmsKeyId, name).toBe(deployment.output("security", "secretsKeyArn"));
    }
    const secret = deployment.output("secrets", "databaseSecretArn") as string;
    expect(whoMay(deployment, "secretsmanager:PutSecretValue", secret)).toEqual([
      "database-rds-credentials-role",
    ]);
    const rotated = inputs(deployment, "database-rds", "database-rds-credentials-rotation");
    expect(rotated.secretId).toBe(secret);
  });
});

describe("authentication", () => {
  everywhere("who signs in there is let in at the API, and nobody else", (deployment) => {
    expect(place(deployment, "authentication")).toEqual({
      after: ["secrets", "security"],
      priority: 50,
    });
    const [authorizer] = deployment.all("aws:apigatewayv2/authorizer:Authorizer");
    expect(authorizer?.inputs.jwtConfiguration).toEqual({
      issuer: deployment.output("authentication", "issuerUrl"),
      audiences: [
        deployment.output("authentication", "webClientId"),
        deployment.output("authentication", "machineClientId"),
      ],
    });
    const scopes = Object.values(
      deployment.output("authentication", "apiScopes") as Record<string, string>,
    );
    for (const { inputs: route } of deployment.all("aws:apigatewayv2/route:Route")) {
      expect(scopes).toEqual(expect.arrayContaining(route.authorizationScopes as string[]));
      expect(route.authorizerId).toBe("services-api-authorizer-id");
    }
  });
});

describe("storage", () => {
  everywhere("objects that arrive reach the function, which may read and write", (deployment) => {
    expect(place(deployment, "storage")).toEqual({ after: ["network", "security"], priority: 60 });
    const bucket = deployment.output("storage", "dataBucketName") as string;
    const rule = inputs(deployment, "compute-lambda", "compute-lambda-arrivals");
    expect(JSON.parse(rule.eventPattern as string).detail.bucket.name).toEqual([bucket]);
    expect(inputs(deployment, "storage", "storage-data-notification").eventbridge).toBe(true);
    const object = `${deployment.output("storage", "dataBucketArn")}/incoming/one`;
    for (const action of ["s3:GetObject", "s3:PutObject"]) {
      expect(whoMay(deployment, action, object)).toContain("compute-lambda-processor-role");
    }
    const key = inputs(deployment, "storage", "storage-data-encryption").rules[0]
      .applyServerSideEncryptionByDefault.kmsMasterKeyId as string;
    expect(key).toBe(deployment.output("security", "dataKeyArn"));
    expect(whoMay(deployment, "kms:Decrypt", key)).toContain("compute-lambda-processor-role");
  });
});

describe("database-rds", () => {
  everywhere(
    "is as large as promised, and an application gets to it",
    (deployment, environment) => {
      expect(place(deployment, "database-rds")).toEqual({
        after: ["network", "secrets", "security"],
        priority: 70,
      });
      const classes = { dev: "db.t3.micro", stage: "db.t3.small", prod: "db.r5.large" };
      const database = inputs(deployment, "database-rds", "database-rds-postgres");
      expect(database.instanceClass).toBe(classes[environment]);
      expect(database.dbSubnetGroupName).toBe(
        inputs(deployment, "database-rds", "database-rds-subnets").name,
      );
      expect(database.parameterGroupName).toBeDefined();
      const task = inputs(deployment, "containers-apps", "containers-apps-api-task");
      const [container] = JSON.parse(task.containerDefinitions as string) as Array<{
        environment: Array<{ name: string; value: string }>;
      }>;
      const told = new Map(container?.environment.map(({ name, value }) => [name, value]));
      expect(told.get("DATABASE_HOST")).toBe(
        deployment.output("database-rds", "applicationEndpoint"),
      );
      expect(told.get("DATABASE_SECRET_ARN")).toBe(
        deployment.output("secrets", "databaseSecretArn"),
      );
      const [from] = inputs(deployment, "containers-apps", "containers-apps-api-service")
        .networkConfiguration.securityGroups as [string];
      const [to] = database.vpcSecurityGroupIds as [string];
      expect(canReach(deployment, from, to, database.port as number)).toBe(true);
    },
  );
});

describe("services-ecr and containers-images", () => {
  everywhere("what is built is pushed there, and is what runs", (deployment) => {
    expect(place(deployment, "containers-images").after).toEqual(["security", "services-ecr"]);
    const urls = deployment.output("services-ecr", "repositoryUrls") as Record<string, string>;
    const arns = deployment.output("services-ecr", "repositoryArns") as Record<string, string>;
    for (const { name, inputs: build } of deployment.all("aws:codebuild/project:Project")) {
      const image = name.replace("containers-images-", "");
      const told = new Map<string, string>(
        build.environment.environmentVariables.map((one: { name: string; value: string }) => [
          one.name,
          one.value,
        ]),
      );
      expect(told.get("REPOSITORY_URL")).toBe(urls[image]);
      expect(whoMay(deployment, "ecr:PutImage", arns[image] ?? "")).toEqual([`${name}-role`]);
    }
    const task = inputs(deployment, "containers-apps", "containers-apps-api-task");
    const [container] = JSON.parse(task.containerDefinitions as string) as Array<{ image: string }>;
    const uris = deployment.output("containers-images", "imageUris") as Record<string, string>;
    expect(container?.image).toBe(uris.api);
    expect(container?.image).toMatch(new RegExp(`^${urls.api ?? "-"}:\\d+\\.\\d+\\.\\d+$`));
    expect(whoMay(deployment, "ecr:BatchGetImage", arns.api ?? "")).toContain(
      "containers-apps-api-execution-role",
    );
    for (const { inputs: repository } of deployment.all("aws:ecr/repository:Repository")) {
      expect(repository.encryptionConfigurations[0].kmsKey).toBe(
        deployment.output("security", "dataKeyArn"),
      );
    }
  });
});

describe("services-ecs", () => {
  everywhere("applications run in its cluster, behind its internal door", (deployment) => {
    expect(place(deployment, "services-ecs")).toEqual({
      after: ["dns", "network", "security"],
      priority: 90,
    });
    const service = inputs(deployment, "containers-apps", "containers-apps-api-service");
    expect(service.cluster).toBe(deployment.output("services-ecs", "clusterArn"));
    const [door] = deployment.all(LOAD_BALANCER).filter(({ stack }) => stack === "services-ecs");
    expect(door?.inputs.internal).toBe(true);
    expect(door && servedBy(deployment, door)).toEqual(["containers-apps-api-targets"]);
    const rule = inputs(deployment, "containers-apps", "containers-apps-api-rule");
    expect(rule.listenerArn).toBe(deployment.output("services-ecs", "httpsListenerArn"));
    const listeners = deployment
      .run("services-ecs")
      .all("aws:lb/listener:Listener")
      .map(({ inputs: listener }) => listener.protocol as string);
    expect(listeners).toEqual(["HTTPS"]);
  });
});

describe("services-eks", () => {
  everywhere("is private, and its pods reach the database's door", (deployment) => {
    expect(place(deployment, "services-eks").after).toEqual([
      "network",
      "secrets",
      "security",
      "storage",
    ]);
    const cluster = inputs(deployment, "services-eks", "services-eks-cluster");
    expect(cluster.vpcConfig).toMatchObject({
      endpointPrivateAccess: true,
      endpointPublicAccess: false,
    });
    const way = inputs(deployment, "services-eks", "services-eks-database-from-pods-5432");
    expect(way.securityGroupId).toBe(
      inputs(deployment, "database-rds", "database-rds-postgres").vpcSecurityGroupIds[0],
    );
    expect(way.referencedSecurityGroupId).toBe(
      deployment.output("services-eks", "clusterSecurityGroupId"),
    );
    expect(cluster.encryptionConfig.provider.keyArn).toBe(
      deployment.output("security", "secretsKeyArn"),
    );
  });
});

describe("compute-ec2", () => {
  everywhere("instances are behind the load balancer, on the port that is open", (deployment) => {
    expect(place(deployment, "compute-ec2")).toEqual({
      after: ["dns", "network", "security"],
      priority: 100,
    });
    const [door] = deployment.all(LOAD_BALANCER).filter(({ stack }) => stack === "compute-ec2");
    expect(door && servedBy(deployment, door)).toEqual(["compute-ec2-targets"]);
    const group = inputs(deployment, "compute-ec2", "compute-ec2-group");
    const targets = inputs(deployment, "compute-ec2", "compute-ec2-targets");
    expect(group.targetGroupArns).toEqual([deployment.output("compute-ec2", "targetGroupArn")]);
    const [from] = (door?.inputs.securityGroups ?? []) as string[];
    const to = deployment.output("security", "ec2SecurityGroupId") as string;
    expect(canReach(deployment, from ?? "", to, targets.port as number)).toBe(true);
    expect(canReach(deployment, from ?? "", to, 22)).toBe(false);
  });
});

describe("compute-lambda", () => {
  everywhere("work comes from the queue, and the function gets to the database", (deployment) => {
    expect(place(deployment, "compute-lambda").priority).toBe(100);
    const source = inputs(deployment, "compute-lambda", "compute-lambda-work-source");
    expect(source.eventSourceArn).toBe(deployment.output("compute-lambda", "queueArn"));
    const target = inputs(deployment, "compute-lambda", "compute-lambda-arrivals-target");
    expect(target.arn).toBe(source.eventSourceArn);
    const { policy } = inputs(deployment, "compute-lambda", "compute-lambda-work-policy");
    const [allowed] = statements(policy as string);
    expect(allowed?.Action).toBe("sqs:SendMessage");
    const [from] = inputs(deployment, "compute-lambda", "compute-lambda-processor").vpcConfig
      .securityGroupIds as [string];
    const database = inputs(deployment, "database-rds", "database-rds-postgres");
    const [to] = database.vpcSecurityGroupIds as [string];
    expect(canReach(deployment, from, to, database.port as number)).toBe(true);
  });
});
