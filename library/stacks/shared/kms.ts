/** Customer keys: rotated every year, used only from this account. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import { CloudComponent } from "./component";
import type { StackContext } from "./context";
import { accountId, policyDocument, regionName, type Statement } from "./policies";

export interface KeyArgs {
  readonly description: string;
  /** AWS services that encrypt with the key on their own, such as `logs`. */
  readonly services?: readonly string[];
  /** Services through which anything in the account may use the key, such as `ec2`. */
  readonly viaServices?: readonly string[];
}

const USE = [
  "kms:Encrypt",
  "kms:Decrypt",
  "kms:ReEncrypt*",
  "kms:GenerateDataKey*",
  "kms:DescribeKey",
];

/** A key with an alias. Deleting it waits 30 days in production and 7 elsewhere. */
export class CustomerKey extends CloudComponent {
  readonly arn: pulumi.Output<string>;

  constructor(
    ctx: StackContext,
    name: string,
    args: KeyArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("CustomerKey", ctx, name, options);
    const key = new aws.kms.Key(
      ctx.logical(name),
      {
        description: args.description,
        enableKeyRotation: true,
        deletionWindowInDays: ctx.isProduction ? 30 : 7,
        policy: policyDocument(keyStatements(args)),
        tags: ctx.tags(name),
      },
      this.part(),
    );
    new aws.kms.Alias(
      ctx.logical(name, "alias"),
      { name: `alias/${ctx.physical(200, name)}`, targetKeyId: key.keyId },
      // A key that stays gives its name back, so that the deployment can be made again.
      this.part({ aliases: [{ parent: key }], retainOnDelete: false }),
    );
    this.arn = key.arn;
    this.registerOutputs({ arn: this.arn });
  }
}

function keyStatements(args: KeyArgs): Statement[] {
  const account = accountId();
  const region = regionName();
  const statements: Statement[] = [
    {
      Sid: "AccountDecidesWithIam",
      Effect: "Allow",
      Action: "kms:*",
      Resource: "*",
      Principal: { AWS: arnOfRoot(account) },
    },
  ];
  for (const service of args.services ?? []) {
    const regional = service === "logs";
    statements.push({
      Sid: `Service${service.replace(/[^a-z]/g, "")}`,
      Effect: "Allow",
      Action: USE,
      Resource: "*",
      Principal: {
        Service: regional
          ? region.apply((name) => `logs.${name}.amazonaws.com`)
          : `${service}.amazonaws.com`,
      },
      Condition: regional
        ? {
            ArnLike: {
              "kms:EncryptionContext:aws:logs:arn": region.apply((name) =>
                account.apply((id) => `arn:aws*:logs:${name}:${id}:*`),
              ),
            },
          }
        : // Not every service says for whom it encrypts; refusing those would silence alarms.
          { StringEqualsIfExists: { "aws:SourceAccount": account } },
    });
  }
  for (const service of args.viaServices ?? []) {
    statements.push({
      Sid: `Via${service}`,
      Effect: "Allow",
      Action: [...USE, "kms:CreateGrant"],
      Resource: "*",
      Principal: { AWS: "*" },
      Condition: {
        StringEquals: {
          "kms:CallerAccount": account,
          "kms:ViaService": region.apply((name) => `${service}.${name}.amazonaws.com`),
        },
      },
    });
  }
  return statements;
}

function arnOfRoot(account: pulumi.Output<string>): pulumi.Output<string> {
  const partition = aws.getPartitionOutput().partition;
  return partition.apply((name) => account.apply((id) => `arn:${name}:iam::${id}:root`));
}
