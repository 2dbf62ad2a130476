/** How something that runs finds the database of its deployment, where there is one. */
import type { ConfigReader } from "./config";
import type { Statement } from "./policies";

export interface DatabaseLink {
  readonly endpoint: string;
  readonly port: number;
  readonly name: string;
  /** Engine, host, port, database, user and password. */
  readonly secretArn: string;
}

/** The link, or nothing in deployments without a database: then all of its keys are empty. */
export function readDatabaseLink(reader: ConfigReader): DatabaseLink | undefined {
  const endpoint = reader.text("databaseEndpoint", { default: "" });
  const port = reader.integer("databasePort", { default: 0, min: 0, max: 65535 });
  const name = reader.text("databaseName", { default: "" });
  const secretArn = reader.text("databaseSecretArn", {
    default: "",
    pattern: /^$|^arn:/,
    example: "an ARN, or nothing",
  });
  return endpoint === "" ? undefined : { endpoint, port, name, secretArn };
}

/** Settings that tell a program where its database is; the password is not among them. */
export function databaseSettings(link: DatabaseLink): Record<string, string> {
  return {
    DATABASE_HOST: link.endpoint,
    DATABASE_PORT: String(link.port),
    DATABASE_NAME: link.name,
    // To be read at run time, and again when a login is refused: passwords are renewed.
    DATABASE_SECRET_ARN: link.secretArn,
  };
}

/** Lets a role read exactly these secrets, which are under these keys. */
export function readSecrets(
  secretArns: readonly string[],
  ...keyArns: readonly string[]
): Statement[] {
  if (secretArns.length === 0) {
    return [];
  }
  return [
    {
      Sid: "OwnSecrets",
      Effect: "Allow",
      Action: ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"],
      Resource: [...secretArns],
    },
    {
      Sid: "OwnSecretsKey",
      Effect: "Allow",
      Action: "kms:Decrypt",
      Resource: [...keyArns],
      Condition: { StringLike: { "kms:ViaService": "secretsmanager.*.amazonaws.com" } },
    },
  ];
}
