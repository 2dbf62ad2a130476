/**
 * Images of an environment: built here, or built and tried in another one and used from there. What
 * each output is for is said in its template.
 */
import * as pulumi from "@pulumi/pulumi";
import { createBuild } from "./builds";
import { readConfig } from "./config";
import { createSourceBucket } from "./sources";

const config = readConfig();
const builds = config.sharedRegistry === "";
const sources = builds ? createSourceBucket(config) : undefined;

export const sourceBucketName = sources?.id ?? "";
export const buildProjectNames = pulumi.all(
  Object.fromEntries(
    sources
      ? config.images.map((image) => [image.name, createBuild(config, image, sources).name])
      : [],
  ),
);
export const imageUris = Object.fromEntries(
  config.images.map(({ name, version, digest }) => [
    name,
    builds
      ? `${config.repositoryUrls[name]}:${version}`
      : `${config.sharedRegistry}/${name}@${digest}`,
  ]),
);
