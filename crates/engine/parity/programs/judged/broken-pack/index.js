// A pack that cannot be loaded: this name is not allowed.
const { PolicyPack } = require("@pulumi/policy");

new PolicyPack("house-rules", {
    policies: [{ name: "all", description: "Is a word of the settings.", enforcementLevel: "mandatory", validateResource: () => undefined }],
});
