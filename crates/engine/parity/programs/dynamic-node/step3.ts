// One cannot be made.
import { Note } from "./note";

const first = new Note("first", { text: "good bye", pinned: "a" });
new Note("broken", { text: "unwritable", pinned: "e" }, { dependsOn: [first] });
