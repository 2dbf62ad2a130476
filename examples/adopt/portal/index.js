"use strict";

const pulumi = require("@pulumi/pulumi");

// One project with two kinds of stacks: the site reads what the base of the same stage has.
const [kind, stage] = pulumi.getStack().split("-");
const config = new pulumi.Config();

if (kind === "base") {
    exports.theme = config.require("theme");
} else {
    const base = new pulumi.StackReference(`${pulumi.getOrganization()}/portal/base-${stage}`);
    const title = config.require("title");
    exports.page = base.requireOutput("theme").apply((theme) => `<h1 class="${theme}">${title}</h1>`);
}
