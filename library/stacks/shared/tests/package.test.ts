/** The package as somebody gets it from a registry: packed, unpacked, imported by a program. */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STACKS } from "../testing/template";

/** Runs the compiled example against a cloud of mocks, and says what it made. */
const RUNNER = `
const pulumi = require("@pulumi/pulumi");
const made = [];
const config = {
  deploymentId: "D1ABC",
  organization: "Example",
  project: "shop",
  environment: "dev",
  domain: "example.com",
  team: "shop",
  costCenter: "sales",
  vpcId: "vpc-1",
  dataSubnetIds: '["subnet-1","subnet-2"]',
  appSecurityGroupId: "sg-1",
  dataKeyArn: "arn:aws:kms:us-east-1:1:key/k",
  alarmTopicArn: "arn:aws:sns:us-east-1:1:t",
};
pulumi.runtime.setAllConfig(
  Object.fromEntries(Object.entries(config).map(([key, value]) => ["shop-data:" + key, value])),
);
const mocks = {
  newResource: ({ type, name, inputs }) => {
    made.push(type + " " + name);
    return { id: name + "-id", state: { ...inputs, arn: "arn:" + name } };
  },
  call: () => ({ accountId: "1", partition: "aws", region: "us-east-1" }),
};
(async () => {
  await pulumi.runtime.setMocks(mocks, "shop", "dev", false);
  const program = require("./out/index.js");
  const [arn] = await Promise.all([program.roleArn.promise(), program.tableName.promise()]);
  await pulumi.runtime.disconnect();
  console.log(JSON.stringify({ arn, made }));
})();
`;

describe("the package", () => {
  const root = mkdtempSync(join(tmpdir(), "package-"));
  const installed = join(root, "program/node_modules/@cloud/shared");
  afterAll(() => rmSync(root, { recursive: true }));

  const run = (program: string, parts: string[], cwd: string): string =>
    execFileSync(program, parts, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

  beforeAll(() => {
    run(process.execPath, [join(STACKS, "shared/pack.mjs"), join(root, "built")], STACKS);
    run("npm", ["pack", "--offline", "--silent", "--pack-destination", root], join(root, "built"));
    const [archive = ""] = readdirSync(root).filter((file) => file.endsWith(".tgz"));
    mkdirSync(installed, { recursive: true });
    run("tar", ["-xzf", join(root, archive), "--strip-components=1", "-C", installed], root);
    const packages = join(root, "program/node_modules");
    for (const name of ["@pulumi", "@types"]) {
      symlinkSync(join(STACKS, "node_modules", name), join(packages, name));
    }
    cpSync(join(STACKS, "shared/example"), join(root, "program/src"), { recursive: true });
  }, 300_000);

  it("has what programs need, and neither tests nor sources", () => {
    const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
    expect(files).toEqual(expect.arrayContaining(["index.js", "index.d.ts", "package.json"]));
    expect(existsSync(join(installed, "components/postgres/credentials-function/index.mjs"))).toBe(
      true,
    );
    expect(files.filter((file) => /^test|(?<!\.d)\.ts$/.test(file))).toEqual([]);
  });

  it("is imported by a program with its types, and makes what it says", () => {
    const program = join(root, "program");
    writeFileSync(
      join(program, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          target: "es2022",
          module: "node16",
          moduleResolution: "node16",
          strict: true,
          skipLibCheck: true,
          types: ["node"],
          outDir: "out",
          rootDir: "src",
        },
        files: ["src/index.ts"],
      }),
    );
    run(process.execPath, [join(STACKS, "node_modules/typescript/bin/tsc"), "-p", "."], program);
    writeFileSync(join(program, "run.cjs"), RUNNER);
    const said = JSON.parse(run(process.execPath, ["run.cjs"], program)) as {
      arn: string;
      made: string[];
    };
    expect(said.arn).toBe("arn:shop-data-shop-role");
    expect(said.made).toEqual(
      expect.arrayContaining([
        "aws:cloudfront/distribution:Distribution shop-data-pages",
        "aws:dynamodb/table:Table shop-data-orders",
        "aws:elasticache/replicationGroup:ReplicationGroup shop-data-carts",
        "aws:iam/rolePolicy:RolePolicy shop-data-shop-role-policy",
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock shop-data-pages-files-access",
      ]),
    );
  }, 300_000);
});
