// The official Socket.IO client, driven by a test: orders come as lines of JSON, and what happens goes out the same way.
// Usage: node socket_io.cjs FOLDER_WITH_NODE_MODULES
const { createRequire } = require('node:module');
const readline = require('node:readline');
const { io } = createRequire(process.argv[2] + '/package.json')('socket.io-client');

const say = (value) => process.stdout.write(JSON.stringify(value) + '\n');
let socket;
// What the client would come back with, as an application keeps it: the place in its own tenant's log.
let since;
let home;

const orders = {
  connect({ url, auth }) {
    since = auth.since;
    socket = io(url, {
      transports: ['websocket'],
      reconnectionDelay: 50,
      reconnectionDelayMax: 200,
      forceNew: true,
      auth: (give) => give({ token: auth.token, ...(since ? { since } : {}) }),
    });
    socket.on('connect', () => say({ on: 'connect' }));
    socket.on('connect_error', (error) => say({ on: 'connect_error', message: error.message }));
    socket.on('disconnect', (reason) => say({ on: 'disconnect', reason }));
    socket.onAny((name, data) => {
      if (name === 'ready') home = data.tenant_id;
      if (data && data.cursor && data.tenant_id === home) since = data.cursor;
      say({ on: 'event', name, data });
    });
  },
  emit({ id, name, message }) {
    socket.timeout(15000).emit(name, message, (error, answer) => say({ on: 'answer', id, error: error?.message, answer }));
  },
  // The connection breaks, and the client comes back by itself.
  break() {
    socket.io.engine.close();
  },
  // The same to another server, with what is known.
  move({ url }) {
    socket.io.uri = url;
    socket.io.engine.close();
  },
  close() {
    socket?.close();
    process.exit(0);
  },
};

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const order = JSON.parse(line);
  orders[order.op](order);
}).on('close', () => process.exit(0));
