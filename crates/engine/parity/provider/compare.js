// How the types of this provider compare what is wanted with what there is.
"use strict";

const { isDeepStrictEqual } = require("util");
const { DiffResponse, PropertyDiff } = require("@pulumi/pulumi/proto/provider_pb");

const { unwrap } = require("./values");

/** An object of another kind is another object; the program may name further such properties. */
function replaceKeys(news) {
    return ["kind", ...(unwrap(news.fixed) || [])];
}

/** A property path one element longer; names that are no plain words are quoted. */
function below(prefix, key) {
    if (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(key)) {
        return prefix ? `${prefix}.${key}` : key;
    }
    return `${prefix}["${key.replace(/"/g, '\\"')}"]`;
}

/** Paths of what differs, going into objects so that a detailed diff has something to say. */
function changesOf(olds, news, prefix = "", top = undefined) {
    const found = {};
    for (const key of [...new Set([...Object.keys(olds), ...Object.keys(news)])].sort()) {
        const path = below(prefix, key);
        const [was, is] = [unwrap(olds[key]), unwrap(news[key])];
        if (isDeepStrictEqual(was, is)) {
            continue;
        }
        if (isObject(was) && isObject(is)) {
            Object.assign(found, changesOf(was, is, path, top ?? key));
        } else {
            const change = was === undefined ? "ADD" : is === undefined ? "DELETE" : "UPDATE";
            found[path] = { change, top: top ?? key };
        }
    }
    return found;
}

function isObject(value) {
    return value !== null && typeof value === "object" && !Array.isArray(value);
}

function compare(kind, olds, news, fixed) {
    const response = new DiffResponse();
    if (kind === "Blind") {
        response.setChanges(DiffResponse.DiffChanges.DIFF_UNKNOWN);
        return response;
    }
    const changes = changesOf(olds, news);
    const tops = [...new Set(Object.values(changes).map(({ top }) => top))];
    const replaces = tops.filter((key) => fixed.includes(key));
    const some = tops.length > 0;
    response.setChanges(some ? DiffResponse.DiffChanges.DIFF_SOME : DiffResponse.DiffChanges.DIFF_NONE);
    response.setDiffsList(tops);
    response.setReplacesList(replaces);
    response.setDeletebeforereplace(replaces.length > 0 && unwrap(news.exclusive) === true);
    if (kind === "Thing") {
        describe(response, changes, replaces);
    }
    return response;
}

function describe(response, changes, replaces) {
    response.setHasdetaileddiff(true);
    for (const [path, { change, top }] of Object.entries(changes)) {
        const replaced = replaces.includes(top) ? "_REPLACE" : "";
        const diff = new PropertyDiff();
        diff.setKind(PropertyDiff.Kind[change + replaced]);
        diff.setInputdiff(true);
        response.getDetaileddiffMap().set(path, diff);
    }
}

module.exports = { compare, replaceKeys };
