// What exists "in the cloud", as files, and a log of every call.
//
// Two engines that treat a program alike leave the same files and the same log. Ids count how often
// an object of that name was made, so that they do not depend on the order of independent calls.
"use strict";

const fs = require("fs");
const path = require("path");

const root = process.env.PARITY_WORLD;
const things = path.join(root, "things");

function fileOf(id) {
    return path.join(things, `${encodeURIComponent(id)}.json`);
}

function log(method, details) {
    fs.appendFileSync(path.join(root, "calls.log"), JSON.stringify({ method, ...details }) + "\n");
}

/** A name for a new object: `<name>-<how many of that name there have been>`. */
function nextId(name) {
    const counter = path.join(root, "made", encodeURIComponent(name));
    fs.mkdirSync(path.dirname(counter), { recursive: true });
    fs.appendFileSync(counter, ".");
    return `${name}-${fs.statSync(counter).size}`;
}

function write(id, properties) {
    fs.mkdirSync(things, { recursive: true });
    fs.writeFileSync(fileOf(id), JSON.stringify(properties));
}

function read(id) {
    try {
        return JSON.parse(fs.readFileSync(fileOf(id), "utf8"));
    } catch (error) {
        if (error.code === "ENOENT") {
            return undefined;
        }
        throw error;
    }
}

function remove(id) {
    fs.rmSync(fileOf(id), { force: true });
}

/** Whether the test asked for this to fail: `world/fail` has lines `<method>:<name>`. */
function mustFail(method, name) {
    const file = path.join(root, "fail");
    return fs.existsSync(file) && fs.readFileSync(file, "utf8").split("\n").includes(`${method}:${name}`);
}

/** The same for a failure that does not happen again: `once-<method>:<name>`. */
function mustFailOnce(method, name) {
    if (!mustFail(`once-${method}`, name)) {
        return false;
    }
    const file = path.join(root, "fail");
    const others = fs.readFileSync(file, "utf8").split("\n").filter((line) => line !== `once-${method}:${name}`);
    fs.writeFileSync(file, others.join("\n"));
    return true;
}

module.exports = { log, mustFail, mustFailOnce, nextId, read, remove, write };
