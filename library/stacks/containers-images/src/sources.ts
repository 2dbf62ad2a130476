/** Where sources are uploaded to: `<image>/<version>.zip`, each with a Dockerfile at its root. */
import { PrivateBucket } from "@cloud/shared";
import type { ImagesConfig } from "./config";

export function createSourceBucket({
  context,
  dataKeyArn,
  forceDestroy,
}: ImagesConfig): PrivateBucket {
  return new PrivateBucket(context, "sources", {
    kmsKeyArn: dataKeyArn,
    forceDestroy,
    expireAfterDays: 365,
  });
}
