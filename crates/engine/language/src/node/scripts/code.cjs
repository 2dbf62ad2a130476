// Keeps what the JavaScript engine made of modules, so that the next process need not make it again.
//
// One file has the code of all installed modules that were loaded with one copy of the SDK, by the
// digest of their name and text: code remembers the name it was made under, which traces show. A
// program's own files are small, and often in another folder the next time. The file is read at the
// start, checked as a whole, and written at the end if something was new. Writers write beside it and
// rename: processes that end at the same time lose each other's news at worst. What is damaged, or was
// made by another version of Node.js, is as good as absent.
"use strict";

const crypto = require("node:crypto");
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const vm = require("node:vm");

// Above this it is begun anew.
const LARGEST = 64 * 1024 * 1024;

const installed = /[\\/]node_modules[\\/]/;

const digestOf = (data) => crypto.createHash("sha256").update(data).digest("base64");

// Returns what writes the news. `owner` is whoever keeps a file of its own, and `isKept` may choose.
function keepCode(folder, owner, isKept = importsNothingLater) {
    if (process.env.NODE_V8_COVERAGE !== undefined) {
        // It wants to see modules being compiled.
        return () => {};
    }
    const made = [process.version, process.arch, process.execArgv, process.env.NODE_OPTIONS, owner];
    const file = path.join(folder, `${crypto.createHash("sha256").update(JSON.stringify(made)).digest("hex")}.code`);
    const kept = read(file);
    const news = new Map();
    const compile = Module.prototype._compile;
    Module.prototype._compile = function (text, filename, format, ...rest) {
        const plain = typeof text === "string" && !text.startsWith("#!") && (format ?? "commonjs") === "commonjs";
        const script = plain && installed.test(filename) && isKept(text) ? scriptOf(text, filename) : undefined;
        if (script === undefined) {
            return compile.call(this, text, filename, format, ...rest);
        }
        const body = script.runInThisContext();
        return Reflect.apply(body, this.exports, [this.exports, requireOf(this), this, filename, path.dirname(filename)]);
    };

    function scriptOf(text, filename) {
        const digest = digestOf(`${filename}\0${text}`);
        const cachedData = kept.get(digest);
        try {
            const columnOffset = -Module.wrapper[0].length;
            const script = new vm.Script(Module.wrap(text), { filename, columnOffset, cachedData });
            if (cachedData === undefined || script.cachedDataRejected) {
                news.set(digest, script);
            }
            return script;
        } catch {
            // The other way has the better message.
            return undefined;
        }
    }

    return () => {
        if (news.size > 0) {
            write(file, kept, news);
        }
    };
}

// Kept code has forgotten who imports modules for it.
const importsNothingLater = (text) => !/\bimport\s*[(/]/.test(text);

// What modules know as `require`.
function requireOf(module) {
    const require = (name) => module.require(name);
    require.resolve = (name, options) => Module._resolveFilename(name, module, false, options);
    require.resolve.paths = (name) => Module._resolveLookupPaths(name, module);
    require.main = process.mainModule;
    require.extensions = Module._extensions;
    require.cache = Module._cache;
    return require;
}

// ---- The file: its digest, the length of its table, the table, the code ----

function read(file) {
    const kept = new Map();
    try {
        const data = fs.readFileSync(file);
        const content = data.subarray(44);
        if (data.subarray(0, 44).toString() !== digestOf(content)) {
            return kept;
        }
        const start = 4 + content.readUInt32LE(0);
        for (const [digest, from, to] of JSON.parse(content.subarray(4, start).toString())) {
            kept.set(digest, content.subarray(start + from, start + to));
        }
    } catch {
        // Nothing was kept yet.
    }
    return kept;
}

function write(file, kept, news) {
    const code = [...news].map(([digest, script]) => [digest, script.createCachedData()]);
    const size = (entries) => entries.reduce((sum, [, data]) => sum + data.length, 0);
    const old = [...kept].filter(([digest]) => !news.has(digest));
    const all = size(old) + size(code) > LARGEST ? code : [...old, ...code];
    let at = 0;
    const table = Buffer.from(JSON.stringify(all.map(([digest, data]) => [digest, at, (at += data.length)])));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(table.length);
    const content = Buffer.concat([length, table, ...all.map(([, data]) => data)]);
    const beside = `${file}.${process.pid}`;
    try {
        fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
        fs.writeFileSync(beside, Buffer.concat([Buffer.from(digestOf(content)), content]), { mode: 0o600 });
        fs.renameSync(beside, file);
    } catch {
        // It is made again the next time.
    }
}

module.exports = { keepCode };
