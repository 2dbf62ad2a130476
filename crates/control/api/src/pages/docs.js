// The description of the API, to browse. It is read from the server that serves this page, and everything is put in as text.
"use strict";

const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

const byId = (id) => document.getElementById(id);
let api;

const nameOf = (schema) => schema?.$ref?.split("/").at(-1);

function typeText(schema) {
  if (!schema || schema === true) return "any";
  if (schema.$ref) return nameOf(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const union = schema.anyOf ?? schema.oneOf;
  if (union) return union.map(typeText).join(" | ");
  if (schema.type === "array") return `list of ${typeText(schema.items)}`;
  return [schema.type ?? "object"].flat().join(" | ");
}

function table(rows, heads) {
  const made = element("table");
  const head = element("tr");
  for (const text of heads) head.append(element("th", text, { scope: "col" }));
  made.append(head);
  for (const row of rows) {
    const line = element("tr");
    for (const cell of row) {
      const place = element("td");
      place.append(cell instanceof Node ? cell : document.createTextNode(cell ?? ""));
      line.append(place);
    }
    made.append(line);
  }
  return made;
}

function typeCell(schema) {
  const references = new Set();
  JSON.stringify(schema ?? {}, (key, value) => {
    if (key === "$ref") references.add(value.split("/").at(-1));
    return value;
  });
  const cell = element("span", typeText(schema));
  for (const name of references) {
    const link = element("button", ` ${name} ↗`, { class: "type", type: "button" });
    link.addEventListener("click", () => showSchema(name));
    cell.append(link);
  }
  return cell;
}

function properties(schema) {
  const found = schema?.$ref ? api.components.schemas[nameOf(schema)] : schema;
  const required = new Set(found?.required ?? []);
  return Object.entries(found?.properties ?? {}).map(([name, one]) => [
    required.has(name) ? `${name} *` : name,
    typeCell(one),
    one.description ?? "",
  ]);
}

function showSchema(name) {
  const detail = byId("detail");
  const schema = api.components.schemas[name];
  detail.replaceChildren(element("h2", name), element("p", schema.description ?? ""));
  if (schema.properties) detail.append(table(properties(schema), ["field", "type", ""]));
  detail.append(element("pre", JSON.stringify(schema, null, 2)));
}

function show(path, method, operation) {
  const detail = byId("detail");
  detail.replaceChildren(
    element("h2", operation.summary),
    element("pre", `${method.toUpperCase()} ${path}`),
    element("p", operation["x-permission"] ? `Needs ${operation["x-permission"]}.` : operation.security?.length ? "Needs a sign-in." : "Needs nothing.", { class: "note" }),
  );
  if (operation.parameters?.length) {
    const rows = operation.parameters.map((one) => [
      one.required ? `${one.name} *` : one.name,
      one.in,
      typeCell(one.schema),
      one.description ?? one.schema?.description ?? "",
    ]);
    detail.append(element("h3", "Parameters"), table(rows, ["name", "in", "type", ""]));
  }
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  if (body) detail.append(element("h3", "Body"), typeCell(body), table(properties(body), ["field", "type", ""]));
  detail.append(element("h3", "Answers"));
  const answers = Object.entries(operation.responses).map(([status, answer]) => {
    const content = Object.entries(answer.content ?? {})[0];
    return [status, answer.description ?? "", content ? typeCell(content[1].schema) : ""];
  });
  detail.append(table(answers, ["status", "", "body"]));
}

function list(text) {
  const words = text.toLowerCase();
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const all = `${path} ${operation.summary} ${operation.operationId}`.toLowerCase();
      if (!all.includes(words)) continue;
      const group = operation.tags?.[0] ?? operation.operationId.split(".")[0];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push([path, method, operation]);
    }
  }
  const place = byId("list");
  place.replaceChildren();
  for (const [group, operations] of groups) {
    place.append(element("h2", group));
    for (const [path, method, operation] of operations) {
      const button = element("button", undefined, { type: "button", title: path });
      button.append(element("span", method.toUpperCase(), { class: "method" }), document.createTextNode(operation.summary));
      button.addEventListener("click", () => show(path, method, operation));
      place.append(button);
    }
  }
}

fetch("/api/v1/openapi.json")
  .then((answer) => answer.json())
  .then((document) => {
    api = document;
    list("");
    byId("search").addEventListener("input", (event) => list(event.target.value));
  })
  .catch(() => {
    byId("detail").textContent = "The description could not be read.";
  });
