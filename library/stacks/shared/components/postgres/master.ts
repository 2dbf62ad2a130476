/**
 * A master secret of our own, for instances with replicas: RDS makes no replica of a PostgreSQL whose
 * master password it keeps itself.
 *
 * RDS must be told a password to begin with, so there is one in the state, encrypted. The function
 * that manages credentials writes it to the secret and renews it at once: what the state holds is
 * worthless minutes later.
 */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { StackContext } from "../../context";

export interface OwnMaster {
  readonly secretArn: pulumi.Output<string>;
  readonly userName: pulumi.Input<string>;
  readonly firstPassword: pulumi.Output<string>;
}

export interface MasterArgs {
  readonly masterUsername: string;
  readonly secretsKeyArn: pulumi.Input<string>;
}

export function createMaster(
  context: StackContext,
  args: MasterArgs,
  options: pulumi.CustomResourceOptions,
): OwnMaster {
  const first = new random.RandomPassword(
    context.logical("master-first-password"),
    { length: 40, special: false },
    options,
  );
  return {
    secretArn: createLoginSecret(context, "master", "Master user of the database", args, options)
      .arn,
    userName: args.masterUsername,
    firstPassword: first.result,
  };
}

/** A secret without a value, for a login that the function manages. */
export function createLoginSecret(
  context: StackContext,
  name: string,
  description: string,
  args: { readonly secretsKeyArn: pulumi.Input<string> },
  options: pulumi.CustomResourceOptions,
): aws.secretsmanager.Secret {
  return new aws.secretsmanager.Secret(
    context.logical(name),
    {
      // A deleted one keeps its name for days; the next must not wait for it.
      namePrefix: `${context.path(name)}-`,
      description,
      kmsKeyId: args.secretsKeyArn,
      recoveryWindowInDays: context.isProduction ? 30 : 0,
      tags: context.tags(name),
    },
    options,
  );
}
