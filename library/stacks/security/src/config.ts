/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, type StackContext } from "@cloud/shared";

export const STACK = "security";

export interface SecurityConfig {
  readonly context: StackContext;
  readonly vpcId: string;
  readonly publicIngressCidrs: readonly string[];
  readonly databasePort: number;
  readonly dualStack: boolean;
  readonly alertEmails: readonly string[];
  readonly monthlyBudgetUsd: number;
  readonly manageAccountBaseline: boolean;
}

export function readConfig(): SecurityConfig {
  const reader = new ConfigReader(STACK);
  const alertEmails = reader.texts("alertEmails", { min: 1 });
  for (const email of alertEmails) {
    if (!/^[^\s@]+@[^\s@]+$/.test(email)) {
      reader.problem("alertEmails", `has ${JSON.stringify(email)}, which is no e-mail address`);
    }
  }
  return reader.finish({
    context: reader.context(),
    vpcId: reader.id("vpcId", "vpc-"),
    publicIngressCidrs: reader.texts("publicIngressCidrs", { default: ["0.0.0.0/0"], min: 1 }),
    databasePort: reader.integer("databasePort", { default: 5432, min: 1, max: 65535 }),
    dualStack: reader.flag("dualStack", false),
    alertEmails,
    monthlyBudgetUsd: reader.integer("monthlyBudgetUsd", { min: 1, max: 10_000_000 }),
    manageAccountBaseline: reader.flag("manageAccountBaseline", false),
  });
}
