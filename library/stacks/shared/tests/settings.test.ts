/** Every setting of every component, changed in a running production one at a time. */
import { describe, expect, it } from "vitest";
import { changesOf, leftBy } from "../testing/changes";
import { runStack } from "../testing/harness";
import {
  type PropertySchema,
  resolvedConfig,
  stackNames,
  stackTemplate,
} from "../testing/template";

/** Who a deployment is. Another environment or another id is another deployment. */
const IDENTITY = ["deploymentId", "environment"];

/** Whose it is: tags, which `upgrades.test.ts` changes in a whole deployment. */
const OWNERS = ["organization", "project", "domain", "team", "costCenter"];

/** Settings that need others beside them, and have tests of their own. */
const UNTRIED = [
  "compute-lambda:secretNames",
  "containers-images:sharedRegistry",
  "database-rds:restoreToTime",
  "network:existingVpcId",
  "network:existingPublicSubnetIds",
  "network:existingPrivateSubnetIds",
  "network:existingDataSubnetIds",
  "network:existingPrivateRouteTableIds",
];

/** Settings that are texts, with another value: what a text means, no schema says. */
const TEXTS: Readonly<Record<string, unknown>> = {
  "authentication:callbackUrls": ["https://shop.example.com/callback"],
  "authentication:logoutUrls": ["https://shop.example.com/"],
  "compute-ec2:amiId": "ami-0fedcba9876543210",
  "compute-ec2:healthPath": "/health",
  "compute-ec2:hostName": "pages",
  "compute-ec2:imageRelease": "2",
  "compute-ec2:instanceTypes": ["m7i.large", "m7a.large"],
  "compute-lambda:batchImage": "public.ecr.aws/docker/library/alpine:3.23.0",
  "compute-lambda:objectPrefix": "arrived/",
  "containers-apps:apps": [{ name: "shop", path: "/*", image: "example/shop:1.0.0" }],
  "containers-images:images": [{ name: "api", version: "2.0.0" }],
  "database-rds:auroraClass": "db.r6g.xlarge",
  "database-rds:databaseName": "shop",
  "database-rds:engineVersion": "17.7",
  "database-rds:instanceClass": "db.r6g.xlarge",
  "database-rds:masterUsername": "postgres",
  "database-rds:restoreFromDatabase": "shop",
  "database-rds:restoreFromSnapshot": "rds:before-the-accident",
  "dns:certificateAuthorities": ["amazon.com", "letsencrypt.org"],
  "dns:existingZoneId": "Z0123456789ABCDEFGHIJ",
  "dns:zoneName": "example.org",
  "network:interfaceEndpoints": ["logs"],
  "network:trustedAccountIds": ["111111111111"],
  "network:vpcCidr": "10.9.0.0/16",
  "secrets:applicationSecrets": ["session-signing-key", "token"],
  "secrets:databaseUsername": "shop",
  "secrets:replicaRegion": "us-west-2",
  "security:alertEmails": ["others@example.com"],
  "security:publicIngressCidrs": ["198.51.100.0/24"],
  "services-api:routes": [{ methods: ["GET"], path: "/", access: "read" }],
  "services-api:corsOrigins": ["https://shop.example.com"],
  "services-api:hostName": "shop",
  "services-ecr:pullAccountIds": ["111111111111"],
  "services-ecr:repositories": ["api"],
  "services-ecs:hostName": "services",
  "services-ecs:publicHostName": "www",
  "services-eks:adminRoleArns": ["arn:aws:iam::333333333333:role/others"],
  "services-eks:databasePods": ["shop/api"],
  "services-eks:kubernetesVersion": "1.36",
  "services-eks:publicEndpointCidrs": ["198.51.100.0/24"],
};
/** What each change takes away that somebody could miss: exactly what it says, and nothing beside it. */
const LOSES: Readonly<Record<string, readonly string[]>> = {
  "containers-apps:apps": ["containers-apps-api-logs is deleted"],
  "containers-images:images": ["containers-images-worker-logs is deleted"],
  "database-rds:proxy=false": [
    "database-rds-credentials-first-user is deleted",
    "database-rds-credentials-second-user is deleted",
    "database-rds-proxy is deleted",
  ],
  "dns:existingZoneId": ["dns-query-logs is deleted", "dns-zone is deleted"],
  "dns:queryLogging=false": ["dns-query-logs is deleted"],
  "dns:zoneName": ["dns-zone is replaced because of name"],
  'network:natStrategy="none"': [
    "network-nat-address-0 is deleted",
    "network-nat-address-1 is deleted",
    "network-nat-address-2 is deleted",
  ],
  'network:natStrategy="single"': [
    "network-nat-address-1 is deleted",
    "network-nat-address-2 is deleted",
  ],
  "services-api:hostName": ["services-api-domain is replaced because of domainName"],
  "services-ecr:repositories": ["services-ecr-worker is deleted"],
  "storage:backups=false": ["storage-backup-vault is deleted"],
  "storage:sharedFileSystem=false": [
    "storage-backup-vault is deleted",
    "storage-file-system is deleted, which is refused",
  ],
};

/** What is refused, because it would be another, empty one, or because AWS has no such thing. */
const REFUSED: Readonly<Record<string, string>> = {
  "containers-apps:cpu=2048": "Fargate has 4096 to 16384",
  "containers-apps:cpu=4096": "Fargate has 8192 to 30720",
  "containers-apps:memoryMb=2049": "Fargate has 2048 to 8192",
  "database-rds:databaseName": "the database has the databaseName app, which RDS does not change",
  "database-rds:dataKeyRetained=false": "finalSnapshot needs security:retainDataKey",
  'database-rds:kind="aurora"': "the database is of kind instance; aurora would be an empty one",
  "database-rds:masterUsername": "the database has the masterUsername nimbus_admin, which RDS",
  "database-rds:restoreFromDatabase": "the database is there already and began empty",
  "database-rds:restoreFromSnapshot": "the database is there already and began empty",
  "network:vpcCidr": "the VPC has the range 10.2.0.0/16, which AWS does not change",
};

describe("a setting", () => {
  it.each(stackNames().flatMap(changesOfSettings))(
    "of %s loses nothing that somebody could miss, unless that is what it says",
    async (name, key, value) => {
      const [stack = ""] = name.split(":");
      const first = await runStack(stack, { environment: "prod" });
      const second = runStack(stack, {
        environment: "prod",
        config: { [key]: value },
        known: leftBy(first),
      });
      const refusal = REFUSED[name];
      if (refusal !== undefined) {
        await expect(second).rejects.toThrow(refusal);
      } else {
        expect(changesOf(first, await second).lost).toEqual(LOSES[name] ?? []);
      }
    },
  );

  it("is among those that are tried, unless it only says what another component has made", () => {
    const all = stackNames().flatMap((stack) => changesOfSettings(stack));
    const names = new Set(all.map(([name]) => name));
    const expected = [...Object.keys(LOSES), ...Object.keys(REFUSED)];
    expect(expected.filter((name) => !names.has(name))).toEqual([]);
    const tried = new Set(all.map(([name]) => name.split("=")[0]));
    const left = stackNames().flatMap((stack) => {
      const { parameters } = stackTemplate(stack);
      const settings = Object.entries(resolvedConfig(stack, "prod", () => undefined));
      return settings
        .filter(([key, value]) => value !== undefined && key in parameters.properties)
        .filter(([key]) => ![...IDENTITY, ...OWNERS].includes(key))
        .map(([key]) => `${stack}:${key}`)
        .filter((name) => !tried.has(name));
    });
    expect(left).toEqual(UNTRIED);
  });
});

/** Changes of a component: a name, the setting, and its new value. */
function changesOfSettings(stack: string): Array<[name: string, key: string, value: unknown]> {
  const config = resolvedConfig(stack, "prod");
  return Object.entries(stackTemplate(stack).parameters.properties)
    .filter(([key]) => !IDENTITY.includes(key))
    .flatMap(([key, schema]) => {
      const name = `${stack}:${key}`;
      const text = TEXTS[name];
      return text === undefined
        ? others(schema, config[key]).map((value): [string, string, unknown] => [
            `${name}=${JSON.stringify(value)}`,
            key,
            value,
          ])
        : [[name, key, text]];
    });
}

/** Other values that the schema allows. */
function others(schema: PropertySchema, now: unknown): unknown[] {
  if (schema.enum !== undefined) {
    const left = schema.enum.filter((one) => one !== now);
    // Of a long row of numbers, such as days, the smallest and the largest stand for those between.
    return left.length > 6 ? [left[0], left.at(-1)] : left;
  }
  if (schema.type === "boolean") {
    return [now !== true];
  }
  if (schema.type === "integer" && typeof now === "number") {
    return [now < (schema.maximum ?? Number.POSITIVE_INFINITY) ? now + 1 : now - 1];
  }
  return [];
}
