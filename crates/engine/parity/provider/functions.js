// What the test provider can do besides objects: functions, methods and parameters.
"use strict";

const provider = require("@pulumi/pulumi/proto/provider_pb");
const { Struct } = require("google-protobuf/google/protobuf/struct_pb");

const values = require("./values");
const world = require("./world");

const plain = (struct) => (struct ? struct.toJavaScript() : {});
const struct = (object) => Struct.fromJavaScript(object);

/** The package that this process was made to be, where it was given parameters. */
let parameter = null;
/** The packages that it serves: its own and those that it was told of. */
const served = new Set(["parity"]);
/** What Configure said. */
let configured = {};

/** Functions by the last part of their token; what they answer follows from their arguments. */
const functions = {
    lookup(args) {
        const found = world.read(args.id) || {};
        return { found: "serial" in found, label: found.label ?? "nothing" };
    },
    // A single value in an object, which SDKs take out of it.
    single: (args) => ({ result: `${args.text}!` }),
    singleList: (args) => ({ result: [args.text, "and", args.text] }),
    singleMap: (args) => ({ result: { text: args.text, again: args.text } }),
    singleSecret: (args) => ({ result: values.secret(args.text) }),
    // The second argument may be left out.
    join: (args) => ({ result: "second" in args ? `${args.first}+${args.second}` : args.first }),
    names: (args) => ({ results: args.names.map((name) => `${name}-value`), count: args.names.length }),
    settings: (args) => ({ prefix: configured.prefix ?? "none", text: args.text ?? "" }),
    echo: (args) => args,
    parameter: () => ({ text: parameter ? parameter.value : "none" }),
};

function invoke(call, reply) {
    const request = call.request;
    const args = plain(request.getArgs());
    world.log("invoke", { tok: request.getTok(), args, preview: request.getPreview() });
    const response = new provider.InvokeResponse();
    if (args.id === "bad") {
        const failure = new provider.CheckFailure();
        failure.setProperty("id");
        failure.setReason("no such id can be");
        response.addFailures(failure);
    } else {
        response.setReturn(struct(functions[request.getTok().split(":").pop()](args)));
    }
    reply(null, response);
}

/** Methods of resources: they say who was asked, and with which settings. */
function call(call, reply) {
    const request = call.request;
    const { __self__: self, ...args } = plain(request.getArgs());
    world.log("call", { tok: request.getTok(), args, self: values.unwrap(self)?.urn ?? null });
    const response = new provider.CallResponse();
    const who = (values.unwrap(self)?.urn ?? "").split("::").pop();
    response.setReturn(struct({ result: `${who} ${args.text ?? "-"} ${configured.prefix ?? "none"}` }));
    reply(null, response);
}

function parameterize(call, reply) {
    const asked = call.request.getValue();
    parameter = {
        name: asked.getName(),
        version: asked.getVersion(),
        value: Buffer.from(asked.getValue_asU8()).toString(),
    };
    served.add(parameter.name);
    world.log("parameterize", parameter);
    const response = new provider.ParameterizeResponse();
    response.setName(parameter.name);
    response.setVersion(parameter.version);
    reply(null, response);
}

/** Whether it knows the types of a resource's package. */
function serves(urn) {
    return served.has(urn.split("::")[2].split("$").pop().split(":")[0]);
}

function remember(settings) {
    configured = Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, values.unwrap(value)]));
}

module.exports = { call, invoke, parameterize, remember, serves };
