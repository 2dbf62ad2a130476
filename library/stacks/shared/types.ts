/** Types that several components speak of. */

export const ENVIRONMENTS = ["dev", "stage", "prod"] as const;

export type Environment = (typeof ENVIRONMENTS)[number];

export type Tags = Record<string, string>;

/** Who a unit belongs to; every component gets these values in its configuration. */
export interface Identity {
  readonly deploymentId: string;
  readonly organization: string;
  readonly project: string;
  readonly environment: Environment;
  /** May be empty for deployments without a domain. */
  readonly domain: string;
  readonly team: string;
  readonly costCenter: string;
}
