/** Claims over whole deployments: who reaches what on which port, and who may read, decrypt and mount. */
import { describe, expect, it } from "vitest";
import { like, refusals, unknownPolicies, whoMay } from "../testing/access";
import { arn } from "../testing/claims";
import { compose, type Composition } from "../testing/composition";
import { reachMatrix, unknownNodes, waysOut } from "../testing/reach";
import { ENVIRONMENTS, manifestTemplate } from "../testing/template";

const TEMPLATES = ["default", "minimal", "microservices", "data-platform"] as const;

/** Everything that a deployment can have, in use. */
function everything(): Promise<Composition> {
  return compose("default", {
    environment: "prod",
    config: {
      "containers-apps": {
        apps: [
          { name: "api", path: "/*", image: "example/api:1.0.0", database: true },
          {
            name: "mailer",
            image: "example/mailer:1.0.0",
            queue: { name: "mails", messagesPerTask: 10 },
            mounts: [{ path: "/outbox" }],
          },
        ],
      },
      "services-eks": { databasePods: ["shop/api"] },
    },
  });
}

describe("who reaches what", () => {
  it("is exactly this, with everything that the library has", async () => {
    const deployment = await everything();
    expect(unknownNodes(deployment)).toEqual([]);
    expect(reachMatrix(deployment)).toMatchInlineSnapshot(`
      [
        "0.0.0.0/0 -> compute-ec2-load-balancer 443",
        "0.0.0.0/0 -> compute-ec2-load-balancer 80",
        "10.2.0.0/16 -> network-endpoints 443",
        "compute-ec2-launch-template -> database-rds-postgres 5432",
        "compute-ec2-launch-template -> database-rds-proxy 5432",
        "compute-ec2-launch-template -> storage-files 2049",
        "compute-ec2-load-balancer -> compute-ec2-launch-template 8080",
        "compute-lambda-processor -> database-rds-postgres 5432",
        "compute-lambda-processor -> database-rds-proxy 5432",
        "containers-apps-api-service -> containers-apps-api-service 8080",
        "containers-apps-api-service -> containers-apps-mailer-service 8080",
        "containers-apps-api-service -> database-rds-postgres 5432",
        "containers-apps-api-service -> database-rds-proxy 5432",
        "containers-apps-api-service -> storage-files 2049",
        "containers-apps-mailer-service -> containers-apps-api-service 8080",
        "containers-apps-mailer-service -> containers-apps-mailer-service 8080",
        "containers-apps-mailer-service -> database-rds-postgres 5432",
        "containers-apps-mailer-service -> database-rds-proxy 5432",
        "containers-apps-mailer-service -> storage-files 2049",
        "database-rds-credentials -> database-rds-postgres 5432",
        "database-rds-credentials -> database-rds-proxy 5432",
        "database-rds-postgres -> database-rds-postgres 5432",
        "database-rds-postgres -> database-rds-proxy 5432",
        "database-rds-proxy -> database-rds-postgres 5432",
        "database-rds-proxy -> database-rds-proxy 5432",
        "services-api-vpc-link -> services-ecs-internal-load-balancer 443",
        "services-ecs-internal-load-balancer -> containers-apps-api-service 8080",
        "services-ecs-internal-load-balancer -> containers-apps-mailer-service 8080",
        "services-eks-cluster -> database-rds-postgres 5432",
        "services-eks-cluster -> database-rds-proxy 5432",
        "services-eks-cluster -> storage-files 2049",
      ]
    `);
    expect(waysOut(deployment)).toMatchInlineSnapshot(`
      [
        "compute-ec2-launch-template -> internet 443",
        "compute-lambda-processor -> internet 443",
        "containers-apps-api-service -> internet 443",
        "containers-apps-mailer-service -> internet 443",
        "database-rds-credentials -> internet 443",
        "services-eks-cluster -> internet all",
      ]
    `);
  });

  it("never includes a store from the internet, in any template and environment", async () => {
    for (const template of TEMPLATES) {
      for (const environment of ENVIRONMENTS) {
        const enable = Object.keys(manifestTemplate(template).stacks);
        const deployment = await compose(template, { environment, enable });
        expect([...deployment.runs.keys()].sort(), template).toEqual(enable.sort());
        const open = reachMatrix(deployment).filter((line) => /^(0\.0\.0\.0|::)\/0 /.test(line));
        for (const line of open) {
          expect(line, `${template} ${environment}`).toMatch(/load-balancer (80|443)$/);
        }
        expect(unknownNodes(deployment), template).toEqual([]);
        expect(unknownPolicies(deployment), template).toEqual([]);
      }
    }
  });
});

describe("who may", () => {
  it("decrypt what: no role's own policy names a key that it has no use for", async () => {
    const deployment = await everything();
    const decrypt = (key: string): string[] =>
      whoMay(deployment, "kms:Decrypt", deployment.output("security", key) as string);
    expect({
      secrets: decrypt("secretsKeyArn"),
      data: decrypt("dataKeyArn"),
      logs: decrypt("logsKeyArn"),
    }).toMatchInlineSnapshot(`
      {
        "data": [
          "compute-lambda-processor-role",
          "containers-apps-mailer-role",
          "containers-images-api-role",
          "containers-images-worker-role",
          "database-rds-credentials-role",
        ],
        "logs": [],
        "secrets": [
          "containers-apps-api-role",
          "database-rds-credentials-role",
          "database-rds-proxy-role",
          "services-eks-cluster-role",
          "services-eks-database-pods-role",
        ],
      }
    `);
  });

  it("use a key without a policy of their own: whoever asks through one of these services", async () => {
    const deployment = await everything();
    const through = (key: string): string[] => {
      const { Statement } = JSON.parse(
        deployment.run("security").inputs(`security-${key}-key`).policy as string,
      ) as { Statement: Array<{ Principal: object; Condition?: { StringEquals?: object } }> };
      return Statement.filter(({ Principal }) => JSON.stringify(Principal) === '{"AWS":"*"}')
        .map(({ Condition }) => Condition?.StringEquals as Record<string, string>)
        .map((sent) => {
          expect(sent["kms:CallerAccount"]).toBe("123456789012");
          return sent["kms:ViaService"]?.split(".")[0] ?? "";
        });
    };
    // They must have the bucket, the queue or the secret itself, by another policy.
    expect(through("data")).toEqual([
      "ec2",
      "rds",
      "s3",
      "sqs",
      "ecr",
      "elasticfilesystem",
      "lambda",
    ]);
    expect(through("secrets")).toEqual(["secretsmanager", "eks"]);
    expect(through("logs")).toEqual([]);
  });

  it("read the database's secrets: applications, named pods, the proxy, and who manages them", async () => {
    const deployment = await everything();
    const readers = (secretArn: string): string[] =>
      whoMay(deployment, "secretsmanager:GetSecretValue", secretArn);
    expect(readers(arn("secretsmanager", "secrets-database-user"))).toEqual([
      "containers-apps-api-role",
      "database-rds-credentials-role",
      "services-eks-database-pods-role",
    ]);
    expect(readers(deployment.output("database-rds", "masterSecretArn") as string)).toEqual([
      "database-rds-credentials-role",
    ]);
    const writers = whoMay(
      deployment,
      "secretsmanager:PutSecretValue",
      arn("secretsmanager", "secrets-database-user"),
    );
    expect(writers).toEqual(["database-rds-credentials-role"]);
  });

  it("mount the shared files: who says so, each through access points, and nobody unsigned", async () => {
    const deployment = await everything();
    const files = `arn:aws:elasticfilesystem:us-east-1:123456789012:file-system/${deployment.output("storage", "fileSystemId")}`;
    expect(whoMay(deployment, "elasticfilesystem:ClientMount", files)).toEqual([
      "containers-apps-mailer-role",
      "services-eks-files-node-role",
    ]);
    expect(whoMay(deployment, "elasticfilesystem:ClientRootAccess", files)).toEqual([]);
    for (const role of ["containers-apps-mailer-role", "services-eks-files-node-role"]) {
      const [policy] = deployment.resources.filter(({ name }) => name === `${role}-policy`);
      expect(policy?.inputs.policy, role).toContain("elasticfilesystem:AccessPointArn");
    }
    const [own] = deployment.all("aws:efs/fileSystemPolicy:FileSystemPolicy");
    expect(refusals(own?.inputs.policy as string)).toEqual([
      "OnlyThroughAccessPoints",
      "OnlyThroughMountTargets",
      "RefusePlainText",
    ]);
    expect(own?.inputs.policy).not.toContain('"Allow"');
  });

  it("take a worker's work: that worker, and nobody else's queue", async () => {
    const deployment = await everything();
    const work = "arn:aws:sqs:us-east-1:123456789012:mails";
    expect(whoMay(deployment, "sqs:ReceiveMessage", work)).toEqual(["containers-apps-mailer-role"]);
  });

  it("is decided as IAM does: denial wins, capitals do not matter, wildcards count", async () => {
    expect(like("S3:Get*", "s3:GetObject")).toBe(true);
    expect(like("s3:Get?bject", "s3:GetObject")).toBe(true);
    expect(like("s3:Get", "s3:GetObject")).toBe(false);
    const deployment = await everything();
    const with_ = (effect: string): Composition => {
      const policy = {
        Statement: [{ Effect: effect, Action: "s3:*", Resource: "arn:aws:s3:::one/*" }],
      };
      const inputs = { policy: JSON.stringify(policy) };
      const base = deployment.all("aws:iam/rolePolicy:RolePolicy")[0];
      return Object.create(deployment, {
        all: {
          value: (type: string) =>
            type === "aws:iam/rolePolicy:RolePolicy"
              ? [
                  { ...base, name: "a-role-policy", inputs },
                  {
                    ...base,
                    name: "a-role-policy",
                    inputs: { policy: inputs.policy.replace("Deny", "Allow") },
                  },
                ]
              : [],
        },
      }) as Composition;
    };
    expect(whoMay(with_("Allow"), "s3:GetObject", "arn:aws:s3:::one/x")).toEqual(["a-role"]);
    expect(whoMay(with_("Deny"), "s3:GetObject", "arn:aws:s3:::one/x")).toEqual([]);
  });
});
