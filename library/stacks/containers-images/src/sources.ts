/** Where sources are uploaded to: `<image>/<version>.zip`, each with a Dockerfile at its root. */
import { createPrivateBucket } from "@cloud/shared";
import type * as aws from "@pulumi/aws";
import type { ImagesConfig } from "./config";

export function createSourceBucket({
  context,
  dataKeyArn,
  forceDestroy,
}: ImagesConfig): aws.s3.Bucket {
  return createPrivateBucket(context, "sources", {
    kmsKeyArn: dataKeyArn,
    forceDestroy,
    expireAfterDays: 365,
  });
}
