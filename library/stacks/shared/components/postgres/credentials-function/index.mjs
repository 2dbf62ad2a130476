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

async function read(SecretId, VersionStage, VersionId) {
  try {
    const value = await client.send(
      new GetSecretValueCommand({ SecretId, VersionStage, VersionId }),
    );
    return JSON.parse(value.SecretString);
  } catch (error) {
    if (error.name === "ResourceNotFoundException") {
      return undefined;
    }
    throw error;
  }
}

const secrets = {
  read: (stage, token) => read(SECRET_ARN, stage, token),
  master: () => read(MASTER_SECRET_ARN),
  async randomPassword() {
    // Letters and digits only: every way to write a connection down accepts them.
    const answer = await client.send(
      new GetRandomPasswordCommand({ PasswordLength: 40, ExcludePunctuation: true }),
    );
    return answer.RandomPassword;
  },
  write: (value, token) =>
    client.send(
      new PutSecretValueCommand({
        SecretId: SECRET_ARN,
        SecretString: JSON.stringify(value),
        ...(token && { ClientRequestToken: token, VersionStages: ["AWSPENDING"] }),
      }),
    ),
  async stages(secretId, token) {
    if (secretId !== SECRET_ARN) {
      throw new Error("this function rotates another secret");
    }
    const { VersionIdsToStages: versions = {} } = await client.send(
      new DescribeSecretCommand({ SecretId: SECRET_ARN }),
    );
    return versions[token] ?? [];
  },
  async finish(token) {
    const { VersionIdsToStages: versions = {} } = await client.send(
      new DescribeSecretCommand({ SecretId: SECRET_ARN }),
    );
    const [old] = Object.entries(versions).find(([, on]) => on.includes("AWSCURRENT")) ?? [];
    await client.send(
      new UpdateSecretVersionStageCommand({
        SecretId: SECRET_ARN,
        VersionStage: "AWSCURRENT",
        MoveToVersionId: token,
        RemoveFromVersionId: old,
      }),
    );
  },
};

export const handler = createHandler({
  secrets,
  connect,
  settings: {
    host: DATABASE_HOST,
    port: Number(DATABASE_PORT),
    database: DATABASE_NAME,
    user: USER_NAME,
  },
});
