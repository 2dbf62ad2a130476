/** The master's login: RDS keeps and renews it, or, where RDS cannot, this does. */
import { verifier } from "./postgres.mjs";

const NAME = /^[a-z][a-z0-9_]{0,62}$/;

export class MasterLogin {
  /** `open` opens a session with a login. */
  constructor(vault, open) {
    Object.assign(this, { vault, open });
  }

  /** A session as master, also while a rotation is between two passwords. */
  async session() {
    let refusal = new Error("the master's secret has no value");
    for (const stage of ["AWSCURRENT", "AWSPENDING"]) {
      const login = await this.vault.read("master", stage);
      if (!login) {
        continue;
      }
      try {
        return await this.open(login);
      } catch (error) {
        refusal = stage === "AWSCURRENT" ? error : refusal;
      }
    }
    throw refusal;
  }

  /** What a new server was told becomes the secret, unless the secret is true already. */
  async adopt(first) {
    const kept = await this.vault.read("master", "AWSCURRENT");
    if (kept && (await this.works(kept))) {
      return;
    }
    (await this.open(first)).end();
    await this.vault.write("master", first);
  }

  next(current) {
    if (!current) {
      throw new Error("the master's secret has no value yet");
    }
    return current.username;
  }

  async set(pending) {
    if (await this.works(pending)) {
      return;
    }
    const { username, password } = pending;
    if (!NAME.test(username)) {
      throw new Error(`${JSON.stringify(username)} is no name for a master`);
    }
    const session = await this.session();
    try {
      await session.query(`ALTER ROLE "${username}" WITH PASSWORD '${verifier(password)}'`);
    } finally {
      session.end();
    }
  }

  async works(login) {
    try {
      (await this.open(login)).end();
      return true;
    } catch {
      return false;
    }
  }
}
