// What a program computes by itself and gets to know of its stack, below the folder of the project.
import * as crypto from "crypto";
import * as fs from "fs";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
const texts = config.requireObject<string[]>("texts");
const tags = config.requireObject<Record<string, string>>("tags");
const anything = config.requireObject<any>("anything");
const hiddenTags = pulumi.secret(tags);

function attempt<T>(make: () => T, otherwise: T): T {
    try {
        return make() ?? otherwise;
    } catch {
        return otherwise;
    }
}

pulumi.requirePulumiVersion(">=3.200.0");
const stash = new pulumi.Stash("stash", { input: { key: ["value", "s"], "": false } });

export const stashed = { input: stash.input, output: stash.output };
export const where = { cwd: process.cwd(), root: pulumi.getRootDirectory() };
export const who = [pulumi.getOrganization(), pulumi.getProject(), pulumi.getStack()];
export const file = fs.readFileSync("../notes.txt", "utf8");
export const base64 = Buffer.from(file).toString("base64");
export const plain = Buffer.from(base64, "base64").toString("utf8");
export const sha1 = crypto.createHash("sha1").update(file).digest("hex");
export const json = JSON.stringify({ key: ["a", 1, null, true], "": {} });
export const laterJson = pulumi.jsonStringify({ tags: hiddenTags, file });
export const can = [attempt(() => anything.a.b, "fallback"), attempt(() => anything.x.y, "fallback")];
export const hiddenTry = hiddenTags.apply((map) => map["none"] ?? "fallback");
export const list = [texts[1], texts[texts.length - 1], texts.join("|"), texts.length, "a-b-c".split("-")];
export const entries = Object.entries(tags).map(([key, value]) => ({ key, value }));
export const lookup = [tags["first"] ?? "default", tags["missing"] ?? "default"];
export const text = ["prefix-" + texts[0], texts[0].length, texts[0].split("").reverse().join("")];
export const numbers = [Math.max(1.5, 2.25), Math.min(1.5, 2.25), Math.max(...[1, 2, 3])];
export const primitive = [
    config.requireNumber("number") + 1.25,
    config.getNumber("absent") ?? 41.5,
    config.require("word") + " World",
    !config.requireBoolean("flag"),
    config.getBoolean("absent") ?? false,
];
export const optional = (config.getObject<(string | null)[]>("optional") ?? []).map((item) => item ?? "nothing");
export const mapped = {
    list: texts.filter((word) => word !== "beta").map((word, index) => `${index}:${word}`),
    map: Object.fromEntries(Object.entries(tags).filter(([key]) => key !== "second")),
};
export const index = [hiddenTags["first"], pulumi.secret([1])[0], pulumi.secret({ inner: { property: "deep" } }).inner.property];

const word = "a word of some language";
const nested = { object: word };
export { word as class, word as import, word as self, word as if, word as mod, nested as object };
