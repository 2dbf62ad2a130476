// What a program can see of large packages, so that the rest need not be read.
//
// Packages of providers declare thousands of resources, and a program uses a handful. A declaration
// can only matter to a program if its name is written somewhere: in the program, or in another
// declaration that matters. So the compiler is shown those whose names are, and not the others.
// It goes by single words, whatever they stand for, which shows too much rather than too little.
//
// Names do not tell about code which takes a package as a whole, such as `keyof typeof aws`. Then
// nothing is left out, see `whole.cjs`; nor from packages of another form, see `outline.cjs`.
"use strict";

const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const { ALWAYS, SPACE, LIST, LINK, stampOf, survey } = require("./outline.cjs");

// Counts up when outlines are made in another way.
const REVISION = 1;

const wordsIn = (text) => text.match(/[\p{L}\p{N}_$]+/gu) ?? [];

// A package has changed since it was surveyed.
class Outdated extends Error {}

// A package that can be shown in part.
class Package {
    constructor(ts, folder, outlines) {
        this.ts = ts;
        this.folder = folder;
        this.outlines = new Map(Object.entries(outlines));
        this.texts = new Map();
        this.always = [];
        this.byName = new Map();
        this.shown = new Set();
        // Names of what has other names below it.
        this.spaces = new Set();
        for (const [file, { entries, spaces }] of this.outlines) {
            spaces.forEach((space) => this.spaces.add(space));
            this.#note(file, entries);
        }
    }

    #note(file, entries) {
        for (const entry of entries) {
            const [kind, , , names, , , below] = entry;
            if (kind === ALWAYS) {
                this.always.push([file, entry]);
                continue;
            }
            for (const name of names) {
                const others = this.byName.get(name);
                if (others) {
                    others.push([file, entry]);
                } else {
                    this.byName.set(name, [[file, entry]]);
                }
            }
            if (below) {
                this.#note(file, below);
            }
        }
    }

    #text(file) {
        if (!this.texts.has(file)) {
            const name = path.join(this.folder, file);
            if (stampOf(name) !== this.outlines.get(file).stamp) {
                throw new Outdated(this.folder);
            }
            this.texts.set(file, fs.readFileSync(name, "utf8"));
        }
        return this.texts.get(file);
    }

    // The words of an entry, but for comments and the names of properties, which refer to nothing.
    words(file, [kind, start, end, names]) {
        if (kind === LINK) {
            return names;
        }
        const { ts } = this;
        const { SemicolonToken, OpenBraceToken, ReadonlyKeyword, ColonToken, QuestionToken, EndOfFileToken } = ts.SyntaxKind;
        this.scanner ??= ts.createScanner(ts.ScriptTarget.Latest, true, ts.LanguageVariant.Standard);
        this.scanner.setText(this.#text(file), start, end - start);
        const found = new Set();
        let [opensMember, member] = [false, []];
        for (let token = this.scanner.scan(); token !== EndOfFileToken; token = this.scanner.scan()) {
            if (token !== ColonToken && token !== QuestionToken) {
                member.forEach((word) => found.add(word));
            }
            const here = wordsIn(this.scanner.getTokenText());
            member = opensMember ? here : [];
            if (!opensMember) {
                here.forEach((word) => found.add(word));
            }
            const separates = token === SemicolonToken || token === OpenBraceToken;
            opensMember = separates || (opensMember && token === ReadonlyKeyword);
        }
        return found;
    }

    // A file as the compiler gets to see it. `undefined` for one that was not surveyed.
    view(file) {
        const outline = this.outlines.get(file);
        // Without anything left it would not be a module any more.
        return outline && `${this.#pick(this.#text(file), outline.entries, "\n")}\nexport {};\n`;
    }

    #pick(text, entries, between) {
        const parts = [];
        for (const entry of entries) {
            const [kind, start, end, , closing, closed, below] = entry;
            if (kind !== ALWAYS && kind !== LIST && !this.shown.has(entry)) {
                continue;
            }
            const inner = below && this.#pick(text, below, kind === LIST ? "," : between);
            if (kind === LIST && inner === "") {
                continue;
            }
            parts.push(text.slice(start, end) + (below ? inner + text.slice(closing, closed) : ""));
        }
        return parts.join(between);
    }
}

// All packages that are shown in part, and the words that count.
class Views {
    // Outlines are kept in `folder` between runs, if there is one.
    constructor(ts, folder) {
        this.ts = ts;
        this.folder = folder;
        this.packages = new Map();
        this.known = new Set();
        this.waiting = [];
    }

    // The package that an installed file belongs to, if it is one of those.
    packageOf(name) {
        const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(name)?.[0];
        if (folder === undefined) {
            return undefined;
        }
        if (!this.packages.has(folder)) {
            this.packages.set(folder, undefined);
            this.#open(folder);
        }
        return this.packages.get(folder);
    }

    view(name) {
        const found = this.packageOf(name);
        return found?.view(path.relative(found.folder, name));
    }

    #open(folder) {
        const manifest = manifestOf(folder);
        if (manifest?.pulumi?.resource !== true) {
            return;
        }
        const outlines = this.#outlines(folder, manifest);
        if (!outlines) {
            return;
        }
        const opened = new Package(this.ts, folder, outlines);
        this.packages.set(folder, opened);
        opened.always.forEach((item) => this.#show(opened, item));
        for (const word of [...this.known]) {
            this.#ask(opened, word);
        }
        this.#settle();
    }

    // What is known about a package, or `null` if it cannot be shown in part.
    #outlines(folder, manifest) {
        const file = this.#keptIn(folder, manifest);
        const known = file && read(file);
        if (known !== undefined) {
            return known;
        }
        const outlines = survey(this.ts, folder);
        if (file) {
            write(file, outlines);
        }
        return outlines;
    }

    #keptIn(folder, manifest) {
        const about = JSON.stringify([REVISION, this.ts.version, folder, manifest]);
        return this.folder && path.join(this.folder, `${digestOf(about)}.json`);
    }

    // A package that has changed is not shown in part any more.
    forget(folder) {
        const file = this.#keptIn(folder, manifestOf(folder));
        if (file) {
            fs.rmSync(file, { force: true });
        }
        this.packages.set(folder, undefined);
    }

    // Whatever has a name in this text is shown from now on. Says whether that is anything new.
    learn(text) {
        const before = this.known.size;
        wordsIn(text).forEach((word) => this.#know(word));
        this.#settle();
        return this.known.size > before;
    }

    #know(word) {
        if (!this.known.has(word)) {
            this.known.add(word);
            this.packages.forEach((found) => this.#ask(found, word));
        }
    }

    #ask(found, word) {
        found?.byName.get(word)?.forEach((item) => this.#show(found, item));
    }

    #show(found, [file, entry]) {
        if (!found.shown.has(entry)) {
            found.shown.add(entry);
            this.waiting.push([found, file, entry]);
        }
    }

    #settle() {
        while (this.waiting.length > 0) {
            const [found, file, entry] = this.waiting.pop();
            for (const word of found.words(file, entry)) {
                this.#know(word);
            }
        }
    }
}

// ---- Kept outlines ----

function manifestOf(folder) {
    try {
        return JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
    } catch {
        return undefined;
    }
}

const digestOf = (text) => crypto.createHash("sha256").update(text).digest("hex");

// A kept file begins with the digest of the rest; what does not match is as good as absent.
function read(file) {
    try {
        const [digest, ...rest] = fs.readFileSync(file, "utf8").split("\n");
        const text = rest.join("\n");
        if (digest === digestOf(text)) {
            // It counts as used.
            fs.utimesSync(file, new Date(), new Date());
            return JSON.parse(text);
        }
    } catch {
        // Nothing is known yet.
    }
    return undefined;
}

// Written beside and renamed, so that readers see all or nothing.
function write(file, outlines) {
    const text = JSON.stringify(outlines);
    const beside = `${file}.${process.pid}`;
    try {
        fs.mkdirSync(path.dirname(file), { recursive: true });
        fs.writeFileSync(beside, `${digestOf(text)}\n${text}`, { mode: 0o600 });
        fs.renameSync(beside, file);
    } catch {
        // It is made again the next time.
    }
}

module.exports = { Outdated, Views };
