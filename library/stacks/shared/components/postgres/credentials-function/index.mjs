/** The function that AWS calls: Secrets Manager and the database, as the environment names them. */
import {
  DescribeSecretCommand,
  GetRandomPasswordCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  SecretsManagerClient,
  UpdateSecretVersionStageCommand,
} from "@aws-sdk/client-secrets-manager";
import { createHandler } from "./credentials.mjs";
import { connect } from "./postgres.mjs";

const client = new SecretsManagerClient();
const { SECRET_ARN, MASTER_SECRET_ARN, DATABASE_HOST, DATABASE_PORT, DATABASE_NAME, USER_NAME } =
  process.env;
const userSecrets = JSON.parse(process.env.USER_SECRET_ARNS ?? "{}");
const ARNS = { application: SECRET_ARN, master: MASTER_SECRET_ARN, ...userSecrets };

const versions = async (secret) => {
  const { VersionIdsToStages } = await client.send(
    new DescribeSecretCommand({ SecretId: ARNS[secret] }),
  );
  return VersionIdsToStages ?? {};
};

const vault = {
  nameOf(secretId) {
    const [name] = Object.entries(ARNS).find(([, arn]) => arn === secretId) ?? [];
    if (name === undefined) {
      throw new Error("this function rotates other secrets");
    }
    return name;
  },
  async read(secret, VersionStage, VersionId) {
    try {
      const value = await client.send(
        new GetSecretValueCommand({ SecretId: ARNS[secret], VersionStage, VersionId }),
      );
      return JSON.parse(value.SecretString);
    } catch (error) {
      if (error.name === "ResourceNotFoundException") {
        return undefined;
      }
      throw error;
    }
  },
  async randomPassword() {
    // Letters and digits only: every way to write a connection down accepts them.
    const answer = await client.send(
      new GetRandomPasswordCommand({ PasswordLength: 40, ExcludePunctuation: true }),
    );
    return answer.RandomPassword;
  },
  write: (secret, value, token) =>
    client.send(
      new PutSecretValueCommand({
        SecretId: ARNS[secret],
        SecretString: JSON.stringify(value),
        ...(token && { ClientRequestToken: token, VersionStages: ["AWSPENDING"] }),
      }),
    ),
  stages: async (secret, token) => (await versions(secret))[token] ?? [],
  async finish(secret, token) {
    const known = Object.entries(await versions(secret));
    const [old] = known.find(([, on]) => on.includes("AWSCURRENT")) ?? [];
    await client.send(
      new UpdateSecretVersionStageCommand({
        SecretId: ARNS[secret],
        VersionStage: "AWSCURRENT",
        MoveToVersionId: token,
        RemoveFromVersionId: old,
      }),
    );
  },
};

export const handler = createHandler({
  vault,
  connect,
  settings: {
    host: DATABASE_HOST,
    port: Number(DATABASE_PORT),
    database: DATABASE_NAME,
    user: USER_NAME,
    proxied: Object.keys(userSecrets).length > 0,
  },
});
