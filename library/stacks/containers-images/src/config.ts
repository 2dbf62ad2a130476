/** Configuration of the component, read and checked in this one place. */
import {
  type Check,
  ConfigReader,
  isRecord,
  readRetention,
  type StackContext,
} from "@cloud/shared";

export const STACK = "containers-images";

export interface Image {
  readonly name: string;
  readonly version: string;
}

export type BuildSize = "BUILD_GENERAL1_SMALL" | "BUILD_GENERAL1_MEDIUM" | "BUILD_GENERAL1_LARGE";

export interface ImagesConfig {
  readonly context: StackContext;
  readonly repositoryUrls: Readonly<Record<string, string>>;
  readonly repositoryArns: Readonly<Record<string, string>>;
  readonly dataKeyArn: string;
  readonly logsKeyArn: string;
  readonly images: readonly Image[];
  readonly buildSize: BuildSize;
  readonly buildTimeoutMinutes: number;
  readonly forceDestroy: boolean;
  readonly logRetentionDays: number;
}

/** A version says which source it is; a word such as `latest` does not. */
const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/;

const isImage: Check<Image> = (value): value is Image =>
  isRecord(value) &&
  typeof value.name === "string" &&
  value.name !== "" &&
  typeof value.version === "string" &&
  VERSION.test(value.version);

export function readConfig(): ImagesConfig {
  const reader = new ConfigReader(STACK);
  const repositoryUrls = reader.textMap("repositoryUrls");
  const images = reader.list("images", isImage, {
    min: 1,
    of: "images with a name and a version such as 1.0.0",
  });
  for (const { name } of images) {
    if (Object.keys(repositoryUrls).length > 0 && !(name in repositoryUrls)) {
      reader.problem("images", `has ${name}, for which there is no repository in services-ecr`);
    }
  }
  return reader.finish({
    context: reader.context(),
    repositoryUrls,
    repositoryArns: reader.textMap("repositoryArns"),
    dataKeyArn: reader.arn("dataKeyArn"),
    logsKeyArn: reader.arn("logsKeyArn"),
    images,
    buildSize: reader.choice<BuildSize>(
      "buildSize",
      ["BUILD_GENERAL1_SMALL", "BUILD_GENERAL1_MEDIUM", "BUILD_GENERAL1_LARGE"],
      "BUILD_GENERAL1_MEDIUM",
    ),
    buildTimeoutMinutes: reader.integer("buildTimeoutMinutes", { default: 30, min: 5, max: 480 }),
    forceDestroy: reader.flag("forceDestroy", false),
    logRetentionDays: readRetention(reader),
  });
}
