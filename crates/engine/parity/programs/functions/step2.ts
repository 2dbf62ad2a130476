// The same with one more name, another provider setting and an argument less.
import * as pulumi from "@pulumi/pulumi";
import { Provider, Thing } from "./parity";

const single = <T>(name: string, text: pulumi.Input<string>, options?: pulumi.InvokeOutputOptions) =>
    pulumi.runtime.invokeSingleOutput<T>(`parity:index:${name}`, { text }, options);
const asked = (name: string, args: pulumi.Inputs, options?: pulumi.InvokeOutputOptions): any =>
    pulumi.runtime.invokeOutput(`parity:index:${name}`, args, options);

const thing = new Thing("thing", { label: "t" });
const special = new Provider("special", { prefix: "z" }, { version: "1.0.0" });
const served = new Thing("served", { label: "s" }, { provider: special });

class Box extends pulumi.ComponentResource {
    readonly said: pulumi.Output<any>;

    constructor(name: string, options?: pulumi.ComponentResourceOptions) {
        super("demo:index:Box", name, {}, options);
        new Thing(`${name}-inner`, { label: "inner" }, { parent: this });
        this.said = asked("settings", { text: "from the box" }, { parent: this });
        this.registerOutputs({ said: this.said });
    }
}

const box = new Box("box", { providers: [special] });
export const one = single<string>("single", "hello");
export const list = single<string[]>("singleList", thing.label);
export const map = single("singleMap", "m");
export const hidden = single<string>("singleSecret", "quiet");
export const both = asked("join", { first: "hello" }).result;
export const required = asked("join", { first: "hello" }).result;
export const withDefault = new Thing("default", { label: asked("join", { first: "computed" }).result }).shout;
export const echoed = asked("echo", { class: "c", import: ["i"], "a key": { deep: thing.id } });
export const settings = [asked("settings", {}), asked("settings", { text: "x" }, { provider: special })];
export const boxed = box.said;
export const afterBox = asked("lookup", { id: "box-inner-1" }, { dependsOn: [box] }).found;
export const method = pulumi.runtime.call("parity:index:Thing/say", { __self__: thing, text: "hi" }, thing);
export const special1 = pulumi.runtime.callSingle("parity:index:Thing/say", { __self__: served, text: "there" }, served);
export const ofProvider = pulumi.runtime.callSingle("pulumi:providers:parity/identity", { __self__: special, text: "me" }, special);

// As many resources as a function says, made from what it returns.
const names = asked("names", { names: ["alpha", "bravo", "charlie"] });
names.results.apply((results: string[]) => results.map((result, index) => new Thing(`route-${index}`, { label: result })));
export const joined = names.results.apply((results: string[]) => results.join(","));
