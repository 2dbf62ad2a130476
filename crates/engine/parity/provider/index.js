// A provider for the package `parity`, speaking the protocol directly, so that a test can make it
// answer in any way that a provider may answer.
//
// Types: `Thing` (detailed diffs, previews), `Plain` (only names of changed properties) and `Blind`
// (cannot compare, so the engine must). What they do is the same, and follows from their inputs.
"use strict";

const grpc = require("@grpc/grpc-js");
const { Any } = require("google-protobuf/google/protobuf/any_pb");
const { Empty } = require("google-protobuf/google/protobuf/empty_pb");
const { Struct } = require("google-protobuf/google/protobuf/struct_pb");
const { PluginInfo } = require("@pulumi/pulumi/proto/plugin_pb");
const provider = require("@pulumi/pulumi/proto/provider_pb");
const { ResourceProviderService } = require("@pulumi/pulumi/proto/provider_grpc_pb");
const { Status } = require("@pulumi/pulumi/proto/status_pb");

const { compare, replaceKeys } = require("./compare");
const functions = require("./functions");
const values = require("./values");
const world = require("./world");

const plain = (struct) => (struct ? struct.toJavaScript() : {});
const struct = (object) => Struct.fromJavaScript(object);
const kindOf = (urn) => urn.split("::")[2].split("$").pop().split(":").pop();
const nameOf = (urn) => urn.split("::")[3];

/** What an object turns out to be, given what was asked for. */
function outputsOf(inputs, extra) {
    const label = values.unwrap(inputs.label);
    const shout = label === undefined ? {} : { shout: values.map(label, (text) => text.toUpperCase()) };
    return { ...inputs, ...shout, ...extra };
}

const service = {
    handshake(call, reply) {
        const request = call.request;
        world.log("handshake", {
            rootDirectory: request.getRootDirectory(),
            programDirectory: request.getProgramDirectory(),
            configureWithUrn: request.getConfigureWithUrn(),
        });
        const response = new provider.ProviderHandshakeResponse();
        response.setAcceptSecrets(true);
        response.setAcceptResources(true);
        response.setAcceptOutputs(false);
        response.setSupportsAutonamingConfiguration(true);
        reply(null, response);
    },

    getPluginInfo(_call, reply) {
        const response = new PluginInfo();
        response.setVersion(process.env.PARITY_VERSION);
        reply(null, response);
    },

    checkConfig(call, reply) {
        const request = call.request;
        const news = plain(request.getNews());
        world.log("checkConfig", { urn: request.getUrn(), olds: plain(request.getOlds()), news });
        const response = new provider.CheckResponse();
        response.setInputs(struct(news));
        reply(null, response);
    },

    diffConfig(call, reply) {
        const request = call.request;
        const olds = plain(request.getOlds());
        const news = plain(request.getNews());
        world.log("diffConfig", { urn: request.getUrn(), olds, news, oldInputs: plain(request.getOldInputs()) });
        reply(null, compare("Plain", olds, news, ["realm"]));
    },

    configure(call, reply) {
        const request = call.request;
        world.log("configure", {
            variables: Object.fromEntries(request.getVariablesMap().toArray().sort()),
            args: plain(request.getArgs()),
            sendsOldInputs: request.getSendsOldInputs(),
            sendsOldInputsToDelete: request.getSendsOldInputsToDelete(),
            // A program may have variables of its own reach a provider under other names.
            seen: process.env.PARITY_SEEN,
        });
        if (plain(request.getArgs()).realm === "closed") {
            return reply({ code: grpc.status.INVALID_ARGUMENT, details: "this realm is closed" });
        }
        functions.remember(plain(request.getArgs()));
        const response = new provider.ConfigureResponse();
        response.setAcceptsecrets(true);
        response.setAcceptresources(true);
        response.setSupportspreview(true);
        reply(null, response);
    },

    check(call, reply) {
        const request = call.request;
        const urn = request.getUrn();
        const news = plain(request.getNews());
        world.log("check", {
            urn,
            name: request.getName(),
            type: request.getType(),
            olds: plain(request.getOlds()),
            news,
            seed: request.getRandomseed_asU8().length,
            autonaming: request.hasAutonaming() && request.getAutonaming().toObject(),
        });
        if (!functions.serves(urn)) {
            return reply({ code: grpc.status.NOT_FOUND, details: `nobody told it of the type of ${nameOf(urn)}` });
        }
        const response = new provider.CheckResponse();
        if (!("size" in news)) {
            news.size = 1;
        }
        const name = request.hasAutonaming() && request.getAutonaming().getProposedName();
        if (name && !("label" in news)) {
            news.label = plain(request.getOlds()).label ?? name;
        }
        response.setInputs(struct(news));
        if (typeof news.size === "number" && news.size < 0) {
            const failure = new provider.CheckFailure();
            failure.setProperty("size");
            failure.setReason("a size is not negative");
            response.addFailures(failure);
        }
        reply(null, response);
    },

    diff(call, reply) {
        const request = call.request;
        const urn = request.getUrn();
        const oldInputs = plain(request.getOldInputs());
        const news = plain(request.getNews());
        const ignored = request.getIgnorechangesList();
        world.log("diff", { urn, id: request.getId(), olds: plain(request.getOlds()), oldInputs, news, ignored });
        reply(null, compare(kindOf(urn), oldInputs, news, replaceKeys(news)));
    },

    create(call, reply) {
        const request = call.request;
        const urn = request.getUrn();
        const name = nameOf(urn);
        const inputs = plain(request.getProperties());
        const preview = request.getPreview();
        world.log("create", { urn, inputs, preview, timeout: request.getTimeout() });
        const response = new provider.CreateResponse();
        if (preview) {
            response.setProperties(struct(outputsOf(inputs, { serial: 1 })));
            return reply(null, response);
        }
        if (world.mustFail("create", name) || world.mustFailOnce("create", name)) {
            return reply({ code: grpc.status.UNKNOWN, details: `${name} cannot be made` });
        }
        const id = world.nextId(name);
        const outputs = outputsOf(inputs, { serial: 1, arn: `parity:${id}` });
        world.write(id, outputs);
        if (world.mustFail("start", name)) {
            return reply(initFailure(id, outputs, `${name} does not start`));
        }
        response.setId(id);
        response.setProperties(struct(outputs));
        reply(null, response);
    },

    update(call, reply) {
        const request = call.request;
        const urn = request.getUrn();
        const name = nameOf(urn);
        const id = request.getId();
        const olds = plain(request.getOlds());
        const news = plain(request.getNews());
        const preview = request.getPreview();
        world.log("update", {
            urn,
            id,
            olds,
            oldInputs: plain(request.getOldInputs()),
            news,
            preview,
            timeout: request.getTimeout(),
            ignored: request.getIgnorechangesList(),
        });
        if (!preview && world.mustFail("update", name)) {
            return reply({ code: grpc.status.UNKNOWN, details: `${name} cannot be changed` });
        }
        const outputs = outputsOf(news, { serial: (values.unwrap(olds.serial) || 0) + 1, arn: `parity:${id}` });
        if (!preview) {
            world.write(id, outputs);
        }
        const response = new provider.UpdateResponse();
        response.setProperties(struct(outputs));
        reply(null, response);
    },

    read(call, reply) {
        const request = call.request;
        const urn = request.getUrn();
        const id = request.getId();
        world.log("read", {
            urn,
            id,
            properties: plain(request.getProperties()),
            inputs: plain(request.getInputs()),
        });
        if (!functions.serves(urn)) {
            return reply({ code: grpc.status.NOT_FOUND, details: `nobody told it of the type of ${nameOf(urn)}` });
        }
        if (world.mustFail("read", nameOf(urn))) {
            return reply({ code: grpc.status.UNKNOWN, details: `${id} cannot be read` });
        }
        const response = new provider.ReadResponse();
        const found = world.read(id);
        if (found) {
            const { shout, serial, arn, ...inputs } = found;
            response.setId(id);
            response.setProperties(struct(found));
            response.setInputs(struct(inputs));
        }
        reply(null, response);
    },

    delete(call, reply) {
        const request = call.request;
        const urn = request.getUrn();
        const id = request.getId();
        world.log("delete", {
            urn,
            id,
            properties: plain(request.getProperties()),
            oldInputs: plain(request.getOldInputs()),
            timeout: request.getTimeout(),
        });
        if (!functions.serves(urn)) {
            return reply({ code: grpc.status.NOT_FOUND, details: `nobody told it of the type of ${nameOf(urn)}` });
        }
        if (world.mustFail("delete", nameOf(urn))) {
            return reply({ code: grpc.status.UNKNOWN, details: `${id} cannot be deleted` });
        }
        world.remove(id);
        reply(null, new Empty());
    },

    call: functions.call,
    invoke: functions.invoke,
    parameterize: functions.parameterize,

    cancel(_call, reply) {
        reply(null, new Empty());
    },
};

/** An object that was made but does not work yet. */
function initFailure(id, properties, reason) {
    const failure = new provider.ErrorResourceInitFailed();
    failure.setId(id);
    failure.setProperties(struct(properties));
    failure.setReasonsList([reason]);
    const detail = new Any();
    detail.pack(failure.serializeBinary(), "pulumirpc.ErrorResourceInitFailed");
    const status = new Status();
    status.setCode(grpc.status.UNKNOWN);
    status.setMessage(reason);
    status.addDetails(detail);
    const metadata = new grpc.Metadata();
    metadata.add("grpc-status-details-bin", Buffer.from(status.serializeBinary()));
    return { code: grpc.status.UNKNOWN, details: reason, metadata };
}

const server = new grpc.Server();
server.addService(ResourceProviderService, service);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
    if (error) {
        throw error;
    }
    console.log(port);
});
