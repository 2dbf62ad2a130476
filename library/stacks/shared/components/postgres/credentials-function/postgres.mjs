/**
 * As much of PostgreSQL's protocol as it takes to make a user: TLS, SCRAM and simple queries.
 *
 * A function in AWS has no driver unless one is packed with it, and a packed one must be kept up to
 * date. What this needs of the protocol has not changed since 2018.
 */
import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from "node:crypto";
import net from "node:net";
import tls from "node:tls";

const PROTOCOL = 196608;
const SSL_REQUEST = 80877103;
const ITERATIONS = 4096;
const TIMEOUT_MS = 15_000;

/** Opens a session. `plain` is for servers on the own machine only: tests. */
export async function connect({ host, port, user, password, database, plain = false }) {
  const socket = await open(host, port, plain);
  const session = new Session(socket);
  try {
    await session.start(user, password, database);
  } catch (error) {
    session.end();
    throw error;
  }
  return session;
}

class Session {
  constructor(socket) {
    this.socket = socket;
    this.messages = messages(socket);
  }

  async start(user, password, database) {
    const settings = ["user", user, "database", database, "client_encoding", "UTF8"];
    const body = Buffer.concat([int32(PROTOCOL), ...settings.map(text), Buffer.from([0])]);
    this.socket.write(Buffer.concat([int32(body.length + 4), body]));
    let scram;
    for (;;) {
      const { type, body: answer } = await this.next();
      if (type === "Z") {
        return;
      }
      if (type !== "R") {
        continue;
      }
      const kind = answer.readInt32BE(0);
      if (kind === 10) {
        scram = new Scram(password);
        const first = Buffer.from(scram.first());
        this.send("p", Buffer.concat([text("SCRAM-SHA-256"), int32(first.length), first]));
      } else if (kind === 11 && scram) {
        this.send("p", Buffer.from(scram.final(answer.toString("utf8", 4))));
      } else if (kind === 12 && scram) {
        scram.verify(answer.toString("utf8", 4));
      } else if (kind !== 0 || !scram?.verified) {
        // Anything weaker would hand the password to whoever answers.
        throw new Error(`the server wants to authenticate in way ${kind}; only SCRAM is spoken`);
      }
    }
  }

  /** Rows of a statement, each a list of texts. */
  async query(statement) {
    this.send("Q", text(statement));
    const rows = [];
    let failure;
    for (;;) {
      const { type, body } = await this.next({ failing: true });
      if (type === "D") {
        rows.push(columns(body));
      } else if (type === "E") {
        failure = new Error(message(body));
      } else if (type === "Z") {
        if (failure) {
          throw failure;
        }
        return rows;
      }
    }
  }

  end() {
    this.socket.end(frame("X", Buffer.alloc(0)));
    this.socket.destroySoon?.();
  }

  send(type, body) {
    this.socket.write(frame(type, body));
  }

  async next({ failing = false } = {}) {
    const { value, done } = await this.messages.next();
    if (done) {
      throw new Error("the server closed the connection");
    }
    if (value.type === "E" && !failing) {
      throw new Error(message(value.body));
    }
    return value;
  }
}

/** RFC 5802, the client's side. */
class Scram {
  verified = false;

  constructor(password) {
    this.password = password;
    this.nonce = randomBytes(18).toString("base64");
    this.bare = `n=,r=${this.nonce}`;
  }

  first() {
    return `n,,${this.bare}`;
  }

  final(challenge) {
    const { r: nonce = "", s: salt = "", i: iterations = "" } = attributes(challenge);
    if (!nonce.startsWith(this.nonce) || nonce.length === this.nonce.length) {
      throw new Error("the server answered somebody else's greeting");
    }
    const keys = derive(this.password, Buffer.from(salt, "base64"), Number(iterations));
    const proofless = `c=biws,r=${nonce}`;
    const signed = `${this.bare},${challenge},${proofless}`;
    const signature = hmac(sha256(keys.client), signed);
    const proof = keys.client.map((byte, at) => byte ^ signature[at]);
    this.expected = hmac(keys.server, signed);
    return `${proofless},p=${Buffer.from(proof).toString("base64")}`;
  }

  verify(answer) {
    const proof = Buffer.from(attributes(answer).v ?? "", "base64");
    if (proof.length !== this.expected.length || !timingSafeEqual(proof, this.expected)) {
      throw new Error("the server does not know the password either: it is not our server");
    }
    this.verified = true;
  }
}

/**
 * What a server keeps instead of a password. Sent in a statement, it tells a log of statements
 * nothing.
 */
export function verifier(password, salt = randomBytes(16)) {
  const { client, server } = derive(password, salt, ITERATIONS);
  const stored = sha256(client).toString("base64");
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString("base64")}$${stored}:${server.toString("base64")}`;
}

function derive(password, salt, iterations) {
  if (!(iterations >= ITERATIONS)) {
    throw new Error(`the server asks for ${iterations} rounds, which are too few`);
  }
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  return { client: hmac(salted, "Client Key"), server: hmac(salted, "Server Key") };
}

const hmac = (key, data) => createHmac("sha256", key).update(data).digest();
const sha256 = (data) => createHash("sha256").update(data).digest();

function attributes(line) {
  return Object.fromEntries(line.split(",").map((part) => [part[0], part.slice(2)]));
}

async function open(host, port, plain) {
  const socket = net.connect({ host, port });
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`${host} does not answer`)));
  await once(socket, "connect");
  if (plain) {
    return socket;
  }
  socket.write(Buffer.concat([int32(8), int32(SSL_REQUEST)]));
  const [answer] = await once(socket, "data");
  if (answer.toString("latin1") !== "S") {
    socket.destroy();
    throw new Error("the server does not speak TLS");
  }
  const secure = tls.connect({ socket, servername: host });
  await once(secure, "secureConnect");
  return secure;
}

function once(emitter, event) {
  return new Promise((resolve, reject) => {
    const fail = (error) => reject(error);
    emitter.once("error", fail);
    emitter.once(event, (...values) => {
      emitter.off("error", fail);
      resolve(values);
    });
  });
}

/** Whole messages out of a stream of pieces. */
async function* messages(socket) {
  let rest = Buffer.alloc(0);
  for await (const piece of socket) {
    rest = Buffer.concat([rest, piece]);
    while (rest.length >= 5 && rest.length >= rest.readInt32BE(1) + 1) {
      const length = rest.readInt32BE(1);
      yield { type: String.fromCharCode(rest[0]), body: rest.subarray(5, length + 1) };
      rest = rest.subarray(length + 1);
    }
  }
}

function columns(body) {
  const values = [];
  let at = 2;
  for (let left = body.readInt16BE(0); left > 0; left -= 1) {
    const length = body.readInt32BE(at);
    at += 4;
    values.push(length < 0 ? null : body.toString("utf8", at, at + length));
    at += Math.max(0, length);
  }
  return values;
}

/** The message of an error, without its details: they may quote a statement. */
function message(body) {
  const fields = body.toString("utf8").split("\0");
  return fields.find((field) => field.startsWith("M"))?.slice(1) ?? "the server refused";
}

function frame(type, body) {
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function int32(value) {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
}

function text(value) {
  return Buffer.from(`${value}\0`);
}
