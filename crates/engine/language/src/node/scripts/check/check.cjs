// Checks the types of programs, one after another, with the compiler that the SDK would use.
//
// Requests and answers are lines of JSON. What is read from installed packages is kept for the next
// program with the same options: most of the work is in their declarations, and programs of one
// workspace have them in common. Only own files are checked, from the program's entry on, under the
// options that the SDK gives to the compiler.
//
// Of large packages only what the program can see is read (`views.cjs`). A program that passes this
// way passes; one that does not is checked once more with everything, which has the last word.
"use strict";

const Module = require("node:module");
const path = require("node:path");
const readline = require("node:readline");
const { keepCode } = require("./code.cjs");
const { Outdated, Views } = require("./views.cjs");
const { takesWhole } = require("./whole.cjs");

// What only matters to a translation of single files. Such a program is compiled as a whole instead.
const onlyWhole = new Set([1205, 1269, 1281, 1289, 1290, 1291, 1292, 1448, 2748, 2865, 2866, 18055, 18056]);
// Complaints about having no files, and about files without imports.
const ignored = new Set([1208, 6059, 18002, 18003]);

// Where outlines of packages are kept between runs, if anywhere.
const outlines = process.env.NIMBUS_OUTLINES;

// Where the compiled compiler is kept, if anywhere.
const code = process.env.NIMBUS_CODE;
let saveCode;

const compilers = new Map();
const kept = new Map();
const views = new Map();
// What the file system says about installed packages.
const looked = new Map();

function compilerOf(sdk) {
    if (!compilers.has(sdk)) {
        const requireFromSdk = Module.createRequire(sdk);
        // A compiler only speaks of imports.
        saveCode ??= code && keepCode(code, sdk, () => true);
        let ts;
        try {
            ts = requireFromSdk("typescript");
        } catch {
            ts = requireFromSdk("../../vendor/typescript@3.8.3/typescript.js");
        }
        if (typeof ts.createProgram !== "function") {
            throw new Error(`typescript ${ts.version} cannot be used by other programs`);
        }
        compilers.set(sdk, ts);
    }
    return compilers.get(sdk);
}

function optionsOf(ts, request) {
    const folder = path.dirname(request.tsconfig);
    const json = ts.sys.fileExists(request.tsconfig)
        ? ts.readConfigFile(request.tsconfig, ts.sys.readFile).config ?? {}
        : {};
    const own = json.compilerOptions ?? {};
    const said = {
        ...json,
        files: [request.entry],
        include: [],
        compilerOptions: { ...request.defaults, ...own, noEmit: true },
    };
    const { options } = ts.parseJsonConfigFileContent(said, ts.sys, folder, undefined, request.tsconfig);
    for (const name of [
        "out", "outFile", "composite", "declaration", "declarationDir", "declarationMap",
        "emitDeclarationOnly", "incremental", "tsBuildInfoFile", "sourceMap", "inlineSourceMap", "inlineSources",
    ]) {
        delete options[name];
    }
    const wantsSingleFiles = options.isolatedModules === true;
    options.isolatedModules = true;
    return { options, wantsSingleFiles };
}

const isInstalled = (name) => name.includes("/node_modules/");

// `shown` says which packages are shown in part; without it, all are read as they are.
function hostOf(ts, options, shown) {
    const host = ts.createCompilerHost(options);
    // As the command line of the compiler does: other comments cannot make a program wrong.
    host.jsDocParsingMode = ts.JSDocParsingMode?.ParseForTypeErrors;
    for (const name of ["fileExists", "directoryExists", "realpath"]) {
        host[name] = host[name] && lookOnce(name, host[name].bind(host));
    }
    const read = host.getSourceFile;
    // Where the project is does not change what is read from elsewhere.
    const identity = JSON.stringify([ts.version, { ...options, configFilePath: undefined }]);
    host.getSourceFile = function (name, language, ...rest) {
        if (!isInstalled(name)) {
            return read.call(host, name, language, ...rest);
        }
        const view = shown?.view(name);
        const format = typeof language === "object" ? language.impliedNodeFormat : "";
        const key = `${identity}|${format}|${view === undefined}|${name}`;
        const known = kept.get(key);
        if (known !== undefined && known.view === view) {
            return known.file;
        }
        const file = view === undefined
            ? read.call(host, name, language, ...rest)
            : ts.createSourceFile(name, view, language);
        kept.set(key, { view, file });
        return file;
    };
    return host;
}

function lookOnce(what, look) {
    return (name) => {
        if (!isInstalled(name)) {
            return look(name);
        }
        const key = `${what}|${name}`;
        if (!looked.has(key)) {
            looked.set(key, look(name));
        }
        return looked.get(key);
    };
}

function viewsOf(ts) {
    if (!views.has(ts)) {
        views.set(ts, new Views(ts, outlines));
    }
    return views.get(ts);
}

// The program with what it can see of large packages. `undefined` when that cannot be told.
function createWithViews(ts, entry, options) {
    const shown = viewsOf(ts);
    const host = hostOf(ts, options, shown);
    const target = (name, from) => ts.resolveModuleName(name, from, options, host).resolvedModule?.resolvedFileName;
    learnFrom(ts, entry, shown, target);
    for (;;) {
        const program = ts.createProgram({ rootNames: [entry], options, host });
        const files = program.getSourceFiles();
        const installed = files.filter(({ fileName }) => isInstalled(fileName));
        const own = files.filter(({ fileName }) => !isInstalled(fileName));
        const packageOf = (from) => (name) => {
            const found = target(name, from);
            return found && shown.packageOf(found);
        };
        const whole = own.some((file) => takesWhole(ts, file, packageOf(file.fileName)));
        if (whole || installed.some((file) => uses(shown, file))) {
            return undefined;
        }
        if (!own.map((file) => shown.learn(file.text)).includes(true)) {
            return program;
        }
    }
}

// Looks ahead at the own files, so that the program need not be made twice.
function learnFrom(ts, entry, shown, target) {
    const seen = new Set([entry]);
    for (const file of seen) {
        const text = ts.sys.readFile(file) ?? "";
        shown.learn(text);
        for (const { fileName } of ts.preProcessFile(text, true, true).importedFiles) {
            const found = target(fileName, file);
            if (found && !isInstalled(found)) {
                seen.add(found);
            }
        }
    }
}

// Whether a package that is read as it is depends on one that is not.
function uses(shown, { fileName, imports }) {
    if (shown.packageOf(fileName)) {
        return false;
    }
    const folders = [...shown.packages].filter(([, found]) => found).map(([folder]) => folder);
    return imports.some(({ text }) => {
        const name = text.split("/", text.startsWith("@") ? 2 : 1).join("/");
        return folders.some((folder) => folder.endsWith(`/node_modules/${name}`));
    });
}

function check(request) {
    const ts = compilerOf(request.sdk);
    const { options, wantsSingleFiles } = optionsOf(ts, request);
    const found = checkWithViews(ts, request, options, wantsSingleFiles);
    if (found !== undefined && found.errors.length === 0) {
        return found;
    }
    const program = ts.createProgram({ rootNames: [request.entry], options, host: hostOf(ts, options) });
    return verdict(ts, program, wantsSingleFiles);
}

function checkWithViews(ts, request, options, wantsSingleFiles) {
    try {
        const program = createWithViews(ts, request.entry, options);
        const inPart = program?.getSourceFiles().some(({ fileName }) => viewsOf(ts).packageOf(fileName) !== undefined);
        return program && { ...verdict(ts, program, wantsSingleFiles), inPart };
    } catch (error) {
        if (error instanceof Outdated) {
            viewsOf(ts).forget(error.message);
        }
        // Whatever went wrong: there is another way.
        return undefined;
    }
}

function verdict(ts, program, wantsSingleFiles) {
    const files = program.getSourceFiles().filter((file) => !isInstalled(file.fileName));
    const found = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()];
    for (const file of files) {
        if (!file.isDeclarationFile) {
            found.push(...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file));
        }
    }
    const errors = found.filter(({ category, code }) => category === ts.DiagnosticCategory.Error && !ignored.has(code));
    const whole = !wantsSingleFiles && errors.some(({ code }) => onlyWhole.has(code));
    return {
        whole,
        files: files.map((file) => file.fileName).filter((name) => !isInstalled(ts.sys.realpath?.(name) ?? name)),
        errors: errors.filter(({ code }) => wantsSingleFiles || !onlyWhole.has(code)).map((error) => told(ts, error)),
    };
}

function told(ts, { file, start, code, messageText }) {
    const message = ts.flattenDiagnosticMessageText(messageText, "\n");
    if (file === undefined || start === undefined) {
        return { code, message };
    }
    const { line, character } = file.getLineAndCharacterOfPosition(start);
    return { file: file.fileName, line: line + 1, column: character + 1, code, message };
}

function answer(line) {
    const request = JSON.parse(line);
    let answer;
    try {
        answer = { result: check(request) };
    } catch (error) {
        answer = { failure: String(error?.message ?? error) };
    }
    process.stdout.write(JSON.stringify({ id: request.id, ...answer }) + "\n");
}

// In a sandbox there is one request, and it comes along as an argument.
const [only] = process.argv.slice(2);
if (only === undefined) {
    readline.createInterface({ input: process.stdin }).on("line", answer);
    // Whoever asks may end this process at any time.
    process.stdin.once("data", () => setImmediate(() => saveCode?.()));
} else {
    answer(only);
}
