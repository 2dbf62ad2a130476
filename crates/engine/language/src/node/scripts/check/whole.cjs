// Whether code takes a package, or a part that has names below it, as a whole.
//
// `aws.s3.Bucket` names what it needs. `keyof typeof aws.s3` needs everything below, without naming
// it. Whatever is not clearly of the first kind counts as of the second.
"use strict";

// `packageOf` says which package a name in an import leads to, if it is one that is shown in part.
function takesWhole(ts, file, packageOf) {
    const spaces = new Map();
    const found = file.statements.some((statement) => importsWhole(ts, statement, packageOf, spaces));
    // A name may be spelt in other ways than the one we look for.
    return found || (spaces.size > 0 && /\\u/.test(file.text)) || usesWhole(ts, file, packageOf, spaces);
}

// Notes the local names of what has names below it.
function importsWhole(ts, statement, packageOf, spaces) {
    if (ts.isImportEqualsDeclaration(statement)) {
        const { moduleReference, name } = statement;
        const found = ts.isExternalModuleReference(moduleReference) && packageOf(moduleReference.expression.text);
        if (found) {
            spaces.set(name.text, found);
        }
        return false;
    }
    const specifier = statement.moduleSpecifier;
    const found = specifier && packageOf(specifier.text);
    if (!found) {
        return false;
    }
    if (ts.isExportDeclaration(statement)) {
        const clause = statement.exportClause;
        const named = clause && ts.isNamedExports(clause);
        return !named || clause.elements.some(({ name, propertyName }) => found.spaces.has((propertyName ?? name).text));
    }
    const { name: whole, namedBindings } = statement.importClause ?? {};
    const bound = namedBindings?.elements ?? [];
    const below = bound.filter(({ name, propertyName }) => found.spaces.has((propertyName ?? name).text));
    const names = [whole, namedBindings?.name, ...below.map(({ name }) => name)];
    names.filter(Boolean).forEach(({ text }) => spaces.set(text, found));
    return bound.some(({ propertyName }) => propertyName?.text === "default");
}

function usesWhole(ts, file, packageOf, spaces) {
    const above = [];
    const visit = (node) => {
        if (ts.isIdentifier(node) && spaces.has(node.text) && !isOwnName(ts, node, above.at(-1))) {
            return endsAtSpace(ts, node, above, spaces.get(node.text));
        }
        const argument = loaded(ts, node);
        if (argument && ts.isStringLiteralLike(argument) && packageOf(argument.text)) {
            return true;
        }
        above.push(node);
        const found = ts.forEachChild(node, (child) => visit(child) || undefined) ?? false;
        above.pop();
        return found;
    };
    return visit(file);
}

// What `require`, `import()` and types of that form load.
function loaded(ts, node) {
    if (ts.isImportTypeNode(node)) {
        return node.argument.literal;
    }
    const { kind, text } = (ts.isCallExpression(node) && node.expression) || {};
    return kind === ts.SyntaxKind.ImportKeyword || text === "require" ? node.arguments[0] : undefined;
}

// Whether an identifier is the name of something else: of a property, or of what is declared here.
function isOwnName(ts, node, parent) {
    if (ts.isShorthandPropertyAssignment(parent) || ts.isExportSpecifier(parent)) {
        return false;
    }
    return parent.name === node || (ts.isQualifiedName(parent) && parent.right === node);
}

// Follows `aws.s3.Bucket` as far as there are names below.
function endsAtSpace(ts, node, above, found) {
    for (let at = above.length - 1, part = node; at >= 0; at -= 1) {
        const parent = above[at];
        let name;
        if (ts.isPropertyAccessExpression(parent) && parent.expression === part) {
            name = parent.name.text;
        } else if (ts.isQualifiedName(parent) && parent.left === part) {
            name = parent.right.text;
        } else {
            return !ts.isNamespaceImport(parent) && !ts.isImportClause(parent) && !ts.isImportSpecifier(parent);
        }
        if (!found.spaces.has(name)) {
            return false;
        }
        part = parent;
    }
    return true;
}

module.exports = { takesWhole };
