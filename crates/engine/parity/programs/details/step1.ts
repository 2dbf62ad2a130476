// Options about plugins and shown differences, and what children have from their parents.
import * as pulumi from "@pulumi/pulumi";
import { Provider, Thing } from "./parity";

new Thing("hides", { label: "h", tags: { a: "1" }, extra: { deep: "1" } }, { hideDiffs: ["label", "tags.a", 'extra["deep"]'] });
new Thing("shows", { label: "s" });
new Thing("second-version", { label: "v" }, { version: "2.0.0" });
new Thing("early-version", { label: "v" }, { version: "3.0.0-alpha.1" });
new Thing("from-somewhere", { label: "u" }, { pluginDownloadURL: "https://example.com/provider1" });
new Thing("from-elsewhere", { label: "u" }, { pluginDownloadURL: "https://example.com/provider2" });

const mapped = new Provider("mapped", { prefix: "m" }, { version: "1.0.0", envVarMappings: { PARITY_GIVEN: "PARITY_SEEN" } });
new Thing("with-variable", { label: "w" }, { provider: mapped });

const east = new Provider("east", { prefix: "e" }, { version: "1.0.0" });
const first = new Thing("parent1", { label: "p" }, { provider: east });
new Thing("child1", { label: "c" }, { parent: first });
new Thing("orphan1", { label: "o" });
const second = new Thing("parent2", { label: "p" }, { protect: true, retainOnDelete: true });
new Thing("child2", { label: "c" }, { parent: second });
new Thing("child3", { label: "c" }, { parent: second, protect: false, retainOnDelete: false });

// Settings of providers of every type, in the clear and secret.
class Settings extends pulumi.ProviderResource {
    constructor(name: string, args: pulumi.Inputs) {
        super("parity", name, args, { version: "1.0.0" });
    }
}
const settings = new Settings("settings", {
    text: "t",
    number: 1.5,
    flag: true,
    list: ["a", "b"],
    map: { key: "k" },
    object: { secretX: pulumi.secret("x") },
    secretNumber: pulumi.secret(16),
    secretList: pulumi.secret(["s"]),
    empty: undefined,
});
new Thing("with-settings", { label: "s" }, { provider: settings });
