/** The built console over HTTP as the binary gives it (compressed, immutable), with made-up answers and a live feed. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

import * as content from "./content.mjs";
import { answer } from "./pages.mjs";

const TYPES = { ".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml", ".woff2": "font/woff2", ".json": "application/json" };
const RUN = /^\/api\/v1\/runs\/run-(\d+)-(\d+)(\/.*)?$/;

const HEART_MS = 5_000;

export class BenchServer {
  /** Bytes of JavaScript, style sheets and fonts that were sent, as they went over the wire. */
  sent = [];
  /** When how many resources were told to be done, in server time. */
  told = [];
  #packed;
  #plain;
  #sockets = new Set();

  /** `now` is what its clock says, for pictures; else it is the machine's. */
  constructor(repo, now = undefined) {
    this.now = () => now ?? new Date().toISOString();
    this.#packed = join(repo, "target/console-packed");
    this.#plain = join(repo, "target/console");
  }

  async start() {
    this.server = createServer((request, response) => this.#answer(request, response));
    this.server.on("upgrade", (request, socket) => this.#upgrade(request, socket));
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.address = `http://127.0.0.1:${this.server.address().port}`;
  }

  stop() {
    for (const socket of this.#sockets) socket.destroy();
    this.server.close();
    this.server.closeAllConnections();
  }

  /** What the binary carries, in bytes. */
  embedded() {
    const sizes = (folder) => readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => sum + (entry.isDirectory() ? sizes(join(folder, entry.name)) : statSync(join(folder, entry.name)).size), 0);
    return sizes(this.#packed);
  }

  #answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, "http://x");
    if (pathname.startsWith("/api/") || pathname === "/health") return this.#api(pathname, searchParams, response);
    let file = join(this.#plain, pathname);
    if (pathname === "/" || !existsSync(file) || !statSync(file).isFile()) file = join(this.#plain, "index.html");
    const type = TYPES[extname(file)] ?? "application/octet-stream";
    const packed = `${file.replace(this.#plain, this.#packed)}.br`;
    const compressed = existsSync(packed);
    const body = readFileSync(compressed ? packed : file);
    const hashed = pathname.startsWith("/assets/");
    response.writeHead(200, { "content-type": type, "content-length": body.length, "cache-control": hashed ? "public, max-age=31536000, immutable" : "no-store", ...(compressed ? { "content-encoding": "br" } : {}) });
    response.end(body);
    this.sent.push({ path: pathname, kind: extname(file).slice(1), bytes: body.length });
  }

  #api(path, search, response) {
    const json = (value) => {
      const body = JSON.stringify(value);
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
      response.end(body);
    };
    const made = answer(path, search);
    if (made) return json(made);
    const found = RUN.exec(path);
    if (found) {
      const [, units, resources, rest = ""] = found;
      const id = `run-${units}-${resources}`;
      if (rest === "/detail") return json(content.detail(id, Number(units), Number(resources), this.now()));
      if (rest === "") return json(content.run(id, Number(units)));
      if (rest.startsWith("/units/")) return json(content.unitResources(rest.slice(7), Math.ceil(Number(resources) / Number(units))));
      if (rest === "/log") return json({ lines: [], more: false });
      return json({ items: [], next: 1, complete: false });
    }
    if (path === "/api/v1/auth/me") return json(content.ME);
    if (path === "/api/v1/tenants") return json(content.TENANTS);
    if (path === "/api/v1/setup/status") return json({ completed: true });
    if (path === "/health") return json({ status: "healthy", version: "bench", checks: { database: "up" } });
    if (path === "/api/v1/runs") return json({ items: content.runs(200) });
    if (path === "/api/v1/deployments") {
      const [from, limit] = [Number(search.get("after") ?? 0), Number(search.get("limit") ?? 100)];
      const items = content.deployments(10_000);
      return json({ items: items.slice(from, from + limit), ...(from + limit < items.length ? { next: String(from + limit) } : {}) });
    }
    return json({ items: [] });
  }

  #upgrade(request, socket) {
    const key = createHash("sha1").update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
    // A browser takes no answer that leaves out the protocol it asked for.
    const protocol = request.headers["sec-websocket-protocol"];
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${key}\r\n${protocol ? `sec-websocket-protocol: ${protocol}\r\n` : ""}\r\n`);
    socket.on("error", () => undefined);
    this.#sockets.add(socket);
    const found = RUN.exec(new URL(request.url, "http://x").pathname);
    // Notifications and approvals: open, and nothing happens on them.
    if (!found) return;
    const feed = { socket, units: Number(found[1]), events: content.events(Number(found[1])), seq: 1, done: 0 };
    this.feed = feed;
    // As the server does: a page takes a socket that says nothing for a dead one.
    const heart = setInterval(() => this.#frame(feed, { type: "heartbeat", seq: feed.seq, server_time: this.now() }), HEART_MS);
    socket.on("close", () => clearInterval(heart));
    this.#frame(feed, { type: "resumed", seq: 1, run: content.run(`run-${feed.units}-0`, 1), server_time: this.now() });
  }

  #frame({ socket }, value) {
    const body = Buffer.from(JSON.stringify(value));
    const head = body.length < 126 ? Buffer.from([0x81, body.length]) : body.length < 65536 ? Buffer.from([0x81, 126, body.length >> 8, body.length & 255]) : Buffer.concat([Buffer.from([0x81, 127, 0, 0, 0, 0]), (() => { const size = Buffer.alloc(4); size.writeUInt32BE(body.length); return size; })()]);
    socket.write(Buffer.concat([head, body]));
  }

  /** So many events each second for so long, in the windows of 100 ms in which the server merges them. */
  async play(perSecond, seconds) {
    const feed = this.feed;
    const end = Date.now() + seconds * 1000;
    let owed = 0;
    let last = Date.now();
    while (Date.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      const now = Date.now();
      owed += ((now - last) / 1000) * perSecond;
      last = now;
      const items = [];
      for (; owed >= 1; owed -= 1) {
        const item = feed.events.next().value;
        if (item.event.status === "done") feed.done += 1;
        feed.seq = item.seq;
        items.push(item);
      }
      if (items.length === 0) continue;
      this.#frame(feed, { type: "events", items });
      this.told.push({ at: Date.now(), done: feed.done });
    }
  }
}
