/** A build project for each image. A build is started with a version and pushes exactly that tag. */
import { createLogGroup, type PrivateBucket } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { createBuildRole } from "./build-role";
import type { Image, ImagesConfig } from "./config";

const BUILD_IMAGE = "aws/codebuild/amazonlinux-x86_64-standard:5.0";

const BUILD_STEPS = `version: 0.2
phases:
  pre_build:
    commands:
      - aws ecr get-login-password | docker login --username AWS --password-stdin "\${REPOSITORY_URL%%/*}"
  build:
    commands:
      - docker build --pull --tag "$REPOSITORY_URL:$IMAGE_VERSION" .
  post_build:
    commands:
      - test "$CODEBUILD_BUILD_SUCCEEDING" = 1
      - docker push "$REPOSITORY_URL:$IMAGE_VERSION"
`;

export function createBuild(
  config: ImagesConfig,
  { name, version }: Image,
  sources: PrivateBucket,
): aws.codebuild.Project {
  const { context } = config;
  const logGroup = createLogGroup(context, `${name}-logs`, {
    kmsKeyArn: config.logsKeyArn,
    retentionDays: config.logRetentionDays,
  });
  const role = createBuildRole(config, name, {
    repositoryArn: config.repositoryArns[name] ?? "",
    sources,
    logGroup,
  });
  return new aws.codebuild.Project(context.logical(name), {
    name: context.physical(150, name),
    description: `Builds the image ${name}`,
    serviceRole: role.arn,
    encryptionKey: config.dataKeyArn,
    buildTimeout: config.buildTimeoutMinutes,
    source: {
      type: "S3",
      location: pulumi.interpolate`${sources.id}/${name}/${version}.zip`,
      buildspec: BUILD_STEPS,
    },
    artifacts: { type: "NO_ARTIFACTS" },
    environment: {
      type: "LINUX_CONTAINER",
      computeType: config.buildSize,
      image: BUILD_IMAGE,
      // Docker inside the build machine needs it; the machine lives as long as the build.
      privilegedMode: true,
      environmentVariables: [
        { name: "REPOSITORY_URL", value: config.repositoryUrls[name] ?? "" },
        { name: "IMAGE_VERSION", value: version },
      ],
    },
    logsConfig: { cloudwatchLogs: { status: "ENABLED", groupName: logGroup.name } },
    tags: context.tags(name),
  });
}
