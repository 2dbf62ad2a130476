/** Settings of PostgreSQL: TLS only, and slow statements in the log. */
import * as aws from "@pulumi/aws";
import type { DatabaseConfig } from "./config";

export function createParameterGroup({
  context,
  engineVersion,
}: DatabaseConfig): aws.rds.ParameterGroup {
  const [major = ""] = engineVersion.split(".");
  return new aws.rds.ParameterGroup(
    context.logical("parameters"),
    {
      // Another major version needs another group, while the old one is still in use.
      namePrefix: `${context.physical(200, "postgres", major)}-`,
      family: `postgres${major}`,
      description: "Settings of the database",
      parameters: [
        { name: "rds.force_ssl", value: "1" },
        { name: "log_connections", value: "1" },
        { name: "log_disconnections", value: "1" },
        { name: "log_min_duration_statement", value: "1000" },
        {
          name: "shared_preload_libraries",
          value: "pg_stat_statements",
          applyMethod: "pending-reboot",
        },
      ],
      tags: context.tags("parameters"),
    },
    { deleteBeforeReplace: false },
  );
}
