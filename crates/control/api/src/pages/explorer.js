// An explorer for GraphQL: the schema to browse, and documents to try. Everything comes from the server that serves this
// page and is put in as text.
"use strict";

const byId = (id) => document.getElementById(id);
const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

/** Types of a schema in its own language, each with its lines. */
function readSchema(text) {
  const types = new Map();
  let about = [];
  let current = null;
  let inText = false;
  for (const line of text.split("\n")) {
    const trimmed = line.trim();
    const quotes = trimmed.split('"""').length - 1;
    if (inText || quotes > 0) {
      const words = trimmed.replaceAll('"""', "").trim();
      if (words) (current ? current.lines : about).push(current ? `  # ${words}` : words);
      if (quotes === 1) inText = !inText;
      continue;
    }
    const begin = /^(type|input|enum|interface|scalar|union)\s+(\w+)/.exec(trimmed);
    if (begin && !current) {
      current = { kind: begin[1], name: begin[2], about: about.join(" "), lines: [] };
      types.set(current.name, current);
      about = [];
      if (!trimmed.endsWith("{")) current = null;
    } else if (trimmed === "}" && !line.startsWith("\t\t")) {
      current = null;
      about = [];
    } else if (current && trimmed) {
      current.lines.push(line.replace(/^\t/, "  "));
    }
  }
  return types;
}

let types = new Map();

function show(name) {
  const found = types.get(name);
  const place = byId("type");
  place.replaceChildren(element("h2", `${found.kind} ${found.name}`), element("p", found.about));
  const text = element("pre");
  for (const line of found.lines) {
    for (const part of line.split(/(\w+)/)) {
      if (types.has(part) && part !== found.name) {
        const link = element("button", part, { class: "type", type: "button" });
        link.addEventListener("click", () => show(part));
        text.append(link);
      } else {
        text.append(document.createTextNode(part));
      }
    }
    text.append(document.createTextNode("\n"));
  }
  place.append(text);
}

function list(words) {
  const place = byId("list");
  place.replaceChildren();
  const wanted = words.toLowerCase();
  const kinds = new Map();
  for (const found of types.values()) {
    const all = `${found.name} ${found.lines.join(" ")}`.toLowerCase();
    if (wanted && !all.includes(wanted)) continue;
    if (!kinds.has(found.kind)) kinds.set(found.kind, []);
    kinds.get(found.kind).push(found.name);
  }
  for (const [kind, names] of kinds) {
    place.append(element("h2", kind));
    for (const name of names) {
      const button = element("button", name, { type: "button" });
      button.addEventListener("click", () => show(name));
      place.append(button);
    }
  }
}

async function carryOut() {
  const answer = byId("answer");
  answer.textContent = "…";
  try {
    const headers = { "content-type": "application/json" };
    const token = byId("token").value.trim();
    if (token) headers.authorization = `Bearer ${token}`;
    const csrf = localStorage.getItem("nimbus.csrf");
    if (csrf) headers["x-nimbus-csrf"] = csrf;
    const variables = JSON.parse(byId("variables").value || "{}");
    const body = JSON.stringify({ query: byId("query").value, variables });
    const reply = await fetch("/graphql", { method: "POST", headers, body });
    answer.textContent = `${reply.status}\n${JSON.stringify(await reply.json(), null, 2)}`;
  } catch (problem) {
    answer.textContent = String(problem);
  }
}

byId("go").addEventListener("click", carryOut);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) carryOut();
});
fetch("/graphql/schema.graphql")
  .then((reply) => reply.text())
  .then((text) => {
    types = readSchema(text);
    list("");
    show("Query");
    byId("search").addEventListener("input", (event) => list(event.target.value));
  });
