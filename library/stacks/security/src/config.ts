/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, type StackContext } from "@cloud/shared";

export const STACK = "security";

export interface SecurityConfig {
  readonly context: StackContext;
  readonly vpcId: string;
  readonly publicIngressCidrs: readonly string[];
  readonly appPort: number;
  readonly databasePort: number;
  readonly manageAccountBaseline: boolean;
}

export function readConfig(): SecurityConfig {
  const reader = new ConfigReader(STACK);
  return reader.finish({
    context: reader.context(),
    vpcId: reader.id("vpcId", "vpc-"),
    publicIngressCidrs: reader.texts("publicIngressCidrs", { default: ["0.0.0.0/0"], min: 1 }),
    appPort: reader.integer("appPort", { default: 8080, min: 1, max: 65535 }),
    databasePort: reader.integer("databasePort", { default: 5432, min: 1, max: 65535 }),
    manageAccountBaseline: reader.flag("manageAccountBaseline", false),
  });
}
