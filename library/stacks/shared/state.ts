/** How a unit is kept: the name of the state that knows its resources. */
import type { Environment } from "./types";

/** The Pulumi stack of a unit: `D1BRV40-network-dev`. */
export function unitName(deploymentId: string, stack: string, environment: Environment): string {
  return `${deploymentId}-${stack}-${environment}`;
}
