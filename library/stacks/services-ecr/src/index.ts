/** Image registry of an environment. What each output is for is said in its template. */
import { accountId } from "@cloud/shared";
import * as pulumi from "@pulumi/pulumi";
import { readConfig } from "./config";
import { createLifecycle } from "./lifecycle";
import { createRepositories } from "./repositories";

const config = readConfig();
const repositories = createRepositories(config);
createLifecycle(config, repositories);

const entries = Object.entries(repositories);

export const repositoryUrls = pulumi.all(
  Object.fromEntries(entries.map(([name, repository]) => [name, repository.repositoryUrl])),
);
export const repositoryArns = pulumi.all(
  Object.fromEntries(entries.map(([name, repository]) => [name, repository.arn])),
);
export const repositoryNames = pulumi.all(
  Object.fromEntries(entries.map(([name, repository]) => [name, repository.name])),
);
export const registryId = accountId();
