// One changes, one is replaced, one is replaced by deleting it first.
import * as pulumi from "@pulumi/pulumi";
import { Note } from "./note";

const first = new Note("first", { text: "good bye", pinned: "a" });
const second = new Note("second", { text: first.text.apply((text) => `${text} again`), pinned: "d" });
new Note("quiet", { text: pulumi.secret("whisper"), pinned: "unique" });
export const lengths = pulumi.all([first.length, second.length]);
