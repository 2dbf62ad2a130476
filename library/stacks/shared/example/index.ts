/** A program of one's own that uses the library's components: a bucket, a table, and who reads it. */
import {
  KeyValueTable,
  PrivateBucket,
  ServiceRole,
  StackContext,
  trustServicePlainly,
} from "@cloud/shared";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
const context = new StackContext("reports", {
  deploymentId: "D1ABC",
  organization: "Example",
  project: "shop",
  environment: "dev",
  domain: "example.com",
  team: "reports",
  costCenter: "sales",
});

const archive = new PrivateBucket(context, "archive", {
  kmsKeyArn: config.require("dataKeyArn"),
  forceDestroy: true,
});
const index = new KeyValueTable(context, "index", {
  partitionKey: { name: "month", type: "S" },
  kmsKeyArn: config.require("dataKeyArn"),
  alarmTopicArn: config.require("alarmTopicArn"),
});
const reader = new ServiceRole(context, "reader", {
  description: "Reads reports",
  trust: trustServicePlainly("lambda.amazonaws.com"),
  statements: index.access("read"),
});

export const bucketName = archive.id;
export const readerArn = reader.arn;
