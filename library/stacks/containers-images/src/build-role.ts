/** What a build may do: read its sources, push its own image, write its log. */
import { type PrivateBucket, ServiceRole, trustService } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { ImagesConfig } from "./config";

export function createBuildRole(
  { context, dataKeyArn }: ImagesConfig,
  image: string,
  grants: {
    readonly repositoryArn: string;
    readonly sources: PrivateBucket;
    readonly logGroup: aws.cloudwatch.LogGroup;
  },
): ServiceRole {
  return new ServiceRole(context, `${image}-role`, {
    description: `Builds the image ${image}`,
    trust: trustService("codebuild.amazonaws.com"),
    statements: [
      {
        Effect: "Allow",
        Action: ["s3:GetObject", "s3:GetObjectVersion"],
        Resource: pulumi.interpolate`${grants.sources.arn}/${image}/*`,
      },
      {
        Effect: "Allow",
        Action: ["s3:ListBucket", "s3:GetBucketLocation"],
        Resource: grants.sources.arn,
      },
      // Signing in to a registry cannot be limited to a repository; pushing is, below.
      { Effect: "Allow", Action: "ecr:GetAuthorizationToken", Resource: "*" },
      {
        Effect: "Allow",
        Action: [
          "ecr:BatchCheckLayerAvailability",
          "ecr:BatchGetImage",
          "ecr:CompleteLayerUpload",
          "ecr:GetDownloadUrlForLayer",
          "ecr:InitiateLayerUpload",
          "ecr:PutImage",
          "ecr:UploadLayerPart",
        ],
        Resource: grants.repositoryArn,
      },
      {
        Effect: "Allow",
        Action: ["logs:CreateLogStream", "logs:PutLogEvents"],
        Resource: pulumi.interpolate`${grants.logGroup.arn}:*`,
      },
      { Effect: "Allow", Action: ["kms:Decrypt", "kms:GenerateDataKey"], Resource: dataKeyArn },
    ],
  });
}
