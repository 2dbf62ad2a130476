/**
 * The applications' database user: made, and given a new password from time to time.
 *
 * Two users take turns. While one is current, the other's password is renewed; then it becomes
 * current. Whoever still works with the old one can go on until the next turn. Both belong to one
 * role that owns what they make, so it does not matter which of them made it. A proxy knows a user
 * by a secret of its own, so behind one there are two more secrets, always as the database is.
 *
 * Where RDS does not keep the master's password, this does, see `master.mjs`.
 *
 * Nobody outside of Secrets Manager ever sees a password: no program, no state, no log.
 */
import { MasterLogin } from "./master.mjs";
import { verifier } from "./postgres.mjs";

/** A user has room for what is put behind its name; a database needs none. */
const USER = /^[a-z][a-z0-9_]{0,55}$/;
const DATABASE = /^[a-z][a-z0-9_]{0,62}$/;

/**
 * `vault` reads and writes Secrets Manager, whose secrets it knows as `application`, `master` and by
 * the names of users; `connect` opens sessions; `settings` says which database, which user, and
 * whether a proxy stands in front.
 */
export function createHandler({ vault, connect, settings }) {
  for (const [name, form] of [
    [settings.user, USER],
    [settings.database, DATABASE],
  ]) {
    if (!form.test(name)) {
      throw new Error(`${JSON.stringify(name)} is no name for a user or a database`);
    }
  }
  const jobs = new Jobs(vault, connect, settings);
  return (event = {}) => (event.Step === undefined ? jobs.prepare(event) : jobs.rotate(event));
}

class Jobs {
  constructor(vault, connect, settings) {
    Object.assign(this, { vault, connect, settings });
    this.master = new MasterLogin(vault, (login) => this.session(login));
  }

  /**
   * After a deployment: the users exist, and with a `host` to connect to, the applications' secret
   * says all that a client needs. `master` is what a new server was told, where nobody else keeps it.
   */
  async prepare({ host, master } = {}) {
    if (master) {
      await this.master.adopt(this.complete(master, this.settings.host));
    }
    const current = await this.vault.read("application", "AWSCURRENT");
    const username = current?.username ?? this.settings.user;
    const login = this.settings.proxied
      ? await this.prepareBoth(username, current?.password)
      : await this.prepareOne({ username, password: current?.password });
    const wanted = this.complete(login, host);
    if (host && JSON.stringify(current) !== JSON.stringify(wanted)) {
      await this.vault.write("application", wanted);
    }
    return { user: username };
  }

  /** The user with this password, or with a new one. */
  async prepareOne({ username, password }) {
    const login = { username, password: password ?? (await this.vault.randomPassword()) };
    if (password === undefined || !(await this.works(login))) {
      await this.ensureUser(login);
    }
    return login;
  }

  /** Both users, each with its own secret; returns the one that is current. */
  async prepareBoth(current, password) {
    const logins = new Map();
    for (const username of this.users()) {
      const kept = await this.vault.read(username, "AWSCURRENT");
      const known = kept?.password ?? (username === current ? password : undefined);
      const login = await this.prepareOne({ username, password: known });
      if (!kept) {
        await this.vault.write(username, login);
      }
      logins.set(username, login);
    }
    return logins.get(current);
  }

  /** One step of a rotation, as Secrets Manager asks for it. Each may come twice. */
  async rotate({ Step: step, SecretId: secretId, ClientRequestToken: token }) {
    const secret = this.vault.nameOf(secretId);
    const stages = await this.vault.stages(secret, token);
    if (stages.includes("AWSCURRENT")) {
      return;
    }
    if (!stages.includes("AWSPENDING")) {
      throw new Error("there is no rotation under way for this version of the secret");
    }
    const turn = secret === "master" ? this.master : this;
    switch (step) {
      case "createSecret":
        return this.createPending(secret, token, turn);
      case "setSecret":
        return turn.set(await this.pending(secret, token));
      case "testSecret":
        return this.test(await this.pending(secret, token));
      case "finishSecret":
        return this.vault.finish(secret, token);
      default:
        throw new Error(`${step} is no step of a rotation`);
    }
  }

  async createPending(secret, token, turn) {
    if (await this.vault.read(secret, "AWSPENDING", token)) {
      return;
    }
    const current = await this.vault.read(secret, "AWSCURRENT");
    const username = turn.next(current);
    const password = await this.vault.randomPassword();
    await this.vault.write(
      secret,
      // Where clients connect is as it was when the secret was published.
      this.complete({ username, password }, current?.host ?? this.settings.host),
      token,
    );
  }

  async pending(secret, token) {
    const pending = await this.vault.read(secret, "AWSPENDING", token);
    if (!pending) {
      throw new Error("the new version of the secret is not there yet");
    }
    return pending;
  }

  /** Whose turn it is after the one that is current. */
  next(current) {
    const [first, second] = this.users();
    return current?.username === first ? second : first;
  }

  async set({ username, password }) {
    await this.ensureUser({ username, password });
    if (this.settings.proxied) {
      await this.vault.write(username, { username, password });
    }
  }

  /** In the way in which clients will sign in: through the proxy, where there is one. */
  async test(login) {
    await this.login(login);
    if (login.host && login.host !== this.settings.host) {
      await this.login(login, login.host);
    }
  }

  users() {
    const { user } = this.settings;
    return [user, `${user}_b`];
  }

  complete({ username, password }, host) {
    const { port, database } = this.settings;
    return { engine: "postgres", host, port, dbname: database, username, password };
  }

  async works(login) {
    try {
      await this.login(login);
      return true;
    } catch {
      return false;
    }
  }

  async login(login, host) {
    const session = await this.session(login, host);
    try {
      await session.query("SELECT 1");
    } finally {
      session.end();
    }
  }

  async ensureUser({ username, password }) {
    if (!this.users().includes(username)) {
      throw new Error(`${JSON.stringify(username)} is not a user that this function manages`);
    }
    const session = await this.master.session();
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

  session({ username, password }, host = this.settings.host) {
    const { port, database } = this.settings;
    return this.connect({ host, port, user: username, password, database });
  }
}
