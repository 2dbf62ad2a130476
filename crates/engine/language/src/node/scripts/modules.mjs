// Gives Node.js the translated files of ES modules. Runs on the thread that Node.js keeps for it.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

let program;
let files;

export async function initialize(data) {
    program = data;
    files = new Map(Object.entries(data.files));
}

export async function resolve(specifier, context, next) {
    try {
        return format(await next(specifier, context));
    } catch (error) {
        const known = error?.code === "ERR_MODULE_NOT_FOUND" || error?.code === "ERR_UNKNOWN_FILE_EXTENSION";
        const own = context.parentURL?.startsWith("file:") && !context.parentURL.includes("/node_modules/");
        if (!known || !own) {
            throw error;
        }
        for (const path of candidates(specifier, dirname(fileURLToPath(context.parentURL)))) {
            if (existsSync(path)) {
                return format({ url: pathToFileURL(path).href, shortCircuit: true });
            }
        }
        throw error;
    }
}

function format(found) {
    const file = found.url.startsWith("file:") ? files.get(fileURLToPath(found.url)) : undefined;
    return file ? { ...found, format: file.format } : found;
}

export async function load(url, context, next) {
    const file = url.startsWith("file:") ? files.get(fileURLToPath(url)) : undefined;
    if (file === undefined) {
        return next(url, context);
    }
    // CommonJS is read by its own loader, which has the same files.
    const source = file.format === "module" ? file.code : null;
    return { format: file.format, source, shortCircuit: true };
}

function candidates(specifier, folder) {
    if (/^\.{0,2}\//.test(specifier)) {
        return endings(join(folder, specifier));
    }
    for (const { pattern, targets } of program.paths) {
        const [prefix, suffix] = pattern.split("*");
        const fits =
            suffix === undefined
                ? specifier === pattern
                : specifier.length >= prefix.length + suffix.length &&
                  specifier.startsWith(prefix) &&
                  specifier.endsWith(suffix);
        if (fits) {
            const star = suffix === undefined ? "" : specifier.slice(prefix.length, specifier.length - suffix.length);
            return targets.flatMap((target) => endings(target.replace("*", star)));
        }
    }
    return program.baseUrl ? endings(join(program.baseUrl, specifier)) : [];
}

function endings(path) {
    const compiled = path.match(/^(.*)\.([cm]?)js$/);
    const renamed = compiled ? [`${compiled[1]}.${compiled[2]}ts`, `${compiled[1]}.tsx`] : [];
    return [...renamed, path, `${path}.ts`, `${path}.tsx`, `${path}.mts`, join(path, "index.ts")];
}
