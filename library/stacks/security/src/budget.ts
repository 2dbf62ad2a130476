/**
 * What the environment may cost in a month, by the deployment's tag. It is here, beside the topic,
 * because every deployment has this component and every deployment costs money.
 */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { SecurityConfig } from "./config";

export function createBudget(
  { context, monthlyBudgetUsd }: SecurityConfig,
  topicArn: pulumi.Output<string>,
): aws.budgets.Budget {
  const notification = (
    type: "ACTUAL" | "FORECASTED",
    threshold: number,
  ): aws.types.input.budgets.BudgetNotification => ({
    notificationType: type,
    comparisonOperator: "GREATER_THAN",
    threshold,
    thresholdType: "PERCENTAGE",
    subscriberSnsTopicArns: [topicArn],
  });
  return new aws.budgets.Budget(context.logical("budget"), {
    name: context.physical(100, "budget"),
    budgetType: "COST",
    timeUnit: "MONTHLY",
    limitAmount: String(monthlyBudgetUsd),
    limitUnit: "USD",
    costFilters: [
      {
        name: "TagKeyValue",
        // Values of a filter add up, so this is one tag only; environments have their own accounts.
        values: [`user:DeploymentId$${context.identity.deploymentId}`],
      },
    ],
    notifications: [notification("ACTUAL", 80), notification("FORECASTED", 100)],
    tags: context.tags("budget"),
  });
}
