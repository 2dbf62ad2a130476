// The program of `cargo xtask bench engine`: as many dynamic resources as the configuration says.
// Dynamic resources need no plugin binary, so both engines run exactly this.
"use strict";
const pulumi = require("@pulumi/pulumi");

const provider = {
    async diff(_id, olds, news) {
        return { changes: olds.content !== news.content };
    },
    async create(inputs) {
        return { id: `entry-${inputs.number}`, outs: inputs };
    },
    async update(_id, _olds, news) {
        return { outs: news };
    },
    async delete() {},
};

class Entry extends pulumi.dynamic.Resource {
    constructor(name, args) {
        super(provider, name, args);
    }
}

const config = new pulumi.Config();
const count = config.requireNumber("count");
const changed = config.require("changed");
for (let number = 0; number < count; number++) {
    const content = number === 0 ? changed : "unchanged";
    new Entry(`entry-${number}`, { number, content });
}
exports.count = count;
