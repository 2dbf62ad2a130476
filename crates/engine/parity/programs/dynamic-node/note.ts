// What the provider does. Everything it uses is required inside, because it travels as text.
import * as pulumi from "@pulumi/pulumi";

const provider: pulumi.dynamic.ResourceProvider = {
    async check(_olds: any, news: any) {
        const failures = news.text === "" ? [{ property: "text", reason: "a note says something" }] : [];
        return { inputs: news, failures };
    },
    async diff(_id: string, olds: any, news: any) {
        const replaces = olds.pinned !== news.pinned ? ["pinned"] : [];
        return {
            changes: olds.text !== news.text || replaces.length > 0,
            replaces,
            deleteBeforeReplace: news.pinned === "unique",
        };
    },
    async create(inputs: any) {
        const fs = require("fs");
        const id = `${inputs.pinned}-note`;
        if (inputs.text === "unwritable") {
            throw new Error("this cannot be written");
        }
        fs.writeFileSync(`${process.env.PARITY_WORLD}/${id}`, inputs.text);
        return { id, outs: { ...inputs, length: inputs.text.length } };
    },
    async update(id: string, _olds: any, news: any) {
        require("fs").writeFileSync(`${process.env.PARITY_WORLD}/${id}`, news.text);
        return { outs: { ...news, length: news.text.length } };
    },
    async read(id: string, props: any) {
        const fs = require("fs");
        const file = `${process.env.PARITY_WORLD}/${id}`;
        if (!fs.existsSync(file)) {
            return { id: "", props: {} };
        }
        const text = fs.readFileSync(file, "utf8");
        return { id, props: { ...props, text, length: text.length } };
    },
    async delete(id: string, _props: any) {
        require("fs").rmSync(`${process.env.PARITY_WORLD}/${id}`);
    },
};

export class Note extends pulumi.dynamic.Resource {
    readonly text!: pulumi.Output<string>;
    readonly length!: pulumi.Output<number>;

    constructor(name: string, args: { text: pulumi.Input<string>; pinned: string }, options?: pulumi.CustomResourceOptions) {
        super(provider, name, { ...args, length: undefined }, options);
    }
}
