/** What a running deployment sees of a change: nothing that holds data is replaced. */
import { describe, expect, it } from "vitest";
import { type Changes, changesBetween, unjudgedTypes } from "../testing/changes";
import { compose, type Composition } from "../testing/composition";
import type { Environment, Values } from "../testing/template";

type Settings = Readonly<Record<string, Values>>;

/** A change: settings before and after it, and what it must do, or it would prove nothing. */
interface Upgrade {
  readonly before?: Settings;
  readonly after: Settings;
  readonly does: readonly string[];
}

const AURORA = { kind: "aurora", auroraClass: "db.r6g.large" };
const FILES: Settings = { storage: { sharedFileSystem: true } };
const database = (settings: Values): Settings => ({ "database-rds": settings });

/** Stage lies between them in every setting. */
const EXTREMES = ["dev", "prod"] as const;

const UPGRADES: Readonly<Record<string, Upgrade>> = {
  "a minor version of PostgreSQL": {
    after: database({ engineVersion: "17.7" }),
    does: ["database-rds-postgres"],
  },
  "a major version of PostgreSQL": {
    after: database({ engineVersion: "18.1", allowMajorUpgrade: true }),
    does: ["database-rds-parameters", "database-rds-postgres"],
  },
  "a major version of PostgreSQL with replicas": {
    before: database({ readReplicas: 2 }),
    after: database({ readReplicas: 2, engineVersion: "18.1", allowMajorUpgrade: true }),
    does: ["database-rds-postgres"],
  },
  "a larger database": {
    after: database({
      instanceClass: "db.r6g.xlarge",
      allocatedStorageGb: 400,
      maxAllocatedStorageGb: 2000,
    }),
    does: ["database-rds-postgres"],
  },
  "larger replicas": {
    before: database({ readReplicas: 1 }),
    after: database({ readReplicas: 1, instanceClass: "db.r6g.xlarge" }),
    does: ["database-rds-postgres", "database-rds-replica-0"],
  },
  "the first replica": {
    after: database({ readReplicas: 1 }),
    does: ["database-rds-postgres", "database-rds-replica-0"],
  },
  "a minor version of Aurora": {
    before: database(AURORA),
    after: database({ ...AURORA, engineVersion: "17.7" }),
    does: ["database-rds-aurora", "database-rds-aurora-0"],
  },
  "a major version of Aurora": {
    before: database(AURORA),
    after: database({ ...AURORA, engineVersion: "18.1", allowMajorUpgrade: true }),
    does: ["database-rds-aurora", "database-rds-aurora-0", "database-rds-cluster-parameters"],
  },
  "another class of Aurora": {
    before: database({ ...AURORA, auroraClass: "db.serverless" }),
    after: database({ ...AURORA, auroraClass: "db.r6g.xlarge" }),
    does: ["database-rds-aurora", "database-rds-aurora-0"],
  },
  "more readers of Aurora": {
    before: database(AURORA),
    after: database({ ...AURORA, readReplicas: 3 }),
    does: ["database-rds-aurora-3"],
  },
  "Aurora in more zones": {
    before: { network: { availabilityZoneCount: 3 }, ...database(AURORA) },
    after: { network: { availabilityZoneCount: 4 }, ...database(AURORA) },
    does: ["database-rds-subnets", "network-data-subnet-3"],
  },
  "a version of Kubernetes": {
    before: { "services-eks": { kubernetesVersion: "1.35" } },
    after: { "services-eks": { kubernetesVersion: "1.36" } },
    does: ["services-eks-cluster"],
  },
  "a zone more": {
    before: { network: { availabilityZoneCount: 2 }, ...FILES },
    after: { network: { availabilityZoneCount: 3 }, ...FILES },
    does: [
      "compute-ec2-load-balancer",
      "database-rds-subnets",
      "network-private-subnet-2",
      "services-eks-cluster",
      "storage-mount-target-2",
    ],
  },
  "addresses of IPv6": {
    after: { network: { dualStack: true } },
    does: ["compute-ec2-load-balancer", "network-private-subnet-0", "network-vpc"],
  },
  "another name of the applications' host": {
    after: { "services-ecs": { hostName: "services" } },
    does: ["services-ecs-internal-host-record"],
  },
};

function app(name: string): Values {
  return {
    name,
    path: "/*",
    image: "example/api:1.0.0",
    mounts: [{ path: "/files" }],
  };
}

describe("an upgrade", () => {
  const between = async (
    { before = {}, after }: Pick<Upgrade, "before" | "after">,
    environment: Environment,
  ): Promise<Changes> =>
    changesBetween(
      await compose("default", { environment, config: before }),
      await compose("default", { environment, config: after }),
    );

  it.each(Object.keys(UPGRADES))("to %s replaces nothing that holds data", async (name) => {
    const upgrade = UPGRADES[name] as Upgrade;
    for (const environment of EXTREMES) {
      const { lost, made, changed } = await between(upgrade, environment);
      expect(lost, environment).toEqual([]);
      expect([...made, ...changed], environment).toEqual(expect.arrayContaining([...upgrade.does]));
    }
  });

  it("to another team or cost center changes tags only", async () => {
    for (const environment of EXTREMES) {
      const first = await compose("default", { environment });
      const owner = { team: "platform", costCenter: "research" };
      const config = Object.fromEntries([...first.runs.keys()].map((stack) => [stack, owner]));
      const second = await compose("default", { environment, config });
      const { lost, made, changed } = changesBetween(first, second);
      expect([lost, made]).toEqual([[], []]);
      expect(changed.length).toBeGreaterThan(100);
    }
  });

  it("to another name of an application leaves its files where they are", async () => {
    const files = (name: string, more: Values): Promise<Composition> => {
      const apps = [{ ...app(name), ...more }];
      return compose("default", {
        environment: "prod",
        config: { "containers-apps": { apps }, ...FILES },
      });
    };
    const first = await files("api", {});
    const second = await files("shop", { filesDirectory: "api" });
    const { lost } = changesBetween(first, second);
    // A way to the files goes, and another one leads to the same place. Logs begin anew.
    expect(lost).toEqual([
      "containers-apps-api-files is deleted",
      "containers-apps-api-logs is deleted",
    ]);
    const place = (deployment: Composition): unknown => {
      const [way] = deployment.all("aws:efs/accessPoint:AccessPoint");
      return [way?.inputs.fileSystemId, way?.inputs.rootDirectory.path, way?.inputs.posixUser];
    };
    expect(place(second)).toEqual(place(first));
    expect(place(await files("shop", {}))).not.toEqual(place(first));
  });

  it("to fewer zones takes their subnets away, and nothing that stands in others", async () => {
    const zones = (count: number): Settings => ({ network: { availabilityZoneCount: count } });
    const { lost } = await between({ before: zones(3), after: zones(2) }, "prod");
    expect(lost).toEqual([
      "network-data-subnet-2 is deleted",
      "network-nat-address-2 is deleted",
      "network-private-subnet-2 is deleted",
      "network-public-subnet-2 is deleted",
    ]);
  });

  it("is seen for what it is: a database under another name is another one", async () => {
    const composed = await compose("default", { environment: "prod" });
    const renamed = await compose("default", {
      environment: "prod",
      config: Object.fromEntries(
        [...composed.runs.keys()].map((stack) => [stack, { deploymentId: "D2OTHER" }]),
      ),
    });
    const { lost } = changesBetween(composed, renamed);
    expect(lost).toContain("database-rds-postgres is replaced because of identifier");
    expect(lost.length).toBeGreaterThan(35);
  });

  it("is judged for every type that holds something", async () => {
    const deployment = await compose("default", {
      environment: "prod",
      config: { security: { manageAccountBaseline: true } },
    });
    const aurora = await compose("default", { environment: "prod", config: database(AURORA) });
    expect(unjudgedTypes([...deployment.resources, ...aurora.resources])).toEqual([]);
  });
});
