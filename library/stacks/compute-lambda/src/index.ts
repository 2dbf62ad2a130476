/** Processing of an environment. What each output is for is said in its template. */
import { createBatch } from "./batch";
import { readConfig } from "./config";
import { createFunction } from "./function";
import { createArrivals, createQueues } from "./queue";

const config = readConfig();
const queues = createQueues(config);
const processor = createFunction(config, queues);
createArrivals(config, queues);
const batch = config.batch ? createBatch(config) : undefined;

export const functionName = processor.lambda.name;
export const functionArn = processor.live.arn;
export const queueUrl = queues.work.url;
export const queueArn = queues.work.arn;
export const queueName = queues.work.name;
export const deadLetterQueueArn = queues.failed.arn;
export const batchQueueArn = batch?.queue.arn ?? "";
export const batchJobDefinitionArn = batch?.definition.arn ?? "";
