/**
 * Names and tags of one unit.
 *
 * Logical names start with the component's name, so that no two components collide. Physical names
 * start with the deployment id and the environment, so that no two deployments collide in an
 * account; they are cut to the length that AWS accepts, with a hash instead of the part that did
 * not fit.
 */
import { unitName } from "./state";
import type { Environment, Identity, Tags } from "./types";
import { shortHash } from "./utils";

export class StackContext {
  constructor(
    readonly stack: string,
    readonly identity: Identity,
    private readonly scope: readonly string[] = [],
  ) {}

  /** For a part of the program that exists more than once: its name stands in all its names. */
  within(name: string): StackContext {
    return new StackContext(this.stack, this.identity, [...this.scope, name]);
  }

  get environment(): Environment {
    return this.identity.environment;
  }

  get isProduction(): boolean {
    return this.identity.environment === "prod";
  }

  /** Name of a resource in the state: `network-vpc`. */
  logical(...parts: Array<string | number>): string {
    return [this.stack, ...this.scope, ...parts].join("-");
  }

  /** Name of a resource in the account: `d1brv40-dev-network-vpc`, at most `limit` characters. */
  physical(limit: number, ...parts: Array<string | number>): string {
    const { deploymentId, environment } = this.identity;
    const words = [deploymentId, environment, this.stack, ...this.scope, ...parts];
    return fit(words.map(slug).join("-"), limit);
  }

  /** `/d1brv40/dev/network/vpc`: for log groups, secrets and parameters. */
  path(...parts: string[]): string {
    const { deploymentId, environment } = this.identity;
    const words = [deploymentId, environment, this.stack, ...this.scope, ...parts];
    return `/${words.map(slug).join("/")}`;
  }

  /** The tags that every resource carries, with a name that people find in a console. */
  tags(name: string, extra: Tags = {}): Tags {
    const { identity } = this;
    return {
      Name: [
        slug(identity.deploymentId),
        identity.environment,
        this.stack,
        ...this.scope,
        name,
      ].join("-"),
      ...ownerTags(identity),
      // Leads from a resource in a console to the state that owns it.
      Unit: unitName(identity.deploymentId, this.stack, identity.environment),
      ...extra,
    };
  }
}

/** Tags that say whose a resource is; cost reports and policies rely on them. */
export function ownerTags(identity: Identity): Tags {
  return {
    Organization: tagValue(identity.organization),
    Project: tagValue(identity.project),
    Environment: identity.environment,
    Team: tagValue(identity.team),
    CostCenter: tagValue(identity.costCenter),
    DeploymentId: identity.deploymentId,
    ManagedBy: "nimbus",
  };
}

/** Lower case letters, digits and single dashes; what every AWS name accepts. */
export function slug(part: string | number): string {
  return String(part)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
}

/** At most `limit` characters. A longer name ends in a hash of all of it, so it stays unique. */
export function fit(name: string, limit: number): string {
  if (name.length <= limit) {
    return name;
  }
  const hash = shortHash(name);
  return `${name.slice(0, limit - hash.length - 1).replace(/-+$/, "")}-${hash}`;
}

/** AWS accepts 256 characters of a limited set in a tag's value. */
function tagValue(text: string): string {
  return text.replace(/[^\p{L}\p{N}\s_.:/=+\-@]/gu, " ").slice(0, 256);
}
