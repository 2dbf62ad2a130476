/** Image builds of an environment. What each output is for is said in its template. */
import * as pulumi from "@pulumi/pulumi";
import { createBuild } from "./builds";
import { readConfig } from "./config";
import { createSourceBucket } from "./sources";

const config = readConfig();
const sources = createSourceBucket(config);

export const sourceBucketName = sources.id;
export const buildProjectNames = pulumi.all(
  Object.fromEntries(
    config.images.map((image) => [image.name, createBuild(config, image, sources).name]),
  ),
);
export const imageUris = Object.fromEntries(
  config.images.map(({ name, version }) => [name, `${config.repositoryUrls[name]}:${version}`]),
);
