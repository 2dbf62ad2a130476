/** Storage of an environment. What each output is for is said in its template. */
import { createBuckets } from "./buckets";
import { readConfig } from "./config";
import { createDataLake } from "./data-lake";
import { createFileSystem } from "./file-system";

const config = readConfig();
const buckets = createBuckets(config);
const fileSystem = config.sharedFileSystem ? createFileSystem(config) : undefined;
const lake = config.dataLake ? createDataLake(config, buckets) : undefined;

export const dataBucketName = buckets.data.id;
export const dataBucketArn = buckets.data.arn;
export const artifactsBucketName = buckets.artifacts.id;
export const artifactsBucketArn = buckets.artifacts.arn;
export const logsBucketName = buckets.logs.id;
export const fileSystemId = fileSystem?.id ?? "";
export const lakeDatabaseName = lake?.database.name ?? "";
export const athenaWorkgroupName = lake?.workgroup.name ?? "";
