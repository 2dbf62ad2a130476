// A provider as it is shipped: commands that really run.
import * as command from "@pulumi/command";

const write = 'printf %s "$TEXT" > "$PARITY_WORLD/$FILE" && cat "$PARITY_WORLD/$FILE"';
const file = new command.local.Command("file", {
    create: write,
    update: write,
    delete: 'rm "$PARITY_WORLD/$FILE"',
    environment: { FILE: "file-b", TEXT: "second" },
    triggers: ["b"],
});
const copy = new command.local.Command("copy", { create: "cat", stdin: file.stdout });
export const text = copy.stdout;
