/** Where tasks on Fargate get their capacity from: reserved, or spare and cheaper. */

export interface CapacityShare {
  readonly capacityProvider: "FARGATE" | "FARGATE_SPOT";
  readonly base?: number;
  readonly weight: number;
}

/** Reserved capacity keeps one task, unless everything may be taken away. */
export function fargateCapacity(spotPercent: number): CapacityShare[] {
  const reserved = { capacityProvider: "FARGATE", base: 1, weight: 100 - spotPercent } as const;
  const spot = { capacityProvider: "FARGATE_SPOT", weight: spotPercent } as const;
  if (spotPercent === 0) {
    return [reserved];
  }
  return spotPercent === 100 ? [spot] : [reserved, spot];
}
