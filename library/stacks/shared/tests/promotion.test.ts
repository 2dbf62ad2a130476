/** An image that one environment built and tried, run by another one in another account. */
import { describe, expect, it } from "vitest";
import { whoMay } from "../testing/access";
import { compose } from "../testing/composition";

const BUILDER = "222222222222";
const RUNNER = "333333333333";
const DIGEST = `sha256:${"a".repeat(64)}`;

interface PolicyStatement {
  readonly Effect: string;
  readonly Action: string | string[];
  readonly Principal: unknown;
  readonly Condition?: { readonly StringNotEquals?: Record<string, string | string[]> };
}

describe("an image that another environment built", () => {
  it("runs as it was tried, is pulled by who runs it, and is changed by nobody there", async () => {
    const apps = { apps: [{ name: "api", path: "/*" }] };
    const stage = await compose("microservices", {
      environment: "stage",
      enable: ["containers-apps"],
      config: { "services-ecr": { pullAccountIds: [RUNNER] }, "containers-apps": apps },
    });
    const repository = stage.run("services-ecr").inputs("services-ecr-api").name as string;
    const registry = `${BUILDER}.dkr.ecr.us-east-1.amazonaws.com/${repository.replace(/\/api$/, "")}`;
    const prod = await compose("microservices", {
      environment: "prod",
      enable: ["containers-apps"],
      config: {
        "containers-images": {
          sharedRegistry: registry,
          images: [{ name: "api", version: "1.0.0", digest: DIGEST }],
        },
        "containers-apps": apps,
      },
    });

    // The same bytes: production has no build of its own that could make others.
    const task = prod.run("containers-apps").inputs("containers-apps-api-task");
    const [container] = JSON.parse(task.containerDefinitions as string) as Array<{ image: string }>;
    expect(container?.image).toBe(
      `${BUILDER}.dkr.ecr.us-east-1.amazonaws.com/${repository}@${DIGEST}`,
    );
    expect(prod.all("aws:codebuild/project:Project")).toEqual([]);
    expect(stage.all("aws:codebuild/project:Project").length).toBeGreaterThan(0);

    // Both sides must allow it: the role that pulls in one account, the repository in the other.
    const there = `arn:aws:ecr:us-east-1:${BUILDER}:repository/${repository}`;
    expect(whoMay(prod, "ecr:BatchGetImage", there)).toEqual([
      "containers-apps-api-execution-role",
    ]);
    expect(whoMay(prod, "ecr:PutImage", there)).toEqual([]);
    const { policy } = stage.run("services-ecr").inputs("services-ecr-api-access");
    const { Statement } = JSON.parse(policy as string) as { Statement: PolicyStatement[] };
    const lets = Statement.filter(({ Effect }) => Effect === "Allow");
    expect(lets.map(({ Principal }) => Principal)).toEqual([
      { AWS: [`arn:aws:iam::${RUNNER}:root`] },
    ]);
    expect(lets.flatMap(({ Action }) => Action)).toContain("ecr:BatchGetImage");
    const shut = Statement.filter(({ Effect }) => Effect === "Deny").map(
      ({ Condition }) => Condition?.StringNotEquals?.["aws:PrincipalAccount"],
    );
    expect(shut).toContainEqual(["123456789012", RUNNER]);

    // Layers come from a bucket of AWS, with a signature: the way through the VPC must let them by.
    const [way] = prod
      .all("aws:ec2/vpcEndpoint:VpcEndpoint")
      .filter(({ name }) => name === "network-endpoint-s3");
    expect(way?.inputs.policy).toContain("prod-us-east-1-starport-layer-bucket");
    for (const { name, inputs } of prod.all("aws:ec2/vpcEndpoint:VpcEndpoint")) {
      if (name.includes("-ecr-")) {
        expect(inputs.policy, name).not.toContain("aws:ResourceAccount");
      }
    }
  });

  it("is not found by an account that was not named", async () => {
    const stage = await compose("microservices", { environment: "stage" });
    const { policy } = stage.run("services-ecr").inputs("services-ecr-api-access");
    expect(policy).not.toContain(RUNNER);
    expect(policy).not.toContain('"Allow"');
  });
});
