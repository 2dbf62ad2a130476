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
  /** What outlives a deployment is under this key: snapshots and backups. */
  readonly retainDataKey: boolean;
}

export function readConfig(): SecurityConfig {
  const reader = new ConfigReader(STACK);
  const alertEmails = reader.texts("alertEmails", { min: 1 });
  for (const email of alertEmails) {
    if (!/^[^\s@]+@[^\s@]+$/.test(email)) {
      reader.problem("alertEmails", `has ${JSON.stringify(email)}, which is no e-mail address`);
    }
  }
  const dualStack = reader.flag("dualStack", false);
  return reader.finish({
    context: reader.context(),
    vpcId: reader.id("vpcId", "vpc-"),
    publicIngressCidrs: readNetworks(reader, dualStack),
    databasePort: reader.integer("databasePort", { default: 5432, min: 1, max: 65535 }),
    dualStack,
    alertEmails,
    monthlyBudgetUsd: reader.integer("monthlyBudgetUsd", { min: 1, max: 10_000_000 }),
    manageAccountBaseline: reader.flag("manageAccountBaseline", false),
    retainDataKey: reader.flag("retainDataKey", true),
  });
}

/** Networks of either kind of address; whoever lets everybody in by one lets them in by both. */
function readNetworks(reader: ConfigReader, dualStack: boolean): readonly string[] {
  const key = "publicIngressCidrs";
  const networks = reader.texts(key, { default: ["0.0.0.0/0"], min: 1 });
  for (const network of networks) {
    if (!/^(\d{1,3}(\.\d{1,3}){3}|[0-9a-f:]*:[0-9a-f:]*)\/\d{1,3}$/i.test(network)) {
      reader.problem(key, `has ${JSON.stringify(network)}, which is no network`);
    } else if (network.includes(":") && !dualStack) {
      reader.problem(key, `has ${network}, but the network has no IPv6; set network:dualStack`);
    }
  }
  return dualStack && networks.includes("0.0.0.0/0") && !networks.includes("::/0")
    ? [...networks, "::/0"]
    : networks;
}
