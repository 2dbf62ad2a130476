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
  /** What exactly was built, `sha256:…`; images that are built elsewhere have one. */
  readonly digest?: string;
}

export type BuildSize = "BUILD_GENERAL1_SMALL" | "BUILD_GENERAL1_MEDIUM" | "BUILD_GENERAL1_LARGE";

export interface ImagesConfig {
  readonly context: StackContext;
  readonly repositoryUrls: Readonly<Record<string, string>>;
  readonly repositoryArns: Readonly<Record<string, string>>;
  readonly dataKeyArn: string;
  readonly logsKeyArn: string;
  readonly images: readonly Image[];
  /** Where images are that were built in another environment; empty to build here. */
  readonly sharedRegistry: string;
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
  VERSION.test(value.version) &&
  (value.digest === undefined ||
    (typeof value.digest === "string" && /^sha256:[0-9a-f]{64}$/.test(value.digest)));

export function readConfig(): ImagesConfig {
  const reader = new ConfigReader(STACK);
  const repositoryUrls = reader.textMap("repositoryUrls");
  const images = reader.list("images", isImage, {
    min: 1,
    of: "images with a name and a version such as 1.0.0",
  });
  const sharedRegistry = reader.text("sharedRegistry", {
    default: "",
    pattern: /^$|^\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?\/[a-z0-9/_-]+$/,
    example: "111111111111.dkr.ecr.us-east-1.amazonaws.com/d1brv40/dev, or nothing",
  });
  for (const { name, digest } of images) {
    if (sharedRegistry !== "") {
      if (digest === undefined) {
        reader.problem("images", `has ${name} without the digest of what was built and tried`);
      }
    } else if (Object.keys(repositoryUrls).length > 0 && !(name in repositoryUrls)) {
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
    sharedRegistry,
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
