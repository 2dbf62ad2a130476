/** The public load balancer. Applications attach rules to it; what no rule takes is not found. */
import { createLoadBalancer, type LoadBalancer } from "@cloud/shared";
import type { ClusterConfig } from "./config";

export function createIngress({ context, loadBalancer }: ClusterConfig): LoadBalancer {
  return createLoadBalancer(context, loadBalancer, [
    {
      type: "fixed-response",
      fixedResponse: { contentType: "text/plain", messageBody: "not found", statusCode: "404" },
    },
  ]);
}
