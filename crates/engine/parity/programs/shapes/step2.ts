// The same with another provider setting and one room more.
import * as pulumi from "@pulumi/pulumi";
import { Provider, Thing } from "./parity";

const config = new pulumi.Config();
const words = config.requireObject<string[]>("words");
const tags = config.requireObject<Record<string, string>>("tags");
const count = config.requireNumber("count");

class Room extends pulumi.ComponentResource {
    readonly shouts: pulumi.Output<string>[];

    constructor(name: string, args: { label: pulumi.Input<string>; sizes?: number[]; extra?: any }, options?: pulumi.ComponentResourceOptions) {
        super("demo:index:Room", name, args, options);
        const things = (args.sizes ?? [1]).map(
            (size, index) => new Thing(`${name}-${index}`, { label: args.label, size, extra: args.extra }, { parent: this }),
        );
        this.shouts = things.map((thing) => thing.shout);
        this.registerOutputs({ shouts: this.shouts });
    }
}

class House extends pulumi.ComponentResource {
    readonly rooms: Room[];

    constructor(name: string, labels: pulumi.Input<string>[], options?: pulumi.ComponentResourceOptions) {
        super("demo:index:House", name, {}, options);
        this.rooms = labels.map((label, index) => new Room(`${name}-room${index}`, { label, sizes: [index + 1, 7] }, { parent: this }));
        this.registerOutputs({ shouts: this.rooms.map((room) => room.shouts) });
    }
}

const east = new Provider("east", { prefix: "w" });
const house = new House("house", ["kitchen", "cellar", "attic"]);
new House("other", [house.rooms[0].shouts[0]], { provider: east, dependsOn: [house] });

// What two components want of each other, neither waiting for all of the other.
const [early, settle] = (() => {
    let resolve: (value: pulumi.Output<string>) => void;
    const promise = new Promise<pulumi.Output<string>>((done) => (resolve = done));
    return [pulumi.output(promise).apply((value) => value), (value: pulumi.Output<string>) => resolve(value)] as const;
})();
const first = new Room("first", { label: early });
const second = new Room("second", { label: "s" });
settle(second.shouts[0]);
new Room("third", { label: first.shouts[0] });

// Configuration of every type into components, in the clear and secret.
new Room("configured", { label: config.require("word"), extra: { count, flag: config.requireBoolean("flag"), words, tags } });
new Room("hidden", { label: config.requireSecret("word"), extra: { words: config.requireSecretObject("words"), tags: config.requireSecretObject("tags") } });
// Texts that are numbers and numbers that are texts.
new Room("converted", { label: `${true}`, extra: { boolean: "true" === "true", float: Number("3.14"), integer: parseInt("42"), items: ["-1", "0"].map(Number) } });

for (let number = 0; number < count - 1; number++) {
    new Thing(`number-${number}`, { label: `n${number}` });
}
const listed = words.map((word, index) => new Thing(`word-${index}`, { label: `${index}:${word}` }));
const mapped = Object.fromEntries(Object.entries(tags).map(([key, value]) => [key, new Thing(`tag-${key}`, { label: `${key}=${value}` })]));
const perhaps = config.requireBoolean("flag") ? new Thing("perhaps", { label: "yes" }) : undefined;
new Thing("after-perhaps", { label: perhaps ? pulumi.interpolate`${perhaps.label}+` : "no" });
new Thing("from-list", { label: listed[1].shout, items: listed.map((thing) => thing.label) });
new Thing("from-map", { label: mapped["first"].shout, tags: Object.fromEntries(Object.entries(mapped).map(([key, thing]) => [key, thing.label])) });

const source = new Thing("source", { label: "s", extra: { details: [{ key: "a", value: "1" }, { key: "b", value: "2" }] } });
const details = (source.extra as any).details as pulumi.Output<{ key: string; value: string }[]>;
new Thing("splat", { label: "x", items: details.apply((all) => all.map((one) => one.value)) });
new Thing("rebuilt", { label: "x", extra: details.apply((all) => Object.fromEntries(all.map((one) => [one.key, one.value]))) });
details.apply((all) => all.forEach((one) => new Thing(`detail-${one.key}`, { label: one.value })));
class Scope extends pulumi.ComponentResource {
    constructor(name: string, prefix: string) {
        super("demo:index:Scope", name, { prefix });
        for (let number = 0; number < 2; number++) {
            new Thing(`${name}-item-${number}`, { label: `${prefix}-${number}` }, { parent: this });
        }
        this.registerOutputs();
    }
}
new Scope("scope", "p");
export const greetings = words.map((word) => `Hello, ${word}!`);
export const shouts = house.rooms.map((room) => room.shouts);
