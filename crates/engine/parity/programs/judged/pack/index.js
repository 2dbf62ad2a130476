// Policies of every kind: of resources and of stacks, with settings, tags and corrections.
const pulumi = require("@pulumi/pulumi");
const { PolicyPack } = require("@pulumi/policy");

const isThing = (type) => type === "parity:index:Thing";

new PolicyPack("house-rules", {
    enforcementLevel: "advisory",
    policies: [
        {
            name: "no-forbidden-words",
            description: "Labels are kind.",
            enforcementLevel: "mandatory",
            validateResource: (args, report) => {
                if (isThing(args.type) && String(args.props.label ?? "").includes("forbidden")) {
                    report("this label is not kind");
                }
            },
        },
        {
            name: "short-labels",
            description: "Labels are short.",
            configSchema: { properties: { most: { type: "number", minimum: 1, default: 12 } } },
            validateResource: (args, report) => {
                const { most } = args.getConfig();
                if (isThing(args.type) && String(args.props.label ?? "").length > most) {
                    report(`this label has more than ${most} letters`);
                }
            },
        },
        {
            name: "tagged",
            description: "Things say whose they are.",
            enforcementLevel: "remediate",
            remediateResource: (args) => {
                if (isThing(args.type) && args.props.label === "nobody's") {
                    return { ...args.props, label: args.stackTags.get("owner") ?? "none" };
                }
            },
        },
        {
            name: "only-in-previews",
            description: "Tells previews from updates, and knows the stack's settings.",
            validateResource: (args, report) => {
                if (isThing(args.type) && args.props.label === "dry" && pulumi.runtime.isDryRun()) {
                    report(`a preview of ${new pulumi.Config("judged").get("greeting")}`);
                }
            },
        },
        {
            name: "few-things",
            description: "A stack has few things.",
            validateStack: (args, report) => {
                const things = args.resources.filter((resource) => isThing(resource.type));
                if (things.length > 3) {
                    report(`there are ${things.length}`);
                }
            },
        },
    ],
});
