/** Logs and backups: kept long enough, and not for ever. */
import { about, isReplica, type Rule } from "./rule";

export const logRetention = about(
  ["aws:cloudwatch/logGroup:LogGroup"],
  { name: "log-retention", description: "Logs are kept for a set time" },
  ({ retentionInDays }) =>
    typeof retentionInDays === "number" && retentionInDays > 0
      ? []
      : ["set retentionInDays; without it logs are kept, and paid for, for ever"],
);

export const backups = about(
  ["aws:rds/instance:Instance", "aws:rds/cluster:Cluster"],
  { name: "backups", description: "Databases are backed up every day" },
  (props) =>
    Number(props.backupRetentionPeriod) > 0 || isReplica(props)
      ? []
      : ["backupRetentionPeriod must be at least 1"],
);

export const retentionRules: readonly Rule[] = [logRetention, backups];
