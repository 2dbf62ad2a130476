// Values of every shape and names of every kind, through a provider and back.
import * as pulumi from "@pulumi/pulumi";
import { Thing, ThingArgs } from "./parity";

/** Types of other modules, and names that are words of a language. */
class Named extends pulumi.CustomResource {
    readonly extra!: pulumi.Output<any>;
    readonly label!: pulumi.Output<string>;

    constructor(type: string, name: string, args: ThingArgs, options?: pulumi.CustomResourceOptions) {
        super(type, name, { size: undefined, label: undefined, ...args }, { version: "1.0.0", ...options });
    }
}

const config = new pulumi.Config();
const keys = { "my key": "one", "my.key": "two", "my-key": "three", my_key: "four", MY_KEY: "five", myKey: "six" };
const odd = {
    __type: true,
    __internal: false,
    __version: false,
    "": true,
    'Some ${common} "characters" \'to escape\': \\ \t \u001b \u0007 \u{e0021}': false,
    "%percent ...dots {open }close *star ?mark ,comma &&and ||or !not =>arrow ==equal :colon /slash [0] a.b[*]": true,
};

const primitives = new Thing("primitives", {
    label: "Goodbye",
    extra: { boolean: false, float: 2.17, integer: -12, large: 9007199254740991, tiny: 1e-9, numbers: [0, 1, -0.5], flags: { t: true, f: false } },
});
new Thing("empties", { label: "", extra: { list: [], map: {}, text: "", zero: 0, no: false, lists: [[], [[]]] } });
new Thing("optional", { label: undefined, extra: { given: "x", not: undefined, nothing: null, items: [null, "a", null] } });
new Thing("keys", { label: "k", tags: keys, extra: { inner: { deeper: keys } } });
new Thing("odd-keys", { label: "k", extra: odd });
new Thing("nested", { label: "n", extra: { matrix: [[1, 2], [3]], maps: [{ a: { b: [{ c: ["d"] }] } }], mixed: [1, "1", true, null] } });
new Thing("large", { label: "hello world".repeat(20000) });
new Thing("union", { label: "u", extra: [{ kind: "one", text: "a" }, { kind: "two", number: 2 }, "three", 4] });
new Thing("constant", { label: "c", kind: "only-this-one" });
new Thing("enum", { label: "one", extra: { level: 1, name: "two", outside: "three" } });
new Thing("any", { label: "a", extra: pulumi.output({ at: ["all", { of: config.getObject("object") }] }) });
const reference = new Thing("reference", { label: "r", extra: { id: primitives.id, urn: primitives.urn, same: primitives } });
new Thing("from-reference", { label: reference.extra.apply((extra: any) => extra.id), extra: { size: primitives.size, text: pulumi.interpolate`${primitives.size}` } });
new Thing("unknown-inside", { label: "u", extra: { known: "k", later: primitives.arn, list: [primitives.arn, "x"], map: { a: primitives.serial } } });
new Named("parity:mod:Thing", "in-module", { label: "m" });
new Named("parity:mod/nested:Thing", "in-nested-module", { label: "m" });
new Named("parity:index-mine:Thing", "kebab-name", { label: "k", extra: { "kebab-key": "a", snake_key: "b", camelKey: "c", PascalKey: "d" } });
new Named("parity:index:some_snake_Thing", "snake_name", { label: "s" });
new Named("parity:lambda:Thing", "class", { label: "w", extra: { builtins: "a", property: "b", class: "c", self: "d", import: "e" } });
new Named("parity:index:Lambda", "lambda", { label: config.get("names") ?? "names" });
for (const name of ["a name with spaces", "ünï/cödé", "slash/and:colon", "UPPER.lower_0-9"]) {
    new Thing(name, { label: "n" });
}
for (let number = 0; number < 8; number++) {
    new Thing(`parallel-${number}`, { label: `${number}` });
}
export const all = { extra: primitives.extra, label: primitives.label, id: primitives.id };
export const entries = primitives.extra.apply((extra: any) => Object.entries(extra.flags).map(([key, value]) => ({ key, value })));
export const indexed = [(primitives.extra as any).numbers[1], primitives.extra.apply((extra: any) => extra.flags["t"])];
