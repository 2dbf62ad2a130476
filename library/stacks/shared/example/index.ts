/**
 * A component of one's own: what the sixteen do not have, made of the library's component resources.
 *
 * A table, a cache that containers reach, pages behind CloudFront, and a role that may use the first
 * two. `template.yaml` beside it makes it part of a deployment.
 */
import {
  ConfigReader,
  KeyValueTable,
  MemoryCache,
  ServiceRole,
  StaticSite,
  trustServicePlainly,
} from "@cloud/shared";

const reader = new ConfigReader("shop-data");
const context = reader.context();
const config = reader.finish({
  vpcId: reader.id("vpcId", "vpc-"),
  dataSubnetIds: reader.texts("dataSubnetIds", { min: 2 }),
  appSecurityGroupId: reader.id("appSecurityGroupId", "sg-"),
  dataKeyArn: reader.arn("dataKeyArn"),
  alarmTopicArn: reader.arn("alarmTopicArn"),
  cacheNodeType: reader.text("cacheNodeType", { default: "cache.m7g.large" }),
  cacheReplicas: reader.integer("cacheReplicas", { default: 1, min: 0, max: 5 }),
  deletionProtection: reader.flag("deletionProtection", true),
});

const orders = new KeyValueTable(context, "orders", {
  partitionKey: { name: "customer", type: "S" },
  sortKey: { name: "placed", type: "S" },
  kmsKeyArn: config.dataKeyArn,
  alarmTopicArn: config.alarmTopicArn,
  deletionProtection: config.deletionProtection,
});
const carts = new MemoryCache(context, "carts", {
  description: "Carts of the shop",
  vpcId: config.vpcId,
  subnetIds: config.dataSubnetIds,
  clients: [{ name: "app", id: config.appSecurityGroupId }],
  kmsKeyArn: config.dataKeyArn,
  alarmTopicArn: config.alarmTopicArn,
  nodeType: config.cacheNodeType,
  replicas: config.cacheReplicas,
});
const pages = new StaticSite(context, "pages", {
  description: "Pages of the shop",
  forceDestroy: !config.deletionProtection,
  fallbackPage: "/index.html",
});
const role = new ServiceRole(context, "shop-role", {
  description: "Uses the table and the cache",
  trust: trustServicePlainly("ecs-tasks.amazonaws.com"),
  statements: [...orders.access("write"), ...carts.access()],
});

export const tableName = orders.name;
export const cacheEndpoint = carts.endpoint;
export const pagesBucketName = pages.bucketName;
export const pagesDomainName = pages.domainName;
export const roleArn = role.arn;
