import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("security");

const INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule";
const EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule";

describe("security", () => {
  it("lets the internet reach load balancers and nothing else", async () => {
    const run = await runStack("security");
    const open = run.all(INGRESS).filter((rule) => rule.inputs.cidrIpv4 !== undefined);
    expect(open.map((rule) => rule.inputs.securityGroupId)).toEqual([
      "sg-security-alb-group-id",
      "sg-security-alb-group-id",
    ]);
    expect(open.map((rule) => rule.inputs.fromPort)).toEqual([443, 80]);
  });

  it("reaches databases from what runs, by group, and lets them out nowhere", async () => {
    const run = await runStack("security");
    const sources = run
      .all(INGRESS)
      .filter((rule) => rule.inputs.securityGroupId === "sg-security-database-group-id")
      .map((rule) => rule.inputs.referencedSecurityGroupId);
    expect(sources).toEqual([
      "sg-security-app-group-id",
      "sg-security-ec2-group-id",
      "sg-security-lambda-group-id",
      "sg-security-database-group-id",
    ]);
    const out = run
      .all(EGRESS)
      .filter((rule) => rule.inputs.securityGroupId === "sg-security-database-group-id");
    expect(out.map((rule) => rule.inputs.referencedSecurityGroupId)).toEqual([
      "sg-security-database-group-id",
    ]);
  });

  it("rotates its keys and keeps them longer in production", async () => {
    for (const [environment, days] of [
      ["dev", 7],
      ["prod", 30],
    ] as const) {
      const keys = (await runStack("security", { environment })).all("aws:kms/key:Key");
      expect(keys).toHaveLength(3);
      for (const key of keys) {
        expect(key.inputs).toMatchObject({ enableKeyRotation: true, deletionWindowInDays: days });
      }
    }
  });

  it("gives no role more than its policies name", async () => {
    const run = await runStack("security");
    for (const policy of run.all("aws:iam/rolePolicy:RolePolicy")) {
      const document = JSON.parse(policy.inputs.policy as string) as {
        Statement: Array<{ Action: unknown; Resource: unknown }>;
      };
      for (const statement of document.Statement) {
        expect(statement.Action).not.toBe("*");
        expect(statement.Resource).not.toBe("*");
      }
    }
    expect(run.inputs("security-ec2-role-managed-0").policyArn).toBe(
      "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore",
    );
  });

  it("encrypts the alarm topic and lets only this account's alarms in", async () => {
    const run = await runStack("security");
    expect(run.inputs("security-alarms").kmsMasterKeyId).toMatch(/security-logs-key$/);
    expect(run.inputs("security-alarms-policy").policy).toContain(
      '"aws:SourceAccount":"123456789012"',
    );
  });

  it("tells the people who asked, once each", async () => {
    const run = await runStack("security", {
      config: { alertEmails: ["a@example.com", "b@example.com"] },
    });
    const subscriptions = run.all("aws:sns/topicSubscription:TopicSubscription");
    expect(subscriptions.map((subscription) => subscription.inputs.endpoint)).toEqual([
      "a@example.com",
      "b@example.com",
    ]);
    await expect(runStack("security", { config: { alertEmails: ["nobody"] } })).rejects.toThrow(
      'security:alertEmails has "nobody", which is no e-mail address',
    );
  });

  it("has a budget that grows with the environment and warns before it is spent", async () => {
    for (const [environment, limit] of [
      ["dev", "500"],
      ["prod", "10000"],
    ] as const) {
      const budget = (await runStack("security", { environment })).inputs("security-budget");
      expect(budget.limitAmount).toBe(limit);
      expect(budget.notifications[0]).toMatchObject({ notificationType: "ACTUAL", threshold: 80 });
      expect(budget.costFilters[0].values).toEqual(["user:DeploymentId$D1BRV40"]);
    }
  });

  it("lets alarms through that do not say for which account they are", async () => {
    const { policy } = (await runStack("security")).inputs("security-logs-key");
    expect(policy).toContain('"StringEqualsIfExists":{"aws:SourceAccount":"123456789012"}');
  });

  it("touches the account only when told to", async () => {
    const type = "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock";
    expect((await runStack("security")).all(type)).toEqual([]);
    const run = await runStack("security", { config: { manageAccountBaseline: true } });
    expect(run.all(type)).toHaveLength(1);
    expect(run.inputs("security-account-metadata").httpTokens).toBe("required");
  });

  it("records every call and every change in an account that it manages", async () => {
    const run = await runStack("security", {
      environment: "prod",
      config: { manageAccountBaseline: true },
    });
    expect(run.inputs("security-trail")).toMatchObject({
      isMultiRegionTrail: true,
      enableLogFileValidation: true,
      kmsKeyId: expect.stringMatching(/security-trail-key$/) as string,
    });
    expect(run.before("security-trail")).toContain("security-account-records-policy");
    expect(run.inputs("security-account-records-policy").policy).toContain(
      '"Service":"cloudtrail.amazonaws.com"',
    );
    expect(run.inputs("security-recorder").recordingGroup.allSupported).toBe(true);
    expect(run.before("security-recorder-status")).toContain("security-recorder-channel");
    expect(run.inputs("security-detector").enable).toBe(true);
    expect(run.before("security-security-standard")).toContain("security-recorder-status");
    expect(run.inputs("security-account-records").forceDestroy).toBe(false);
  });

  it.each(["dev", "prod"] as const)(
    "in %s: leaves the account protected and recorded when the deployment is destroyed",
    async (environment) => {
      const run = await runStack("security", {
        environment,
        config: { manageAccountBaseline: true },
      });
      const plain = await runStack("security", { environment });
      const others = new Set(plain.resources.map(({ name }) => name));
      const baseline = run.resources.filter(({ name }) => !others.has(name));
      expect(baseline.length).toBeGreaterThan(20);
      const goes = baseline.filter(({ request }) => !request.retainOnDelete);
      // Only what tells a topic that is no more, and the name of a key.
      expect(goes.map(({ name }) => name).sort()).toEqual([
        "security-account-openings",
        "security-account-openings-target",
        "security-account-threats",
        "security-account-threats-target",
        "security-account-weaknesses",
        "security-account-weaknesses-target",
        "security-trail-key-alias",
      ]);
      expect(run.inputs("security-account-records").forceDestroy).toBe(false);
    },
  );

  it("tells the topic of serious findings, and nothing stands in the way", async () => {
    const run = await runStack("security", { config: { manageAccountBaseline: true } });
    const sources = run
      .all("aws:cloudwatch/eventRule:EventRule")
      .map(
        ({ inputs }) => (JSON.parse(inputs.eventPattern as string) as { source: string[] }).source,
      );
    expect(sources.flat().sort()).toEqual([
      "aws.access-analyzer",
      "aws.guardduty",
      "aws.securityhub",
    ]);
    const targets = run.all("aws:cloudwatch/eventTarget:EventTarget");
    expect(targets.map(({ inputs }) => inputs.arn)).toEqual(
      Array.from({ length: 3 }, () => run.outputs.alarmTopicArn),
    );
    expect(run.inputs("security-alarms-policy").policy).toContain("events.amazonaws.com");
    // The topic is encrypted, so whoever publishes uses its key.
    const key = run.inputs("security-alarms").kmsMasterKeyId as string;
    expect(key).toMatch(/security-logs-key$/);
    expect(run.inputs("security-logs-key").policy).toContain('"Service":"events.amazonaws.com"');
  });

  it("refuses a VPC id that is none", async () => {
    const wrong = runStack("security", { config: { vpcId: "subnet-1" } });
    await expect(wrong).rejects.toThrow('security:vpcId is "subnet-1"');
  });

  it("lets what runs out over IPv6 too, where the network has it", async () => {
    const newer = async (dualStack: boolean): Promise<string[]> =>
      (await runStack("security", { config: { dualStack } }))
        .all("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule")
        .filter(({ inputs }) => inputs.cidrIpv6 === "::/0")
        .map(({ name }) => name);
    expect(await newer(false)).toEqual([]);
    expect(await newer(true)).toEqual([
      "security-app-to-tls-ipv6",
      "security-ec2-to-tls-ipv6",
      "security-lambda-to-tls-ipv6",
    ]);
  });
});
