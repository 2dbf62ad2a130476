/**
 * The applications' database user: made, and given a new password from time to time.
 *
 * Two users take turns. While one is current, the other's password is renewed; then it becomes
 * current. Whoever still works with the old one can go on until the next turn. Both belong to one
 * role that owns what they make, so it does not matter which of them made it.
 *
 * Nobody outside of Secrets Manager ever sees a password: no program, no state, no log.
 */
import { verifier } from "./postgres.mjs";

const NAME = /^[a-z][a-z0-9_]{0,55}$/;

/**
 * `secrets` reads and writes Secrets Manager, `connect` opens sessions, `settings` says which secret
 * and which database.
 */
export function createHandler({ secrets, connect, settings }) {
  for (const name of [settings.user, settings.database]) {
    if (!NAME.test(name)) {
      throw new Error(`${JSON.stringify(name)} is no name for a user or a database`);
    }
  }
  const jobs = new Jobs(secrets, connect, settings);
  return (event = {}) => (event.Step === undefined ? jobs.prepare() : jobs.rotate(event));
}

class Jobs {
  constructor(secrets, connect, settings) {
    Object.assign(this, { secrets, connect, settings });
  }

  /** After a deployment: the user exists and its secret says all that a client needs. */
  async prepare() {
    const current = await this.secrets.read("AWSCURRENT");
    const wanted = this.complete({
      username: current?.username ?? this.settings.user,
      password: current?.password ?? (await this.secrets.randomPassword()),
    });
    const changed = JSON.stringify(current) !== JSON.stringify(wanted);
    if (changed || !(await this.works(wanted))) {
      await this.ensureUser(wanted);
    }
    if (changed) {
      await this.secrets.write(wanted);
    }
    return { user: wanted.username };
  }

  /** One step of a rotation, as Secrets Manager asks for it. Each may come twice. */
  async rotate({ Step: step, SecretId: secretId, ClientRequestToken: token }) {
    const stages = await this.secrets.stages(secretId, token);
    if (stages.includes("AWSCURRENT")) {
      return;
    }
    if (!stages.includes("AWSPENDING")) {
      throw new Error("there is no rotation under way for this version of the secret");
    }
    switch (step) {
      case "createSecret":
        return this.createPending(token);
      case "setSecret":
        return this.ensureUser(await this.pending(token));
      case "testSecret":
        return this.login(await this.pending(token));
      case "finishSecret":
        return this.secrets.finish(token);
      default:
        throw new Error(`${step} is no step of a rotation`);
    }
  }

  async createPending(token) {
    if (await this.secrets.read("AWSPENDING", token)) {
      return;
    }
    const current = await this.secrets.read("AWSCURRENT");
    const { user } = this.settings;
    const next = this.complete({
      username: current?.username === user ? `${user}_b` : user,
      password: await this.secrets.randomPassword(),
    });
    await this.secrets.write(next, token);
  }

  async pending(token) {
    const pending = await this.secrets.read("AWSPENDING", token);
    if (!pending) {
      throw new Error("the new version of the secret is not there yet");
    }
    return pending;
  }

  complete({ username, password }) {
    const { host, port, database } = this.settings;
    return { engine: "postgres", host, port, dbname: database, username, password };
  }

  async works(credentials) {
    try {
      await this.login(credentials);
      return true;
    } catch {
      return false;
    }
  }

  async login({ username, password }) {
    const session = await this.session(username, password);
    try {
      await session.query("SELECT 1");
    } finally {
      session.end();
    }
  }

  async ensureUser({ username, password }) {
    if (![this.settings.user, `${this.settings.user}_b`].includes(username)) {
      throw new Error(`${JSON.stringify(username)} is not a user that this function manages`);
    }
    const master = await this.secrets.master();
    const session = await this.session(master.username, master.password);
    try {
      for (const statement of await this.statements(session, username, password)) {
        await session.query(statement);
      }
    } finally {
      session.end();
    }
  }

  async statements(session, user, password) {
    const owner = `${this.settings.user}_owner`;
    const { database } = this.settings;
    const missing = async (role) =>
      (await session.query(`SELECT 1 FROM pg_roles WHERE rolname = '${role}'`)).length === 0;
    return [
      ...((await missing(owner)) ? [`CREATE ROLE "${owner}" NOLOGIN`] : []),
      ...((await missing(user)) ? [`CREATE ROLE "${user}" LOGIN`] : []),
      `ALTER ROLE "${user}" WITH LOGIN PASSWORD '${verifier(password)}'`,
      `GRANT "${owner}" TO "${user}"`,
      `ALTER ROLE "${user}" SET role TO '${owner}'`,
      `GRANT CONNECT, TEMPORARY ON DATABASE "${database}" TO "${owner}"`,
      `GRANT USAGE, CREATE ON SCHEMA public TO "${owner}"`,
    ];
  }

  session(user, password) {
    const { host, port, database } = this.settings;
    return this.connect({ host, port, user, password, database });
  }
}
