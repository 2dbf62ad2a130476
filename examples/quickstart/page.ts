import * as fs from "fs";
import * as path from "path";

import * as pulumi from "@pulumi/pulumi";

interface PageInputs {
    path: string;
    content: string;
}

/** Keeps one file as a program wants it. */
const provider: pulumi.dynamic.ResourceProvider<PageInputs, PageInputs> = {
    async check(_olds, news) {
        const failures = news.path ? [] : [{ property: "path", reason: "a page needs a path" }];
        return { inputs: news, failures };
    },

    async diff(_id, olds, news) {
        const moved = olds.path !== news.path;
        return {
            changes: moved || olds.content !== news.content,
            replaces: moved ? ["path"] : [],
        };
    },

    async create(inputs) {
        fs.mkdirSync(path.dirname(inputs.path), { recursive: true });
        fs.writeFileSync(inputs.path, inputs.content);
        return { id: inputs.path, outs: inputs };
    },

    async update(_id, _olds, news) {
        fs.writeFileSync(news.path, news.content);
        return { outs: news };
    },

    async delete(id) {
        fs.rmSync(id, { force: true });
    },
};

/** A file with content. */
export class Page extends pulumi.dynamic.Resource {
    declare readonly path: pulumi.Output<string>;
    declare readonly content: pulumi.Output<string>;

    constructor(
        name: string,
        inputs: { path: pulumi.Input<string>; content: pulumi.Input<string> },
        options?: pulumi.CustomResourceOptions,
    ) {
        super(provider, name, inputs, options);
    }
}
