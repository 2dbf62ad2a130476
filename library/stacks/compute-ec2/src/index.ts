/** Instances of an environment. What each output is for is said in its template. */
import { createGroup } from "./auto-scaling";
import { readConfig } from "./config";
import { createLaunchTemplate } from "./launch-template";
import { createIngress } from "./load-balancer";

const config = readConfig();
const ingress = createIngress(config);
const template = createLaunchTemplate(config);
const group = createGroup(config, template, ingress.targets);

export const autoScalingGroupName = group.name;
export const launchTemplateId = template.id;
export const loadBalancerArn = ingress.loadBalancer.arn;
export const loadBalancerArnSuffix = ingress.loadBalancer.arnSuffix;
export const loadBalancerDnsName = ingress.loadBalancer.dnsName;
export const targetGroupArn = ingress.targets.arn;
export const serviceUrl = `https://${ingress.loadBalancer.hostName}`;
