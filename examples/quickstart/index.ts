import * as pulumi from "@pulumi/pulumi";

import { Site } from "./site";

const config = new pulumi.Config();

const site = new Site("site", {
    folder: config.get("folder") ?? "public",
    title: config.require("title"),
    topics: config.requireObject<string[]>("topics"),
});

export const front = site.front;
export const pages = site.pages;

// Secrets stay secret all the way: encrypted in state, hidden in outputs.
export const previewToken = pulumi.secret(site.front.apply((path) => `token-for-${path}`));
