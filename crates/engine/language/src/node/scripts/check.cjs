// Checks the types of programs, one after another, with the compiler that the SDK would use.
//
// Requests and answers are lines of JSON. What is read from installed packages is kept for the next
// program with the same options: most of the work is in their declarations, and programs of one
// workspace have them in common. Only own files are checked, from the program's entry on, under the
// options that the SDK gives to the compiler.
"use strict";

const Module = require("node:module");
const path = require("node:path");
const readline = require("node:readline");

// What only matters to a translation of single files. Such a program is compiled as a whole instead.
const onlyWhole = new Set([1205, 1269, 1281, 1289, 1290, 1291, 1292, 1448, 2748, 2865, 2866, 18055, 18056]);
// Complaints about having no files, and about files without imports.
const ignored = new Set([1208, 6059, 18002, 18003]);

const compilers = new Map();
const kept = new Map();

function compilerOf(sdk) {
    if (!compilers.has(sdk)) {
        const requireFromSdk = Module.createRequire(sdk);
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

function hostOf(ts, options) {
    const host = ts.createCompilerHost(options, true);
    const read = host.getSourceFile;
    // Where the project is does not change what is read from elsewhere.
    const identity = JSON.stringify([ts.version, { ...options, configFilePath: undefined }]);
    host.getSourceFile = function (name, language, ...rest) {
        const library = isInstalled(name);
        if (!library) {
            return read.call(host, name, language, ...rest);
        }
        const format = typeof language === "object" ? language.impliedNodeFormat : "";
        const key = `${identity}|${format}|${name}`;
        let file = kept.get(key);
        if (file === undefined) {
            file = read.call(host, name, language, ...rest);
            kept.set(key, file);
        }
        return file;
    };
    return host;
}

function check(request) {
    const ts = compilerOf(request.sdk);
    const { options, wantsSingleFiles } = optionsOf(ts, request);
    const program = ts.createProgram({ rootNames: [request.entry], options, host: hostOf(ts, options) });
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
} else {
    answer(only);
}
