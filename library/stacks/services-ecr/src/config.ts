/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, type StackContext } from "@cloud/shared";

export const STACK = "services-ecr";

export interface RegistryConfig {
  readonly context: StackContext;
  readonly dataKeyArn: string;
  readonly repositories: readonly string[];
  readonly keepImages: number;
  readonly forceDelete: boolean;
  /** Accounts that run what was built here. */
  readonly pullAccountIds: readonly string[];
}

export function readConfig(): RegistryConfig {
  const reader = new ConfigReader(STACK);
  const repositories = reader.texts("repositories", { default: ["api", "worker"], min: 1 });
  for (const name of repositories) {
    if (!/^[a-z0-9]+([._-][a-z0-9]+)*$/.test(name)) {
      reader.problem("repositories", `has ${JSON.stringify(name)}, which is no repository name`);
    }
  }
  const pullAccountIds = reader.texts("pullAccountIds", { default: [] });
  for (const id of pullAccountIds) {
    if (!/^\d{12}$/.test(id)) {
      reader.problem("pullAccountIds", `has ${JSON.stringify(id)}, which is no account id`);
    }
  }
  return reader.finish({
    context: reader.context(),
    dataKeyArn: reader.arn("dataKeyArn"),
    repositories,
    keepImages: reader.integer("keepImages", { default: 200, min: 1, max: 1000 }),
    forceDelete: reader.flag("forceDelete", false),
    pullAccountIds,
  });
}
