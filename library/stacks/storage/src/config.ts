/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, type StackContext } from "@cloud/shared";

export const STACK = "storage";

export interface StorageConfig {
  readonly context: StackContext;
  readonly privateSubnetIds: readonly string[];
  readonly fileSystemSecurityGroupId: string;
  readonly dataKeyArn: string;
  readonly forceDestroy: boolean;
  readonly archiveAfterDays: number;
  readonly sharedFileSystem: boolean;
  readonly backups: boolean;
  readonly dataLake: boolean;
  readonly logExpiryDays: number;
}

export function readConfig(): StorageConfig {
  const reader = new ConfigReader(STACK);
  return reader.finish({
    context: reader.context(),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 1 }),
    fileSystemSecurityGroupId: reader.id("fileSystemSecurityGroupId", "sg-"),
    dataKeyArn: reader.arn("dataKeyArn"),
    forceDestroy: reader.flag("forceDestroy", false),
    archiveAfterDays: reader.integer("archiveAfterDays", { default: 90, min: 30, max: 3650 }),
    sharedFileSystem: reader.flag("sharedFileSystem", false),
    backups: reader.flag("backups", true),
    dataLake: reader.flag("dataLake", false),
    logExpiryDays: reader.integer("logExpiryDays", { default: 365, min: 1, max: 3650 }),
  });
}
