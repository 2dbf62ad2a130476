/** Permissions: what a role may do, who may take it, and who may use what we have. */
import { limits, limitsUse, namesSubject } from "./conditions";
import {
  isEverything,
  isWholeService,
  parse,
  type PolicyStatement,
  statementsOf,
  unreadable,
} from "./policy-document";
import { about, isObject, objects, type Props, type Rule, text, texts } from "./rule";

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

/** Actions that read what is secret, or run what one likes with somebody else's role. */
const SENSITIVE = [
  "secretsmanager:getsecretvalue",
  "secretsmanager:batchgetsecretvalue",
  "kms:decrypt",
  "lambda:updatefunctioncode",
  "ssm:sendcommand",
  "ssm:startsession",
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
    const known = limitsUse(statement.condition) ? ESCALATION : [...ESCALATION, ...SENSITIVE];
    const dangerous = statement.actions.filter((action) =>
      known.some((one) => matches(action, one)),
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
  /^arn:[\w-]+:iam::aws:policy\/([\w-]+\/)*(AdministratorAccess|PowerUserAccess|SystemAdministrator|SecretsManagerReadWrite|\w+FullAccess)/;

export const noAdministrators = about(
  [
    "aws:iam/role:Role",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment",
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
    "aws:iam/policyAttachment:PolicyAttachment",
    "aws:ssoadmin/managedPolicyAttachment:ManagedPolicyAttachment",
  ],
  { name: "no-administrators", description: "Nothing that runs is an administrator" },
  (props) =>
    [
      text(props.policyArn),
      text(props.managedPolicyArn),
      ...texts(props.managedPolicyArns),
      ...texts(props.policyArns),
    ]
      .filter((arn) => ADMINISTRATORS.test(arn))
      .map((arn) => `${arn} allows nearly everything; write a policy for what is needed`),
);

export const trustedTakers = about(
  ["aws:iam/role:Role"],
  { name: "trusted-takers", description: "Roles can be taken by named principals only" },
  ({ assumeRolePolicy }) => [
    ...unreadable(assumeRolePolicy),
    ...(statementsOf(assumeRolePolicy).some(isOpen)
      ? ["everybody may take this role; name services, accounts or roles"]
      : []),
    ...(statementsOf(assumeRolePolicy).some(trustsAnyToken)
      ? ["whoever gets a token there may take this role; ask for the subject (`:sub`)"]
      : []),
  ],
);

function isOpen(statement: PolicyStatement): boolean {
  return (
    statement.allows &&
    (statement.notPrincipal || statement.principals.includes("*")) &&
    !limits(statement.condition)
  );
}

function trustsAnyToken({ allows, actions, federated, condition }: PolicyStatement): boolean {
  const web = "sts:assumerolewithwebidentity";
  return (
    allows &&
    federated &&
    actions.some((action) => matches(action, web)) &&
    !namesSubject(condition)
  );
}

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
  "aws:kms/keyPolicy:KeyPolicy": "policy",
  "aws:s3/bucket:Bucket": "policy",
  "aws:s3/accessPoint:AccessPoint": "policy",
  "aws:s3control/accessPointPolicy:AccessPointPolicy": "policy",
  "aws:opensearch/domain:Domain": "accessPolicies",
  "aws:opensearch/domainPolicy:DomainPolicy": "accessPolicies",
  "aws:elasticsearch/domain:Domain": "accessPolicies",
  "aws:elasticsearch/domainPolicy:DomainPolicy": "accessPolicies",
  "aws:ecr/registryPolicy:RegistryPolicy": "policy",
  "aws:glacier/vault:Vault": "accessPolicy",
  "aws:ses/identityPolicy:IdentityPolicy": "policy",
  "aws:efs/fileSystemPolicy:FileSystemPolicy": "policy",
  "aws:backup/vaultPolicy:VaultPolicy": "policy",
  "aws:dynamodb/resourcePolicy:ResourcePolicy": "policy",
  "aws:cloudwatch/eventBusPolicy:EventBusPolicy": "policy",
  "aws:cloudwatch/logResourcePolicy:LogResourcePolicy": "policyDocument",
  "aws:cloudwatch/logDestinationPolicy:LogDestinationPolicy": "accessPolicy",
  "aws:glue/resourcePolicy:ResourcePolicy": "policy",
  "aws:kinesis/resourcePolicy:ResourcePolicy": "policy",
  "aws:codeartifact/domainPermissions:DomainPermissions": "policyDocument",
  "aws:codeartifact/repositoryPermissionsPolicy:RepositoryPermissionsPolicy": "policyDocument",
  "aws:acmpca/policy:Policy": "policy",
  "aws:vpclattice/authPolicy:AuthPolicy": "policy",
  "aws:sesv2/emailIdentityPolicy:EmailIdentityPolicy": "policy",
};

/** Policies that are written one property deeper. */
const NESTED_POLICY = "aws:s3control/multiRegionAccessPointPolicy:MultiRegionAccessPointPolicy";

/** Types that name one principal instead of having a policy, and what limits everybody. */
const PRINCIPALS: Record<string, readonly string[]> = {
  "aws:lambda/permission:Permission": ["sourceArn", "sourceAccount", "principalOrgId"],
  "aws:lambda/layerVersionPermission:LayerVersionPermission": ["organizationId"],
  "aws:cloudwatch/eventPermission:EventPermission": ["condition"],
};

export const closedPolicies = about(
  [...Object.keys(RESOURCE_POLICIES), NESTED_POLICY, ...Object.keys(PRINCIPALS)],
  { name: "closed-policies", description: "Nothing is open to everybody by its own policy" },
  (props, { type }) => {
    const help = "name principals, or add a condition that says who may come";
    const limiting = PRINCIPALS[type];
    if (limiting !== undefined) {
      const limited = limiting.some((key) => props[key] !== undefined && props[key] !== "*");
      return props.principal === "*" && !limited ? [`everybody may use it; ${help}`] : [];
    }
    const policy =
      type === NESTED_POLICY && isObject(props.details)
        ? props.details.policy
        : props[RESOURCE_POLICIES[type] ?? ""];
    const open = statementsOf(policy).some(isOpen) && !inNetwork(props);
    return [...unreadable(policy), ...(open ? [`the policy lets everybody in; ${help}`] : [])];
  },
);

/** Whether a search domain is in a network, where security groups say who comes. */
function inNetwork({ vpcOptions }: Props): boolean {
  return (
    isObject(vpcOptions) && Array.isArray(vpcOptions.subnetIds) && vpcOptions.subnetIds.length > 0
  );
}

/** Whether an API answers in networks only. */
function isPrivate({ endpointConfiguration: endpoint }: Props): boolean {
  return isObject(endpoint) && [endpoint.types].flat().join() === "PRIVATE";
}

export const askedCallers = about(
  [
    "aws:apigatewayv2/route:Route",
    "aws:apigateway/method:Method",
    "aws:lambda/functionUrl:FunctionUrl",
    "aws:apigatewayv2/api:Api",
    "aws:apigateway/restApi:RestApi",
    "aws:appsync/graphQLApi:GraphQLApi",
  ],
  { name: "asked-callers", description: "Everything on the internet asks who calls" },
  (props, { type }) => {
    if (/:(Api|RestApi)$/.test(type)) {
      return [
        ...(props.target === undefined
          ? []
          : ["an API with a target answers everybody; make routes that ask for tokens"]),
        ...(props.body === undefined || isGuarded(props.body) || isPrivate(props)
          ? []
          : ["the body has operations without security; ask for a token or a signature"]),
      ];
    }
    if (type.endsWith(":GraphQLApi")) {
      const ways = [props, ...objects(props.additionalAuthenticationProviders)];
      return ways.some((way) => text(way.authenticationType).toUpperCase() === "API_KEY")
        ? ["a key is in every page that uses it; ask for a token or a signature"]
        : [];
    }
    const property = type.startsWith("aws:apigateway/") ? "authorization" : "authorizationType";
    const how = text(props[property]).toUpperCase();
    return how === "" || how === "NONE"
      ? [`${property} must not be NONE; ask for a token or a signature`]
      : [];
  },
);

/** What an operation of an OpenAPI document is called; browsers ask OPTIONS without a token. */
const OPERATIONS = new Set(["get", "put", "post", "delete", "patch", "head", "any"]);

/** Whether every operation of an OpenAPI document asks who calls. */
function isGuarded(body: unknown): boolean {
  const document = typeof body === "string" ? parse(body) : body;
  if (!isObject(document)) {
    // YAML: at least somebody thought of it.
    return typeof body !== "string" || /^\s*(security|x-amazon-apigateway-auth)\s*:/m.test(body);
  }
  const asks = ({ security, "x-amazon-apigateway-auth": auth }: Props): boolean =>
    (Array.isArray(security) && security.some((one) => isObject(one) && keys(one) > 0)) ||
    (isObject(auth) && text(auth.type).toUpperCase() !== "NONE");
  const operations = Object.values(isObject(document.paths) ? document.paths : {})
    .filter(isObject)
    .flatMap((path) =>
      Object.entries(path).filter(([name]) =>
        OPERATIONS.has(name.toLowerCase().replace("x-amazon-apigateway-any-method", "any")),
      ),
    )
    .map(([, operation]) => operation)
    .filter(isObject);
  return operations.every((operation) =>
    operation.security === undefined
      ? asks(operation) || asks({ security: document.security })
      : asks(operation),
  );
}

function keys(value: Props): number {
  return Object.keys(value).length;
}

/** Resources that make others, which no rule sees. */
const MAKERS =
  /^aws:cloudformation\/(stack|stackSet|stackInstances|stackSetInstance):|^aws:cloudcontrol\/resource:|^aws:servicecatalog\/provisionedProduct:|^aws-native:/;

export const visibleResources: Rule = {
  name: "visible-resources",
  description: "Nothing makes resources that these rules cannot see",
  check: ({ type }) =>
    MAKERS.test(type)
      ? [`${type} makes what no rule sees; use resources of the aws provider, or except it`]
      : [],
};

export const permissionRules: readonly Rule[] = [
  leastPrivilege,
  noAdministrators,
  trustedTakers,
  closedPolicies,
  askedCallers,
  visibleResources,
];
