// Runs in the process of a program before the SDK's own entry point.
//
//   - It keeps the SDK from loading what hardly any program uses.
//   - It keeps what the JavaScript engine made of modules for the next process.
//   - It gives Node.js the translated files in place of the TypeScript on disk.
//   - It makes stack traces point into that TypeScript.
//
// A program must not be able to observe anything else of it.
"use strict";

const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const { isMainThread } = require("node:worker_threads");

const own = /[\\/]@pulumi[\\/]pulumi[\\/](?!node_modules)/;

// What the SDK loads and hardly any program uses: what stores functions as text, what traces the SDK
// itself, and a library for programs that run other programs.
const rarelyNeeded = [
    { from: /[\\/]runtime[\\/]closure[\\/]/, request: /^@npmcli\/arborist$|\/typescript-shim$/, as: lazyModule },
    { from: /[\\/]runtime[\\/]closure[\\/]/, request: /^normalize-package-data$/, as: lazyFunction },
    { from: /[\\/]cmd[\\/]run[\\/]tracing\.js$/, request: /^@opentelemetry\/(?!api$)/, as: lazyMembers },
    { from: /[\\/]@pulumi[\\/]pulumi[\\/]index\.js$/, request: /^\.\/automation$/, as: lazyObject },
];

// Threads and processes of the program itself are not ours to change.
if (isMainThread) {
    leaveNoTrace();
    const code = take("NIMBUS_CODE");
    if (code) {
        process.on("exit", require("./code.cjs").keepCode(code, process.argv[1]));
    }
    loadLess();
    const orders = take("NIMBUS_ORDERS");
    if (orders) {
        loadAhead();
        follow(orders);
    }
    measure();
    const file = take("NIMBUS_PROGRAM");
    if (file) {
        serve(JSON.parse(fs.readFileSync(file, "utf8")), process.argv[1]);
    }
}

function take(variable) {
    const value = process.env[variable];
    delete process.env[variable];
    return value;
}

function leaveNoTrace() {
    const at = process.execArgv.findIndex((word, index, words) => word === "--require" && words[index + 1] === __filename);
    if (at >= 0) {
        process.execArgv.splice(at, 2);
    }
}

// ---- Starting ahead ----

// The SDK, as the program would find it. What it does when it is loaded depends on nothing that is
// in the orders.
function loadAhead() {
    try {
        Module.createRequire(process.argv[1])("../../index.js");
    } catch {
        // The program hears of it, in its own time.
    }
}

// Waits to be told which program this process is for, and becomes what it would be if it had been
// started for it.
function follow(pipe) {
    const file = fs.openSync(pipe, "r");
    fs.writeFileSync(path.join(path.dirname(pipe), "ready"), "");
    const { arguments: words, variables, folder } = JSON.parse(readLine(file));
    process.argv.splice(2, Infinity, ...words);
    for (const name of Object.keys(process.env)) {
        delete process.env[name];
    }
    Object.assign(process.env, variables);
    take("NIMBUS_CODE");
    process.chdir(folder);
}

function readLine(file) {
    const parts = [];
    for (;;) {
        const part = Buffer.alloc(65536);
        const length = fs.readSync(file, part);
        parts.push(part.subarray(0, length));
        if (length === 0 || part[length - 1] === 0x0a) {
            fs.closeSync(file);
            return Buffer.concat(parts).toString();
        }
    }
}

// ---- Loading less ----

function loadLess() {
    const load = Module._load;
    Module._load = function (request, parent, ...rest) {
        const from = parent?.filename;
        if (from && own.test(from)) {
            const rare = rarelyNeeded.find((rare) => rare.from.test(from) && rare.request.test(request));
            if (rare) {
                return rare.as(() => load.call(this, request, parent, ...rest));
            }
        }
        return load.call(this, request, parent, ...rest);
    };
}

// A module that is loaded when it is first looked into. Loaders of the SDK ask it one thing without
// looking: whether it was made from an ES module.
function lazyModule(get) {
    return lazily(get, function () {}, true);
}

// A module that is a function.
function lazyFunction(get) {
    return lazily(get, function () {}, false);
}

// A module that is nothing but an object.
function lazyObject(get) {
    return lazily(get, {}, true);
}

// A module whose members are taken out at once and used later.
function lazyMembers(get) {
    return new Proxy({}, { get: (_, key) => lazyFunction(() => get()[key]) });
}

function lazily(get, target, fromEsModule) {
    let real;
    const module = () => (real ??= get());
    return new Proxy(target, {
        get: (_, key) => (key === "__esModule" ? fromEsModule : module()[key]),
        set: (_, key, value) => ((module()[key] = value), true),
        has: (_, key) => key in module(),
        ownKeys: () => Reflect.ownKeys(module()),
        getOwnPropertyDescriptor: (_, key) => {
            const found = Reflect.getOwnPropertyDescriptor(module(), key);
            return found && { ...found, configurable: true };
        },
        apply: (_, self, values) => Reflect.apply(module(), self, values),
        construct: (_, values) => Reflect.construct(module(), values),
    });
}

// The SDK listens to the debugger from the start, to name files in complaints about functions that
// it cannot store as text. A program was translated because it stores none.
function doWithoutDebugger() {
    const load = Module._load;
    Module._load = function (request, parent, ...rest) {
        const from = parent?.filename;
        if (from && own.test(from) && from === process.argv[1] && request.endsWith("/closure/v8Hooks")) {
            return { isInitializedAsync: async () => {} };
        }
        return load.call(this, request, parent, ...rest);
    };
}

// ---- Translated files ----

function serve(program, main) {
    const files = new Map(Object.entries(program.files));
    traceIntoSources(files, main);
    traceOnDemand();
    doWithoutDebugger();
    findTypeScript(program);
    for (const ending of [".ts", ".tsx", ".cts"]) {
        const otherwise = Module._extensions[".js"];
        Module._extensions[ending] = function (module, filename) {
            const file = files.get(filename) ?? compileLate(files, program, filename);
            if (file === undefined) {
                return otherwise(module, filename);
            }
            module._compile(file.code, filename);
        };
    }
    if (program.modules) {
        const { pathToFileURL } = require("node:url");
        Module.register(pathToFileURL(path.join(__dirname, "modules.mjs")), { data: program });
    }
}

function isInstalled(filename) {
    return filename.split(path.sep).includes("node_modules");
}

// A file that nobody could foresee: asked for by a name that was put together at run time.
function compileLate(files, program, filename) {
    if (isInstalled(filename)) {
        return undefined;
    }
    const ts = Module.createRequire(filename)("typescript");
    const { outputText, sourceMapText } = ts.transpileModule(fs.readFileSync(filename, "utf8"), {
        fileName: filename,
        compilerOptions: {
            ...ts.convertCompilerOptionsFromJson(program.compilerOptions, path.dirname(filename)).options,
            module: ts.ModuleKind.CommonJS,
            sourceMap: true,
            inlineSourceMap: false,
            noEmit: false,
        },
    });
    const file = { format: "commonjs", code: outputText, map: sourceMapText };
    files.set(filename, file);
    return file;
}

// Names that end as the compiled file will, and names that only the compiler's `paths` explain.
// What Node.js finds by itself comes first.
function findTypeScript(program) {
    const resolve = Module._resolveFilename;
    Module._resolveFilename = function (request, parent, ...rest) {
        try {
            return resolve.call(this, request, parent, ...rest);
        } catch (error) {
            if (error?.code !== "MODULE_NOT_FOUND" || !parent?.filename || isInstalled(parent.filename)) {
                throw error;
            }
            for (const candidate of candidates(program, request)) {
                try {
                    return resolve.call(this, candidate, parent, ...rest);
                } catch {
                    // The next one, or the first complaint.
                }
            }
            throw error;
        }
    };
}

function candidates(program, request) {
    const compiled = /\.(c|m)?js$/;
    if (/^\.{0,2}\//.test(request)) {
        if (!compiled.test(request)) {
            return [];
        }
        return request.endsWith(".js")
            ? [request.replace(/js$/, "ts"), request.replace(/js$/, "tsx")]
            : [request.replace(/js$/, "ts")];
    }
    for (const { pattern, targets } of program.paths) {
        const [prefix, suffix] = pattern.split("*");
        const starred = suffix !== undefined;
        const fits = starred
            ? request.length >= prefix.length + suffix.length && request.startsWith(prefix) && request.endsWith(suffix)
            : request === pattern;
        if (fits) {
            const star = starred ? request.slice(prefix.length, request.length - suffix.length) : "";
            return targets.map((target) => target.replace("*", star));
        }
    }
    return program.baseUrl ? [path.join(program.baseUrl, request)] : [];
}

// The SDK shows traces with this package; it only has to be told where maps are.
function traceIntoSources(files, main) {
    let support;
    try {
        support = Module.createRequire(main)("source-map-support");
    } catch (error) {
        if (error?.code !== "MODULE_NOT_FOUND") {
            throw error;
        }
        process.setSourceMapsEnabled?.(true);
        return;
    }
    const { fileURLToPath } = require("node:url");
    const nothing = JSON.stringify({ version: 3, sources: [], names: [], mappings: "" });
    support.install({
        environment: "node",
        handleUncaughtExceptions: false,
        retrieveSourceMap(source) {
            const name = source.startsWith("file:") ? fileURLToPath(source) : source;
            if (own.test(name)) {
                // Its maps name files that are not there, in a form on which some versions of
                // Node.js never finish to colour a trace.
                return { url: name, map: nothing };
            }
            const file = files.get(name);
            return file ? { url: name, map: file.map } : null;
        },
    });
}

// The SDK notes for every promise where it was made, and shows it if the promise is never kept.
// Looking up sources for all of them takes longer than many programs.
function traceOnDemand() {
    const format = Error.prepareStackTrace;
    if (format === undefined) {
        return;
    }
    Error.prepareStackTrace = function (error, frames) {
        const made = frames[0];
        if (made?.getFunctionName() !== "debuggablePromise" || !own.test(made.getFileName() ?? "")) {
            return format.call(this, error, frames);
        }
        let text;
        return { toString: () => (text ??= format.call(this, error, frames)) };
    };
}

// ---- Where the time goes ----

// Writes how long the process took to start, the SDK to load and the program to run. For
// developers: a line of JSON per program, in the file that a variable names.
function measure() {
    const file = take("NIMBUS_PHASES");
    if (!file) {
        return;
    }
    const phases = { start: performance.now(), sdk: 0, modules: 0 };
    const load = Module.prototype.require;
    let inside = false;
    Module.prototype.require = function (name) {
        if (inside) {
            return load.call(this, name);
        }
        inside = true;
        const from = performance.now();
        try {
            return load.call(this, name);
        } finally {
            inside = false;
            const bySdk = own.test(this.filename ?? "") && !path.isAbsolute(name);
            phases[bySdk ? "sdk" : "modules"] += performance.now() - from;
        }
    };
    process.on("exit", () => {
        Object.assign(phases, { total: performance.now(), ...cpu() });
        phases.memory = process.resourceUsage().maxRSS;
        fs.appendFileSync(file, JSON.stringify(phases) + "\n");
    });
}

function cpu() {
    const { userCPUTime, systemCPUTime } = process.resourceUsage();
    return { user: userCPUTime / 1000, system: systemCPUTime / 1000 };
}
