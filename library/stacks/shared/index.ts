/** Everything that components share, in one place to import from. */
export * from "./alarms";
export * from "./bucket";
export * from "./cidr";
export * from "./config";
export * from "./context";
export * from "./kms";
export * from "./load-balancer";
export * from "./logs";
export * from "./policies";
export * from "./state";
export * from "./types";
export * from "./utils";
