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
  readonly host?: string;
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

/** Versions of secrets and the stages that they are at, as Secrets Manager keeps them. */
class Vault {
  private readonly secrets = new Map<
    string,
    Map<string, { value?: Credentials; stages: string[] }>
  >();
  private count = 0;

  nameOf = (secretId: string): string => secretId;

  versions(secret: string): Map<string, { value?: Credentials; stages: string[] }> {
    const known = this.secrets.get(secret) ?? new Map();
    this.secrets.set(secret, known);
    return known;
  }

  read = (secret: string, stage: string, token?: string): Promise<Credentials | undefined> => {
    const found = [...this.versions(secret)].find(
      ([id, { stages }]) => stages.includes(stage) && (token ?? id) === id,
    );
    return Promise.resolve(found?.[1].value);
  };

  randomPassword = (): Promise<string> => {
    this.count += 1;
    return Promise.resolve(`made-up-${this.count}`);
  };

  write = (secret: string, value: Credentials, token?: string): Promise<void> => {
    const versions = this.versions(secret);
    if (token === undefined) {
      this.demote(secret);
      versions.set(`v${versions.size}`, { value, stages: ["AWSCURRENT"] });
    } else {
      versions.set(token, { value, stages: ["AWSPENDING"] });
    }
    return Promise.resolve();
  };

  stages = (secret: string, token: string): Promise<string[]> =>
    Promise.resolve(this.versions(secret).get(token)?.stages ?? []);

  finish = (secret: string, token: string): Promise<void> => {
    this.demote(secret);
    const version = this.versions(secret).get(token);
    if (version) {
      version.stages = ["AWSCURRENT"];
    }
    return Promise.resolve();
  };

  private demote(secret: string): void {
    for (const version of this.versions(secret).values()) {
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
  let vault: Vault;
  let handler: Handler;
  /** A function with a vault of its own; sessions at `proxy` are checked as a proxy would. */
  let manage: (settings: object) => { vault: Vault; handler: Handler };

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
    manage = (settings) => {
      const own = new Vault();
      const open = async (options: {
        host: string;
        user: string;
        password: string;
      }): Promise<Session> => {
        if (options.host === "proxy") {
          // A proxy knows users by their secrets only.
          const known = await own.read(options.user, "AWSCURRENT");
          if (known?.password !== options.password) {
            throw new Error(`the proxy does not know ${options.user} so`);
          }
        }
        return tools.connect({ ...options, host: "127.0.0.1", plain: true });
      };
      return {
        vault: own,
        handler: tools.createHandler({
          vault: own,
          connect: open,
          settings: { host: "127.0.0.1", port, database: "app", user: "app", ...settings },
        }),
      };
    };
    ({ vault, handler } = manage({}));
    await vault.write("master", { username: master.user, password: master.password });
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
    const value = await vault.read("application", "AWSCURRENT");
    return { user: value?.username ?? "", password: value?.password ?? "" };
  };

  const HOST = { prepare: true, host: "127.0.0.1" };

  const rotate = async (
    token: string,
    secret = "application",
    by: { vault: Vault; handler: Handler } = { vault, handler },
  ): Promise<void> => {
    by.vault.versions(secret).set(token, { stages: ["AWSPENDING"] });
    for (const Step of ["createSecret", "setSecret", "testSecret", "finishSecret"]) {
      // Each may come twice.
      await by.handler({ Step, SecretId: secret, ClientRequestToken: token });
      await by.handler({ Step, SecretId: secret, ClientRequestToken: token });
    }
  };

  it("makes the user, and writes all that a client needs into the secret", async () => {
    expect(await handler(HOST)).toEqual({ user: "app" });
    expect(await vault.read("application", "AWSCURRENT")).toEqual({
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
    const before = [...vault.versions("application").keys()];
    await handler(HOST);
    expect([...vault.versions("application").keys()]).toEqual(before);
  });

  it("repairs a user whose password somebody changed", async () => {
    const admin = await connect(master);
    await admin.query(`ALTER ROLE "app" WITH PASSWORD 'something else'`);
    admin.end();
    await expect(connect(await current())).rejects.toThrow("password authentication failed");
    await handler(HOST);
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

  it("gives a proxy a secret for each user, which is true after every rotation", async () => {
    const behind = manage({ proxied: true });
    await behind.vault.write("master", { username: master.user, password: master.password });
    await behind.handler({ prepare: true });
    // Before there is a proxy, nobody is told where it is.
    expect(await behind.vault.read("application", "AWSCURRENT")).toBeUndefined();
    await behind.handler({ prepare: true, host: "proxy" });
    for (const [turn, user] of ["app", "app_b", "app", "app_b"].entries()) {
      if (turn > 0) {
        await rotate(`turn-${turn}`, "application", behind);
      }
      const told = await behind.vault.read("application", "AWSCURRENT");
      expect(told).toMatchObject({ host: "proxy", username: user });
      for (const name of ["app", "app_b"]) {
        const kept = await behind.vault.read(name, "AWSCURRENT");
        expect(kept?.username).toBe(name);
        (await connect({ user: name, password: kept?.password ?? "" })).end();
      }
      expect((await behind.vault.read(user, "AWSCURRENT"))?.password).toBe(told?.password);
    }
  });

  it("does not finish a rotation that the proxy has not heard of", async () => {
    const behind = manage({ proxied: true });
    await behind.vault.write("master", { username: master.user, password: master.password });
    await behind.handler({ prepare: true, host: "proxy" });
    behind.vault.versions("application").set("lost", { stages: ["AWSPENDING"] });
    const step = (Step: string): Promise<unknown> =>
      behind.handler({ Step, SecretId: "application", ClientRequestToken: "lost" });
    await step("createSecret");
    await step("setSecret");
    await behind.vault.write("app_b", { username: "app_b", password: "of yesterday" });
    await expect(step("testSecret")).rejects.toThrow("the proxy does not know app_b so");
    expect(await behind.vault.read("application", "AWSCURRENT")).toMatchObject({ username: "app" });
  });

  it("lets nobody be locked out of a database that was restored", async () => {
    const told = await current();
    const admin = await connect(master);
    for (const statement of [
      'REASSIGN OWNED BY "app", "app_b", "app_owner" TO CURRENT_USER',
      'DROP OWNED BY "app", "app_b", "app_owner"',
      'DROP ROLE "app", "app_b", "app_owner"',
    ]) {
      await admin.query(statement);
    }
    admin.end();
    await expect(connect(told)).rejects.toThrow("password authentication failed");
    await handler(HOST);
    (await connect(await current())).end();
  });

  it("keeps the master's password where RDS does not, and renews it", async () => {
    const admin = await connect(master);
    await admin.query(`CREATE ROLE "boss" LOGIN CREATEROLE PASSWORD 'the first'`);
    await admin.query('GRANT ALL ON DATABASE "app" TO "boss" WITH GRANT OPTION');
    await admin.query('GRANT ALL ON SCHEMA public TO "boss" WITH GRANT OPTION');
    admin.end();
    const own = manage({ user: "shop" });
    const first = { username: "boss", password: "the first" };
    await own.handler({ prepare: true, host: "127.0.0.1", master: first });
    expect(await own.vault.read("master", "AWSCURRENT")).toMatchObject(first);
    await rotate("master-turn", "master", own);
    const second = await own.vault.read("master", "AWSCURRENT");
    expect(second?.username).toBe("boss");
    await expect(connect({ user: "boss", password: "the first" })).rejects.toThrow("password");
    (await connect({ user: "boss", password: second?.password ?? "" })).end();
    // A later deployment says the first password again, and nobody believes it.
    await own.handler({ prepare: true, host: "127.0.0.1", master: first });
    expect(await own.vault.read("master", "AWSCURRENT")).toEqual(second);
    await rotate("user-turn", "application", own);
    expect(await own.vault.read("application", "AWSCURRENT")).toMatchObject({ username: "shop_b" });
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
      handler({ Step: "setSecret", SecretId: "application", ClientRequestToken: "unheard-of" }),
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
    // A database may have all the letters that PostgreSQL has room for; a user keeps some free.
    const long = "d".repeat(63);
    expect(() => createHandler({ settings: { user: "app", database: long } })).not.toThrow();
    expect(() => createHandler({ settings: { user: long, database: "app" } })).toThrow(
      "is no name",
    );
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
