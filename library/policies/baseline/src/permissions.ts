/** Permissions: what a role may do, who may take it, and who may use what we have. */
import { isEverything, isWholeService, limits, statementsOf, unreadable } from "./policy-document";
import { about, objects, type Rule, text, texts } from "./rule";

/** Actions with which one can give oneself all others, when they may be used on everything. */
const ESCALATION = [
  "iam:passrole",
  "iam:createpolicyversion",
  "iam:setdefaultpolicyversion",
  "iam:putrolepolicy",
  "iam:putuserpolicy",
  "iam:attachrolepolicy",
  "iam:attachuserpolicy",
  "iam:updateassumerolepolicy",
  "iam:putgrouppolicy",
  "iam:attachgrouppolicy",
  "iam:addusertogroup",
  "iam:createloginprofile",
  "iam:updateloginprofile",
  "iam:deleterolepermissionsboundary",
  "iam:deleteuserpermissionsboundary",
  "iam:createaccesskey",
  "sts:assumerole",
];

export const leastPrivilege = about(
  [
    "aws:iam/policy:Policy",
    "aws:iam/rolePolicy:RolePolicy",
    "aws:iam/userPolicy:UserPolicy",
    "aws:iam/groupPolicy:GroupPolicy",
    "aws:iam/role:Role",
    "aws:ssoadmin/permissionSetInlinePolicy:PermissionSetInlinePolicy",
  ],
  {
    name: "least-privilege",
    description: "No policy allows a whole service, or a way to all rights, on everything",
  },
  (props) => {
    const documents = [
      props.policy,
      props.inlinePolicy,
      ...objects(props.inlinePolicies).map((inline) => inline.policy),
    ];
    return [...new Set([...documents.flatMap(unreadable), ...documents.flatMap(tooMuch)])];
  },
);

function tooMuch(policy: unknown): string[] {
  return statementsOf(policy).flatMap((statement) => {
    if (!statement.allows) {
      return [];
    }
    if (statement.notActions) {
      return ["NotAction allows whatever AWS invents next; name the actions that are needed"];
    }
    const everything = statement.notResources || statement.resources.some(isEverything);
    if (!everything) {
      return [];
    }
    const wide = statement.actions.filter(isWholeService);
    const dangerous = statement.actions.filter((action) =>
      ESCALATION.some((known) => matches(action, known)),
    );
    return wide.length > 0 || dangerous.length > 0
      ? [
          `name the actions and the resources that are needed instead of ${[...new Set([...wide, ...dangerous])].join(", ")} on everything`,
        ]
      : [];
  });
}

function matches(pattern: string, action: string): boolean {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("*", ".*").replaceAll("?", ".")}$`).test(action);
}

/** Policies of AWS that allow everything, or everything that matters. */
const ADMINISTRATORS =
  /:policy\/(job-function\/)?(AdministratorAccess|PowerUserAccess|IAMFullAccess|SystemAdministrator)/;

export const noAdministrators = about(
  [
    "aws:iam/role:Role",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment",
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
    "aws:iam/policyAttachment:PolicyAttachment",
  ],
  { name: "no-administrators", description: "Nothing that runs is an administrator" },
  (props) =>
    [text(props.policyArn), ...texts(props.managedPolicyArns), ...texts(props.policyArns)]
      .filter((arn) => ADMINISTRATORS.test(arn))
      .map((arn) => `${arn} allows nearly everything; write a policy for what is needed`),
);

export const trustedTakers = about(
  ["aws:iam/role:Role"],
  { name: "trusted-takers", description: "Roles can be taken by named principals only" },
  ({ assumeRolePolicy }) => [
    ...unreadable(assumeRolePolicy),
    ...(statementsOf(assumeRolePolicy).some(
      (statement) =>
        statement.allows &&
        (statement.notPrincipal || statement.principals.includes("*")) &&
        !limits(statement.condition),
    )
      ? ["everybody may take this role; name services, accounts or roles"]
      : []),
  ],
);

/** Types with a policy of their own, and what the property is called. */
const RESOURCE_POLICIES: Record<string, string> = {
  "aws:s3/bucketPolicy:BucketPolicy": "policy",
  "aws:sns/topicPolicy:TopicPolicy": "policy",
  "aws:sns/topic:Topic": "policy",
  "aws:sqs/queuePolicy:QueuePolicy": "policy",
  "aws:sqs/queue:Queue": "policy",
  "aws:secretsmanager/secretPolicy:SecretPolicy": "policy",
  "aws:secretsmanager/secret:Secret": "policy",
  "aws:ecr/repositoryPolicy:RepositoryPolicy": "policy",
  "aws:kms/key:Key": "policy",
  "aws:efs/fileSystemPolicy:FileSystemPolicy": "policy",
  "aws:backup/vaultPolicy:VaultPolicy": "policy",
  "aws:dynamodb/resourcePolicy:ResourcePolicy": "policy",
};

export const closedPolicies = about(
  [...Object.keys(RESOURCE_POLICIES), "aws:lambda/permission:Permission"],
  { name: "closed-policies", description: "Nothing is open to everybody by its own policy" },
  (props, { type }) => {
    const help = "name principals, or add a condition that says who may come";
    if (type === "aws:lambda/permission:Permission") {
      const limited = [props.sourceArn, props.sourceAccount, props.principalOrgId].some(
        (value) => value !== undefined && value !== "*",
      );
      return props.principal === "*" && !limited
        ? [`everybody may call this function; ${help}`]
        : [];
    }
    const open = statementsOf(props[RESOURCE_POLICIES[type] ?? ""]).some(
      (statement) =>
        statement.allows &&
        (statement.notPrincipal || statement.principals.includes("*")) &&
        !limits(statement.condition),
    );
    return [
      ...unreadable(props[RESOURCE_POLICIES[type] ?? ""]),
      ...(open ? [`the policy lets everybody in; ${help}`] : []),
    ];
  },
);

export const askedCallers = about(
  [
    "aws:apigatewayv2/route:Route",
    "aws:apigateway/method:Method",
    "aws:lambda/functionUrl:FunctionUrl",
  ],
  { name: "asked-callers", description: "Everything on the internet asks who calls" },
  (props, { type }) => {
    const property = type.startsWith("aws:apigateway/") ? "authorization" : "authorizationType";
    const how = text(props[property]).toUpperCase();
    return how === "" || how === "NONE"
      ? [`${property} must not be NONE; ask for a token or a signature`]
      : [];
  },
);

export const permissionRules: readonly Rule[] = [
  leastPrivilege,
  noAdministrators,
  trustedTakers,
  closedPolicies,
  askedCallers,
];
