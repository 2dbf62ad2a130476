// Which names the declarations of a package have, and where in its files.
//
// An outline lists the statements of a file. Most of them matter only to somebody who knows one of
// their names; see `views.cjs` for what that is good for. A file that does something which cannot be
// followed by names has no outline, and neither has its package.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

// What an entry of an outline is.
const ALWAYS = 0; // [ALWAYS, start, end]
const NAMED = 1; // [NAMED, start, end, names]
const LINK = 2; // [LINK, start, end, names]: an import, or one of the names in a list
const SPACE = 3; // [SPACE, start, end of the opening brace, [name], start of the closing brace, end, entries]
const LIST = 4; // [LIST, start, end of the opening brace, [], start of the closing brace, end, entries]

// ---- Files ----

// `undefined` when a file does something that cannot be followed by names.
function outlineOf(ts, name, text) {
    const languageVersion = ts.ScriptTarget.Latest;
    const options = ts.JSDocParsingMode
        ? { languageVersion, jsDocParsingMode: ts.JSDocParsingMode.ParseNone }
        : languageVersion;
    const file = ts.createSourceFile(name, text, options, false, ts.ScriptKind.TS);
    if (!ts.isExternalModule(file) || file.parseDiagnostics?.length > 0 || file.referencedFiles.length > 0) {
        return undefined;
    }
    const outline = { augments: false, spaces: [], entries: [] };
    outline.entries = entriesOf(ts, file, file.statements, outline);
    return outline.entries && !takesSpace(text, outline.spaces) ? outline : undefined;
}

// Whether it takes something as a whole that we show in part.
function takesSpace(text, spaces) {
    const taken = [...text.matchAll(/\btypeof\s+(?:import\s*\([^)]*\)|[\w$]+)(?:\s*\.\s*[\w$]+)*/g)];
    return taken.some(([name]) => name.endsWith(")") || spaces.includes(/[\w$]+$/.exec(name)?.[0]));
}

function entriesOf(ts, file, statements, outline) {
    const entries = [];
    for (const statement of statements) {
        const entry = entryOf(ts, file, statement, outline);
        if (entry === undefined) {
            return undefined;
        }
        entries.push(entry);
    }
    return entries;
}

function entryOf(ts, file, statement, outline) {
    const [start, end] = [statement.getStart(file), statement.end];
    const named = (names) => [NAMED, start, end, names];
    if (ts.isModuleDeclaration(statement)) {
        return spaceOf(ts, file, statement, outline);
    }
    if (ts.isImportDeclaration(statement)) {
        const names = importedNames(ts, statement.importClause, outline);
        return names.length > 0 ? [LINK, start, end, names] : [ALWAYS, start, end];
    }
    if (ts.isExportDeclaration(statement)) {
        return listOf(ts, file, statement, outline);
    }
    if (ts.isVariableStatement(statement)) {
        const names = statement.declarationList.declarations.map(({ name }) => name);
        return names.every(ts.isIdentifier) ? named(names.map(({ text }) => text)) : [ALWAYS, start, end];
    }
    const declares =
        ts.isInterfaceDeclaration(statement) ||
        ts.isClassDeclaration(statement) ||
        ts.isFunctionDeclaration(statement) ||
        ts.isTypeAliasDeclaration(statement) ||
        ts.isEnumDeclaration(statement);
    return declares && statement.name ? named([statement.name.text]) : [ALWAYS, start, end];
}

function spaceOf(ts, file, statement, outline) {
    const [start, end] = [statement.getStart(file), statement.end];
    if (!ts.isIdentifier(statement.name)) {
        // An augmentation. Of other packages or of everything: it matters from far away.
        outline.augments = true;
        return statement.name.text.startsWith(".") ? [ALWAYS, start, end] : undefined;
    }
    if (statement.name.text === "global" || !statement.body || !ts.isModuleBlock(statement.body)) {
        return undefined;
    }
    const { body, name } = statement;
    // Nobody can take all of it at once unless there is a value in it.
    if (!body.statements.every((inner) => ts.isInterfaceDeclaration(inner) || ts.isTypeAliasDeclaration(inner))) {
        return [NAMED, start, end, [name.text]];
    }
    const entries = entriesOf(ts, file, body.statements, outline);
    return entries && [SPACE, start, body.getStart(file) + 1, [name.text], body.end - 1, end, entries];
}

function importedNames(ts, clause, outline) {
    const names = clause?.name ? [clause.name.text] : [];
    const bindings = clause?.namedBindings;
    if (bindings && ts.isNamespaceImport(bindings)) {
        outline.spaces.push(bindings.name.text);
        names.push(bindings.name.text);
    } else if (bindings) {
        names.push(...bindings.elements.flatMap(specifierNames));
    }
    return names;
}

function listOf(ts, file, statement, outline) {
    const [start, end] = [statement.getStart(file), statement.end];
    const clause = statement.exportClause;
    if (!clause || !ts.isNamedExports(clause)) {
        if (clause) {
            outline.spaces.push(clause.name.text);
        }
        return [ALWAYS, start, end];
    }
    const entries = clause.elements.map((specifier) => [
        LINK, specifier.getStart(file), specifier.end, specifierNames(specifier),
    ]);
    return [LIST, start, clause.getStart(file) + 1, [], clause.end - 1, end, entries];
}

const specifierNames = ({ name, propertyName }) => (propertyName ? [name.text, propertyName.text] : [name.text]);

// ---- Packages ----

function declarationFiles(folder) {
    const found = [];
    for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
        const name = path.join(folder, entry.name);
        if (entry.isDirectory() && entry.name !== "node_modules") {
            found.push(...declarationFiles(name));
        } else if (entry.isFile() && entry.name.endsWith(".d.ts")) {
            found.push(name);
        }
    }
    return found;
}

const stampOf = (name) => {
    const { size, mtimeMs } = fs.statSync(name);
    return `${size} ${mtimeMs}`;
};

// All outlines of a package, or `null` when one of its files has none.
function survey(ts, folder) {
    const files = {};
    const leads = new Map();
    for (const full of declarationFiles(folder)) {
        const stamp = stampOf(full);
        const text = fs.readFileSync(full, "utf8");
        const outline = outlineOf(ts, full, text);
        if (outline === undefined) {
            return null;
        }
        const name = path.relative(folder, full);
        files[name] = { stamp, ...outline };
        leads.set(name, importsOf(name, text));
    }
    alwaysReachAugmentations(folder, files, leads);
    return files;
}

// The files of its own package that a text may import.
function importsOf(name, text) {
    const found = text.matchAll(/\b(?:from|import)\s*\(?\s*["'](\.[^"']*)["']/g);
    return [...found].flatMap(([, to]) => {
        const target = path.join(path.dirname(name), to.replace(/\.[cm]?js$/, ""));
        return [`${target}.d.ts`, path.join(target, "index.d.ts")];
    });
}

// What leads to an augmentation is shown even if nobody asks for its name.
function alwaysReachAugmentations(folder, files, leads) {
    const leading = new Set(Object.keys(files).filter((name) => files[name].augments));
    const isLeading = (imports) => imports.some((name) => leading.has(name));
    for (let before = -1; before !== leading.size; ) {
        before = leading.size;
        for (const [name, imports] of leads) {
            if (isLeading(imports)) {
                leading.add(name);
            }
        }
    }
    for (const name of leading) {
        const text = fs.readFileSync(path.join(folder, name), "utf8");
        for (const entry of files[name].entries) {
            const [, start, opened, , , closed] = entry;
            const end = closed ?? opened;
            if (isLeading(importsOf(name, text.slice(start, end)))) {
                entry.splice(0, entry.length, ALWAYS, start, end);
            }
        }
    }
}

module.exports = { ALWAYS, NAMED, SPACE, LIST, LINK, stampOf, survey };
