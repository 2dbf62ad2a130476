// An object that is made with a token.
import * as pulumi from "@pulumi/pulumi";

class Ledger extends pulumi.CustomResource {
    constructor(name: string, args: { title: string; clientToken: string }) {
        super("tally:index:Ledger", name, { ...args, pages: undefined }, { version: "0.1.0" });
    }
}

new Ledger("accounts", { title: "of the year", clientToken: "made-once" });
