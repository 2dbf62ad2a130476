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
pulumi.runtime.setAllConfig({ "shop:dataKeyArn": "arn:k", "shop:alarmTopicArn": "arn:t" });
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
  const [arn] = await Promise.all([program.readerArn.promise(), program.bucketName.promise()]);
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
  }, 120_000);

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
    expect(said.arn).toBe("arn:reports-reader");
    expect(said.made).toEqual(
      expect.arrayContaining([
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock reports-archive-access",
        "aws:dynamodb/table:Table reports-index",
        "aws:iam/rolePolicy:RolePolicy reports-reader-policy",
      ]),
    );
  }, 120_000);
});
