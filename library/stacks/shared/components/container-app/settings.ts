/** What an application in containers is: its image, what it is told, how it is reached and grows. */
import type * as pulumi from "@pulumi/pulumi";
import type { DatabaseLink } from "../../database-link";
import type { Exposure } from "../../load-balancer";

export interface AppSettings {
  readonly name: string;
  /** With a version or a digest. */
  readonly image: string;
  readonly command: readonly string[];
  readonly port: number;
  /** How requests come in; a worker has none and is not behind a load balancer. */
  readonly route: RouteSettings | undefined;
  /** Settings that anybody may see. */
  readonly env: Readonly<Record<string, string>>;
  /** Handed over when a task starts, by variable: the ARN of a secret, or of a member of one. */
  readonly secrets: Readonly<Record<string, SecretSource>>;
  /** Keys of secrets that are not under the deployment's own. */
  readonly secretKeys: readonly string[];
  readonly database: DatabaseLink | undefined;
  /** What it may do in the account besides: buckets, tables, queues, anything. */
  readonly permissions: readonly Permission[];
  readonly cpu: number;
  readonly memoryMb: number;
  /** What `/tmp` of each container may hold, as memory of the task; 0 leaves it on the disk. */
  readonly tmpMb: number;
  readonly scaling: ScalingSettings;
  readonly sidecars: readonly Sidecar[];
  readonly mounts: readonly Mount[];
  /** Its directory on the shared file system. */
  readonly filesDirectory: string;
  /** Privileges of Linux that it keeps; all are taken away otherwise. */
  readonly keepCapabilities: readonly Capability[];
  /** Whether people may open a session in a running container. */
  readonly sessions: boolean;
  readonly readOnlyRoot: boolean;
}

export interface RouteSettings {
  readonly exposure: Exposure;
  readonly path: string;
  readonly healthPath: string;
  /** Smaller is tried first. */
  readonly priority: number;
}

export interface Permission {
  readonly actions: readonly string[];
  /** ARNs. */
  readonly resources: readonly string[];
}

export interface SecretSource {
  readonly arn: string;
  /** A member of a secret that is JSON; the whole when empty. */
  readonly member: string;
}

export interface ScalingSettings {
  readonly minTasks: number;
  readonly maxTasks: number;
  /** Average load of the processor to keep, in percent; does not count where a queue does. */
  readonly cpuPercent: number;
  /** Requests of a minute that one task gets; without it, requests do not count. */
  readonly requestsPerTask: number | undefined;
  /** Work in a queue that one task gets. */
  readonly queue: { readonly name: string; readonly messagesPerTask: number } | undefined;
}

export interface Sidecar {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Whether the task ends with it. */
  readonly essential: boolean;
  readonly keepCapabilities: readonly Capability[];
}

/** What a container may do unless it is taken away; Fargate gives nothing besides. */
export const CAPABILITIES = [
  "AUDIT_WRITE",
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "KILL",
  "MKNOD",
  "NET_BIND_SERVICE",
  "NET_RAW",
  "SETFCAP",
  "SETGID",
  "SETPCAP",
  "SETUID",
  "SYS_CHROOT",
] as const;

export type Capability = (typeof CAPABILITIES)[number];

/** A directory of the shared file system, the application's own, that outlives its tasks. */
export interface Mount {
  readonly path: string;
  readonly readOnly: boolean;
}

/** Where an application runs. */
export interface AppSurroundings {
  readonly vpcId: string;
  readonly subnetIds: readonly string[];
  readonly securityGroupId: string;
  readonly clusterName: string;
  readonly clusterArn: string;
  /** How many of a hundred tasks may run on capacity that AWS takes back when it needs it. */
  readonly spotPercent: number;
  readonly namespaceArn: string;
  readonly doors: Readonly<Record<Exposure, Door>>;
  readonly fileSystemId: string;
  readonly sessionLogGroupArn: string;
  readonly dataKeyArn: string;
  readonly secretsKeyArn: string;
  readonly logsKeyArn: string;
  readonly alarmTopicArn: pulumi.Input<string>;
  readonly logRetentionDays: number;
}

/** A load balancer that applications attach to. */
export interface Door {
  readonly listenerArn: string;
  readonly loadBalancerArnSuffix: string;
}
