/**
 * The function that manages the applications' database user, with a real PostgreSQL where this
 * machine has one, and a Secrets Manager of a few lines.
 */
import { execFileSync, type ChildProcess, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

interface Login {
  readonly user: string;
  readonly password: string;
}

interface Session {
  query(statement: string): Promise<Array<Array<string | null>>>;
  end(): void;
}

interface Credentials {
  readonly username: string;
  readonly password: string;
}

type Handler = (event?: object) => Promise<unknown>;

const FUNCTION = join(__dirname, "../../shared/components/postgres/credentials-function");

async function load(): Promise<{
  connect: (options: object) => Promise<Session>;
  verifier: (password: string, salt?: Buffer) => string;
  createHandler: (parts: object) => Handler;
}> {
  return {
    ...(await import(join(FUNCTION, "postgres.mjs"))),
    ...(await import(join(FUNCTION, "credentials.mjs"))),
  };
}

/** Versions of a secret and the stages that they are at, as Secrets Manager keeps them. */
class Secrets {
  readonly versions = new Map<string, { value?: Credentials; stages: string[] }>();
  private count = 0;

  constructor(private readonly masterLogin: Login) {}

  read = (stage: string, token?: string): Promise<Credentials | undefined> => {
    const found = [...this.versions].find(
      ([id, { stages }]) => stages.includes(stage) && (token ?? id) === id,
    );
    return Promise.resolve(found?.[1].value);
  };

  master = (): Promise<Credentials> =>
    Promise.resolve({ username: this.masterLogin.user, password: this.masterLogin.password });

  randomPassword = (): Promise<string> => {
    this.count += 1;
    return Promise.resolve(`made-up-${this.count}`);
  };

  write = (value: Credentials, token?: string): Promise<void> => {
    if (token === undefined) {
      this.demote();
      this.versions.set(`v${this.versions.size}`, { value, stages: ["AWSCURRENT"] });
    } else {
      this.versions.set(token, { value, stages: ["AWSPENDING"] });
    }
    return Promise.resolve();
  };

  stages = (_: string, token: string): Promise<string[]> =>
    Promise.resolve(this.versions.get(token)?.stages ?? []);

  finish = (token: string): Promise<void> => {
    this.demote();
    const version = this.versions.get(token);
    if (version) {
      version.stages = ["AWSCURRENT"];
    }
    return Promise.resolve();
  };

  private demote(): void {
    for (const version of this.versions.values()) {
      version.stages = version.stages.filter((stage) => stage !== "AWSCURRENT");
    }
  }
}

/** Where PostgreSQL's programs are, if this machine has them. */
function postgresPrograms(): string | undefined {
  const root = "/usr/lib/postgresql";
  const places = [
    process.env.NIMBUS_TEST_POSTGRES ?? "",
    ...(existsSync(root) ? readdirSync(root).map((version) => join(root, version, "bin")) : []),
  ];
  return places.find((place) => place !== "" && existsSync(join(place, "initdb")));
}

const programs = postgresPrograms();
if (programs === undefined) {
  console.warn("SKIPPED: there is no PostgreSQL on this machine to test credentials with");
}

describe.skipIf(programs === undefined)("the database's users, on a real server", () => {
  const master: Login = { user: "nimbus_admin", password: "the master's own" };
  let server: ChildProcess;
  let directory: string;
  let port: number;
  let connect: (login: Login) => Promise<Session>;
  let secrets: Secrets;
  let handler: Handler;

  beforeAll(async () => {
    const tools = await load();
    port = await freePort();
    directory = mkdtempSync(join(tmpdir(), "credentials-"));
    server = await startServer(programs ?? "", directory, port, master);
    connect = ({ user, password }) =>
      tools.connect({ host: "127.0.0.1", port, user, password, database: "postgres", plain: true });
    const admin = await connect(master);
    await admin.query('CREATE DATABASE "app"');
    admin.end();
    secrets = new Secrets(master);
    handler = tools.createHandler({
      secrets,
      connect: (options: object) => tools.connect({ ...options, plain: true }),
      settings: { host: "127.0.0.1", port, database: "app", user: "app" },
    });
    connect = ({ user, password }) =>
      tools.connect({ host: "127.0.0.1", port, user, password, database: "app", plain: true });
  }, 60_000);

  afterAll(async () => {
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGQUIT");
    await ended;
    rmSync(directory, { recursive: true });
  });

  const current = async (): Promise<Login> => {
    const value = await secrets.read("AWSCURRENT");
    return { user: value?.username ?? "", password: value?.password ?? "" };
  };

  const rotate = async (token: string): Promise<void> => {
    secrets.versions.set(token, { stages: ["AWSPENDING"] });
    for (const Step of ["createSecret", "setSecret", "testSecret", "finishSecret"]) {
      // Each may come twice.
      await handler({ Step, SecretId: "arn", ClientRequestToken: token });
      await handler({ Step, SecretId: "arn", ClientRequestToken: token });
    }
  };

  it("makes the user, and writes all that a client needs into the secret", async () => {
    expect(await handler({ prepare: true })).toEqual({ user: "app" });
    expect(await secrets.read("AWSCURRENT")).toEqual({
      engine: "postgres",
      host: "127.0.0.1",
      port,
      dbname: "app",
      username: "app",
      password: "made-up-1",
    });
    const session = await connect(await current());
    await session.query("CREATE TABLE orders (id int)");
    await session.query("INSERT INTO orders VALUES (7)");
    expect(await session.query("SELECT id FROM orders")).toEqual([["7"]]);
    session.end();
  });

  it("changes nothing the second time", async () => {
    const before = [...secrets.versions.keys()];
    await handler();
    expect([...secrets.versions.keys()]).toEqual(before);
  });

  it("repairs a user whose password somebody changed", async () => {
    const admin = await connect(master);
    await admin.query(`ALTER ROLE "app" WITH PASSWORD 'something else'`);
    admin.end();
    await expect(connect(await current())).rejects.toThrow("password authentication failed");
    await handler();
    (await connect(await current())).end();
  });

  it("gives a new password to the other user, which sees the same data", async () => {
    const old = await current();
    await rotate("first-rotation");
    const fresh = await current();
    expect([old.user, fresh.user]).toEqual(["app", "app_b"]);
    const session = await connect(fresh);
    expect(await session.query("SELECT id FROM orders")).toEqual([["7"]]);
    await session.query("ALTER TABLE orders ADD COLUMN note text");
    session.end();
    // Who started before the rotation can go on until the next one.
    (await connect(old)).end();
    await rotate("second-rotation");
    await expect(connect(old)).rejects.toThrow("password authentication failed");
    (await connect(fresh)).end();
    expect((await current()).user).toBe("app");
  });

  it("lets the users do nothing that only a master may", async () => {
    const session = await connect(await current());
    for (const forbidden of ["CREATE ROLE intruder", "CREATE DATABASE other"]) {
      await expect(session.query(forbidden)).rejects.toThrow("permission denied");
    }
    session.end();
  });

  it("refuses a rotation that is not under way", async () => {
    await expect(
      handler({ Step: "setSecret", SecretId: "arn", ClientRequestToken: "unheard-of" }),
    ).rejects.toThrow("no rotation under way");
  });

  it("speaks to no server without TLS", async () => {
    const { connect: connectSafely } = await load();
    await expect(
      connectSafely({ host: "127.0.0.1", port, ...master, database: "app" }),
    ).rejects.toThrow("does not speak TLS");
  });
});

describe("the database's users", () => {
  it("are known to a server by what cannot be turned back into a password", async () => {
    const { verifier } = await load();
    // RFC 7677 with PostgreSQL's number of rounds.
    expect(verifier("pencil", Buffer.from("W22ZaJ0SNY7soEsUEjb6gQ==", "base64"))).toBe(
      "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
    );
  });

  it("have names that need no quoting", async () => {
    const { createHandler } = await load();
    expect(() =>
      createHandler({ settings: { user: 'a"; DROP TABLE x', database: "app" } }),
    ).toThrow("is no name for a user or a database");
  });
});

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** PostgreSQL refuses to run as root, so it runs as somebody else then. */
function otherUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) {
    return undefined;
  }
  const number = (flag: string): number =>
    Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }));
  return { uid: number("-u"), gid: number("-g") };
}

async function startServer(
  bin: string,
  directory: string,
  port: number,
  { user, password }: Login,
): Promise<ChildProcess> {
  const as = otherUser();
  if (as) {
    chownSync(directory, as.uid, as.gid);
  }
  const passwordFile = join(directory, "password");
  writeFileSync(passwordFile, password, { mode: 0o644 });
  const data = join(directory, "data");
  execFileSync(
    join(bin, "initdb"),
    ["-D", data, "-U", user, "--pwfile", passwordFile, "--auth", "scram-sha-256", "--no-sync"],
    { ...as, stdio: "ignore" },
  );
  const server = spawn(
    join(bin, "postgres"),
    ["-D", data, "-p", String(port), "-k", directory, "-h", "127.0.0.1", "-c", "fsync=off"],
    { ...as, stdio: ["ignore", "ignore", "pipe"] },
  );
  await new Promise<void>((resolve, reject) => {
    let said = "";
    server.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes("database system is ready to accept connections")) {
        resolve();
      }
    });
    server.once("exit", () => reject(new Error(said)));
  });
  return server;
}
