const fs = require("fs");
const net = require("net");
const path = require("path");
const child_process = require("child_process");

const report = (name, result) => console.log(`${name}: ${result}`);
const why = (error) => `refused ${error.code || error.message}`.replace(/\n/g, " ");

// A tool that is not here proves nothing.
class Missing extends Error {}

function attempt(name, action) {
    try {
        const result = action();
        report(name, `ALLOWED ${result === undefined ? "" : String(result).slice(0, 60)}`);
    } catch (error) {
        report(name, error instanceof Missing ? `untried: no ${error.message}` : why(error));
    }
}

function connect(name, options) {
    return new Promise((resolve) => {
        const socket = net.connect({ timeout: 3000, ...options });
        const done = (result) => {
            report(name, result);
            socket.destroy();
            resolve();
        };
        socket.on("connect", () => done("ALLOWED"));
        socket.on("timeout", () => done("ALLOWED as far as a time-out"));
        socket.on("error", (error) => done(why(error)));
    });
}

function run(command, ...args) {
    const done = child_process.spawnSync(command, args, { encoding: "utf8" });
    if (done.error) throw done.error.code === "ENOENT" ? new Missing(command) : done.error;
    if (done.status !== 0) throw new Error(`exit ${done.status} ${done.stderr}`);
    return done.stdout;
}
