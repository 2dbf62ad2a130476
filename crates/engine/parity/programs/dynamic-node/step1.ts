// A provider that is written in the program itself: objects are files in a folder.
import * as pulumi from "@pulumi/pulumi";
import { Note } from "./note";

const first = new Note("first", { text: "hello", pinned: "a" });
const second = new Note("second", { text: first.text.apply((text) => `${text} again`), pinned: "b" });
new Note("quiet", { text: pulumi.secret("whisper"), pinned: "c" });
export const lengths = pulumi.all([first.length, second.length]);
