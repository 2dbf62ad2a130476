//! The registry of error codes.
//!
//! Append only: a code that was released keeps its number and its meaning for ever. Each code has
//! a page `docs/errors/NIM-NNNN.md` with what happened, why, and what to do; a test in the command
//! line crate fails when one is missing. Blocks: 0001–0099 command line, configuration and files;
//! 0100–0199 engine values and state files; 0200–0299 backends, journals and leases; 0300–0399
//! plugins; 0400–0499 programs and their launchers; 0500–0599 deployments; 0600–0699 operations;
//! 0700–0799 orchestration; 0800–0849 database, tenancy and server;
//! 0850–0899 identity, authorisation, audit and secrets; 0900–0919 durable workflows;
//! 0940–0949 calls to other servers; 0950–0959 live events; 0960–0969 deliveries; 0970–0989 catalog, rules, landing zones;
//! 0990–1009 resolvers; 1020–1039 approvals; 1100–1119 configuration items.

use std::fmt;

/// What sort of failure this is, independent of where it arose. Transports map it to exit codes
/// and HTTP statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The caller's input is wrong and will stay wrong.
    Invalid,
    /// The thing does not exist, or the caller may not know that it does.
    NotFound,
    /// The thing exists already.
    Exists,
    /// Something else changed or holds the thing.
    Conflict,
    /// The caller is known and may not do this.
    Forbidden,
    /// The run was refused or ended by a rule: protection, policy, a stale plan.
    Refused,
    /// The infrastructure change itself failed.
    Failed,
    /// Somebody asked to stop.
    Cancelled,
    /// Something that Nimbus needs is missing or does not answer.
    Unavailable,
    /// A defect in Nimbus.
    Internal,
}

/// A stable error code such as `NIM-0001`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(u16);

struct CodeEntry {
    code: ErrorCode,
    kind: ErrorKind,
    retryable: bool,
    title: &'static str,
}

macro_rules! codes {
    ($($name:ident = $number:literal, $kind:ident, $retry:ident, $title:literal;)*) => {
        impl ErrorCode {
            $(#[doc = $title] pub const $name: Self = Self($number);)*
        }
        const REGISTRY: &[CodeEntry] = &[$(CodeEntry {
            code: ErrorCode::$name,
            kind: ErrorKind::$kind,
            retryable: codes!(@retry $retry),
            title: $title,
        },)*];
    };
    (@retry retry) => { true };
    (@retry final) => { false };
}

codes! {
    // Command line, configuration and files.
    INTERNAL = 1, Internal, final, "Nimbus itself went wrong";
    USAGE = 2, Invalid, final, "The command line is not understood";
    FILE_UNREADABLE = 3, Unavailable, final, "A file cannot be read";
    FILE_UNWRITABLE = 4, Unavailable, final, "A file cannot be written";
    DOCUMENT_SYNTAX = 5, Invalid, final, "A YAML or JSON file is not well formed";
    DOCUMENT_LIMIT = 6, Invalid, final, "A YAML or JSON file is too large, too deep or expands too far";
    DOCUMENT_SHAPE = 7, Invalid, final, "A YAML or JSON file has a value of the wrong kind";
    CONFIG_UNKNOWN_KEY = 8, Invalid, final, "The configuration has a key that Nimbus does not know";
    CONFIG_BAD_VALUE = 9, Invalid, final, "A configuration value is not acceptable";
    CONFIRMATION_NEEDED = 10, Refused, final, "Nobody is there to confirm, and --yes was not given";
    UNKNOWN_ERROR_CODE = 11, NotFound, final, "There is no such error code";
    CANCELLED = 12, Cancelled, retry, "The command was cancelled";
    TOOL_MISSING = 13, Unavailable, final, "A program that Nimbus needs is not installed";
    MALFORMED_ID = 14, Invalid, final, "A name or an id is not well formed";
    PROJECT_HERE = 15, Invalid, final, "A control plane was asked for in the folder of a Pulumi project";

    // Engine values. Damaged states and journals are among the codes of backends.
    PROPERTY_PATH = 100, Invalid, final, "A property path is not well formed";

    STATE_DEFECT = 110, Internal, final, "Nimbus made a state that the official command line could not read";

    // Backends, journals, leases and projects.
    BACKEND_ADDRESS = 200, Invalid, final, "The address of a backend is not understood";
    BACKEND_UNSUPPORTED = 201, Invalid, final, "This kind of backend is not supported";
    BACKEND_UNAVAILABLE = 202, Unavailable, retry, "The backend cannot be reached, read or written";
    BACKEND_FULL = 203, Unavailable, final, "There is no room left for state";
    BACKEND_LAYOUT = 204, Invalid, final, "The backend's files are laid out in a way that Nimbus does not work with";
    STACK_NAME = 205, Invalid, final, "A project or stack name is not allowed";
    STACK_NOT_FOUND = 206, NotFound, final, "There is no such stack";
    STACK_EXISTS = 207, Exists, final, "The stack exists already";
    STACK_NOT_EMPTY = 208, Refused, final, "The stack still has resources";
    STACK_LOCKED = 209, Conflict, retry, "Somebody else is changing the stack";
    LEASE_LOST = 210, Conflict, final, "Somebody else took over the stack";
    LEASE_HOLDER_ALIVE = 211, Refused, final, "The stack's writer is alive and cannot be unlocked";
    LEASE_UNREADABLE = 212, Invalid, final, "The record of who writes a stack cannot be read";
    STATE_UNREADABLE = 213, Invalid, final, "A state file cannot be read";
    STATE_BROKEN = 214, Refused, final, "A state contradicts itself";
    STATE_OTHER_STACK = 215, Refused, final, "A state belongs to another stack";
    STATE_OLDER = 216, Refused, final, "A state is older than the current one";
    STATE_CHANGED = 217, Conflict, retry, "The state changed while it was being worked on";
    JOURNAL_DAMAGED = 218, Refused, final, "The journal of an interrupted operation is damaged";
    JOURNAL_BASE = 219, Conflict, final, "The journal of an interrupted operation does not fit the state";
    HISTORY_UNREADABLE = 220, Invalid, final, "A record of the stack's history cannot be read";
    PROJECT_NOT_FOUND = 230, NotFound, final, "There is no Pulumi.yaml";
    PROJECT_INVALID = 231, Invalid, final, "Pulumi.yaml contradicts itself";
    CONFIG_KEY = 232, Invalid, final, "A configuration key is not allowed";
    CONFIG_MISSING = 233, Invalid, final, "The stack lacks configuration that the project requires";
    CONFIG_TYPE = 234, Invalid, final, "A configuration value is not of its declared type";
    CONFIG_NOT_SECRET = 235, Refused, final, "A configuration value must be a secret";
    ENVIRONMENTS_UNSUPPORTED = 236, Invalid, final, "The stack imports Pulumi ESC environments";
    PASSPHRASE_MISSING = 237, Invalid, final, "There is no passphrase for the stack's secrets";
    PASSPHRASE_WRONG = 238, Invalid, final, "The passphrase is wrong";
    SECRETS_UNREADABLE = 239, Invalid, final, "A secret cannot be decrypted";
    SECRETS_PROVIDER = 240, Invalid, final, "The stack's secrets provider is not supported";
    STACK_FILE_UNEDITABLE = 241, Invalid, final, "The stack's settings file cannot be edited safely";

    // Plugins.
    PLUGIN_NOT_FOUND = 300, NotFound, final, "A plugin is not installed";
    PLUGIN_NOT_STARTED = 301, Unavailable, final, "A plugin did not start";
    PLUGIN_RUNTIME_MISSING = 302, Unavailable, final, "The language or the SDK of a plugin is not installed";
    PLUGIN_REFUSED = 303, Failed, final, "A plugin refused to serve";
    PLUGIN_REFERENCE = 304, Invalid, final, "A plugin's name, version or source is not understood";
    PLUGIN_NOT_OFFERED = 305, NotFound, final, "The source does not offer the plugin";
    PLUGIN_NOT_DOWNLOADED = 306, Unavailable, retry, "A plugin could not be downloaded";
    PLUGIN_CHECKSUM = 307, Refused, final, "A plugin is not proved to be what was released";
    PLUGIN_ARCHIVE = 308, Refused, final, "A plugin's archive is damaged or not safe to unpack";
    OFFICIAL_CLI_UNUSABLE = 310, Unavailable, final, "The official Pulumi command line is missing or too old";
    OFFICIAL_CLI_UNSUPPORTED = 311, Invalid, final, "The official Pulumi command line cannot do this";
    OFFICIAL_CLI_FAILED = 312, Failed, final, "The official Pulumi command line failed";
    PLUGIN_NOT_OPERATORS = 313, Refused, final, "A plugin is not the operator's";
    PROVIDER_NOT_ALLOWED = 314, Refused, final, "Programs of strangers may not use a provider";

    // Programs and their launchers.
    RUNTIME_UNSUPPORTED = 400, Invalid, final, "Programs of this runtime cannot be run";
    RUNTIME_OPTION = 401, Invalid, final, "A runtime option in Pulumi.yaml is not acceptable";
    SDK_MISSING = 402, Unavailable, final, "The program's Pulumi SDK is not installed";
    VIRTUALENV_MISSING = 403, Unavailable, final, "The program's Python environment is missing";
    PROGRAM_MISSING = 404, NotFound, final, "The program's entry does not exist";
    PROGRAM_NOT_STARTED = 405, Unavailable, final, "The program could not be started";
    PACKAGES_NOT_INSTALLED = 406, Unavailable, final, "The program's packages could not be installed";
    OUTSIDE_PROJECT = 407, Refused, final, "A stranger's project names a file that is not its own";
    SANDBOX_ROOT = 408, Invalid, final, "A root that programs may read is no folder, or too wide";
    TENANT_BACKEND = 409, Refused, final, "A stranger's project names where its state is kept";
    TENANT_SECRETS = 410, Refused, final, "A stranger's project names a service for its secrets";
    TENANT_PROJECT = 411, Refused, final, "A stranger's project says whose stacks it works on";
    FOUND_SETTINGS = 412, Refused, final, "A stranger's project brings settings of the operator";
    TENANT_STACKS = 413, Refused, final, "A stranger's manifest names a project that was not given to it";
    ISOLATION_WEAK = 450, Refused, final, "This machine cannot isolate programs as it is asked to";
    SANDBOX_FAILED = 451, Unavailable, final, "The sandbox could not be closed around a program";

    // Deployments.
    STEPS_FAILED = 500, Failed, final, "Steps of a deployment failed";
    PROGRAM_ENDED_IN_ERROR = 501, Failed, final, "The program ended with an error";
    PROGRAM_INCOMPLETE = 502, Failed, final, "The program ended early, and nothing was deleted on its account";
    JOURNAL_LOST = 503, Unavailable, retry, "The record of a running operation cannot be written";
    POLICY_VIOLATED = 504, Refused, final, "A mandatory policy forbids this";
    POLICY_FAILED = 505, Unavailable, final, "A policy pack did not answer";
    PLAN_VIOLATED = 506, Refused, final, "The operation would do something that its plan does not allow";
    PLAN_STALE = 507, Conflict, final, "The plan was made for another state";
    RESOURCE_PROTECTED = 508, Refused, final, "A protected resource would have to be replaced";
    MASS_REMOVAL = 509, Refused, final, "A refresh found too many objects gone at once";
    TARGET_UNKNOWN = 510, NotFound, final, "A target is not in the stack";
    OUTSIDE_TARGETS = 511, Refused, final, "Resources outside the targets would have to change";
    INVALID_REGISTRATION = 512, Invalid, final, "The program registered a resource that cannot be";
    INPUTS_REFUSED = 513, Invalid, final, "A provider does not accept a resource's inputs";
    PROVIDER_FAILED = 514, Unavailable, final, "A provider could not be asked";
    HOOK_FAILED = 515, Failed, final, "A hook failed after its step was done";
    HOOKS_NEED_PROGRAM = 516, Invalid, final, "Delete hooks can only run with the program";
    STATE_UNUSABLE = 517, Invalid, final, "The recorded state cannot be worked on";

    // Operations.
    PLAN_UNREADABLE = 600, Invalid, final, "A saved plan cannot be read";
    PLAN_MOVED = 601, Refused, final, "What a plan was made for has changed";
    OUTCOMES_UNKNOWN = 602, Refused, final, "Earlier acts have an unknown outcome";
    STATE_NOT_SAVED = 603, Unavailable, retry, "The state could not be saved, and the journal has everything";
    CHANGES_FOUND = 604, Refused, final, "There are changes, and none were expected";
    NOTHING_RUNNING = 605, NotFound, final, "No operation is running on the stack";
    RUNNING_ELSEWHERE = 606, Refused, final, "The operation runs where it cannot be reached";
    IMPORT_INVALID = 607, Invalid, final, "What is to be imported is not understood";
    OUTPUT_UNKNOWN = 608, NotFound, final, "The stack has no such output";
    RESOURCE_UNKNOWN = 609, NotFound, final, "The state has no such resource";
    STATE_VERSION_UNKNOWN = 610, NotFound, final, "The stack's history has no such version";
    CONFIG_NOT_SET = 611, NotFound, final, "The stack's configuration has no such key";
    WORLD_DAMAGED = 612, Invalid, final, "The world of a rehearsal cannot be read";
    WORLD_NEWER = 613, Refused, final, "The world of a rehearsal was written by a newer version";
    REHEARSED_STATE = 614, Refused, final, "State of a rehearsal is not for real runs";
    STATE_EDIT = 615, Refused, final, "An edit would leave a state that contradicts itself";
    STACK_NOT_NAMED = 616, Invalid, final, "No stack is named, and none is selected";

    // Orchestration.
    TEMPLATE_UNKNOWN = 700, NotFound, final, "There is no such template";
    TEMPLATE_INVALID = 701, Invalid, final, "A template cannot be rendered";
    GRAPH_INVALID = 702, Invalid, final, "The stacks of a deployment cannot be ordered";
    WORKSPACE_MISSING = 703, NotFound, final, "There is no Nimbus workspace here";
    DEPLOYMENT_UNKNOWN = 704, NotFound, final, "There is no such deployment";
    DEPLOYMENT_EXISTS = 705, Exists, final, "The deployment id is taken";
    ENVIRONMENT_UNKNOWN = 706, NotFound, final, "The deployment has no such environment";
    STACK_UNKNOWN = 707, NotFound, final, "The deployment has no such stack";
    MEMORY_DAMAGED = 708, Invalid, final, "What is remembered of a unit cannot be read";
    RESOLUTION_FAILED = 709, Invalid, final, "A run-time value cannot be had";
    ENVIRONMENT_DISABLED = 710, Refused, final, "The environment is not enabled";
    DEPLOYMENT_INVALID = 711, Invalid, final, "Something is wrong with the deployment's manifest";
    AWS_CREDENTIALS = 730, Unavailable, final, "There are no usable AWS credentials";
    AWS_REFUSED = 731, Forbidden, final, "AWS refuses a request";
    AWS_UNAVAILABLE = 732, Unavailable, retry, "AWS does not answer";
    STACK_PROGRAM_MISSING = 733, NotFound, final, "A stack has no program";
    STACK_REGISTERED = 734, Exists, final, "The stack is registered already";
    STACK_IN_USE = 735, Refused, final, "The stack is in use";
    PROJECT_NOT_MINIMAL = 736, Invalid, final, "A stack's Pulumi.yaml says more than it may";
    TEMPLATE_EXISTS = 737, Exists, final, "The template's name is taken";
    MIGRATION_UNKNOWN = 738, NotFound, final, "There is nothing to migrate, or nothing to undo";
    MIGRATION_CONFLICT = 739, Refused, final, "A migration would overwrite or lose something";
    ROLLBACK_UNPROVED = 750, Failed, final, "A rollback could not be proved";
    ENVIRONMENT_LOCKED = 751, Conflict, retry, "Another run is changing the environment";
    LOCK_HOLDER_ALIVE = 752, Refused, final, "The lock's holder is alive";
    RUN_UNKNOWN = 753, NotFound, final, "There is no such run";
    RUN_OVER = 754, Refused, final, "The run is over";
    RUN_DAMAGED = 755, Invalid, final, "The record of a run cannot be read";
    VERSION_UNKNOWN = 756, NotFound, final, "The environment has no such version";
    GATE_CLOSED = 757, Refused, final, "An environment before this one is not ready";
    CHECK_FAILED = 758, Failed, final, "A check after the deployment failed";
    BACKUP_UNREADABLE = 759, Invalid, final, "A backup cannot be restored";
    DEPENDENCY_NOT_DEPLOYED = 760, Refused, final, "A stack that this one needs is not deployed";
    DEPLOYMENT_NOT_READY = 761, Refused, final, "Several things are in the way of a deploy";
    DEPLOYMENT_IN_USE = 762, Refused, final, "The deployment still has resources";
    ADOPTION_REFUSED = 770, Invalid, final, "Projects cannot be adopted as it was asked for";
    ADOPTION_DIFFERS = 771, Refused, final, "What was adopted is not what its programs want";
    ADOPTION_USED = 772, Refused, final, "What was adopted has been run since, so it is not undone";
    SECRET_UNKNOWN = 773, NotFound, final, "There is no such secret";
    CONFIG_CONFLICT = 774, Conflict, final, "A value was changed in the manifest and in a configuration file";
    PROJECT_MOVED = 775, Refused, final, "The project of a deployment that has states was changed";
    STACK_NEEDED = 776, Refused, final, "Other stacks that are deployed need this one";
    ACCOUNT_OTHER = 777, Refused, final, "The credentials are those of another account";
    UNIT_OVERTIME = 778, Failed, final, "A stack took longer than it may";
    ADOPTION_UNVERIFIED = 779, Failed, final, "What was adopted could not be compared with its programs";

    // The control plane's database, tenancy and server.
    DATABASE_UNAVAILABLE = 800, Unavailable, retry, "The database cannot be reached";
    DATABASE_ADDRESS = 801, Invalid, final, "The address of the database is not understood";
    DATABASE_BOOTSTRAP = 802, Refused, final, "The database could not be set up";
    DATABASE_WEAK = 803, Refused, final, "The database does not keep tenants apart";
    MIGRATION_FAILED = 804, Failed, final, "A migration of the database failed";
    MIGRATION_CHANGED = 805, Refused, final, "A migration was changed after it was applied";
    DATABASE_NEWER = 806, Refused, final, "The database was migrated by a newer version";
    ISOLATION_CHANGED = 807, Refused, final, "The installation keeps tenants apart in another way";
    TENANT_REFUSED = 808, Refused, final, "This cannot be done to this tenant";
    DATABASE_FAILED = 809, Internal, final, "The database refused a statement";
    BACKUP_UNUSABLE = 810, Invalid, final, "A backup cannot be used";
    POSTGRES_MISSING = 811, Unavailable, final, "PostgreSQL is not installed";
    POSTGRES_NOT_STARTED = 812, Unavailable, final, "The private PostgreSQL did not start";
    DATA_DIR_IN_USE = 813, Conflict, final, "Another Nimbus runs on the data directory";
    DATA_DIR_UNUSABLE = 814, Unavailable, final, "The data directory cannot be used";
    LISTEN_FAILED = 815, Unavailable, final, "The server cannot listen on its address";
    RESTORE_TARGET_IN_USE = 816, Refused, final, "There is something where the backup would be restored";
    RESTORE_UNFINISHED = 817, Refused, final, "A restore was begun and not finished";
    DATABASE_FULL = 818, Unavailable, retry, "The database has no room left";

    // Identity, authorisation, audit and secrets of the control plane.
    VAULT_KEY_MISSING = 850, Refused, final, "The key that protects stored secrets is not there";
    VAULT_KEY_UNUSABLE = 851, Invalid, final, "The key that protects stored secrets cannot be used";
    VAULT_VALUE_DAMAGED = 852, Invalid, final, "A stored secret does not open";
    SIGN_IN_REFUSED = 853, Forbidden, final, "The sign-in was refused";
    SIGN_IN_NEEDED = 854, Forbidden, final, "Nobody is signed in";
    NOT_PERMITTED = 855, Forbidden, final, "This is not permitted";
    RESOURCE_NOT_FOUND = 856, NotFound, final, "There is no such thing, or it may not be seen";
    PASSWORD_REFUSED = 857, Invalid, final, "The password is too easy to guess";
    TOO_MANY_REQUESTS = 858, Unavailable, retry, "Too many requests";
    INPUT_INVALID = 859, Invalid, final, "A field of the request is not acceptable";
    RESOURCE_EXISTS = 860, Exists, final, "The name is taken";
    RESOURCE_CHANGED = 861, Conflict, retry, "Something changed at the same time";
    AUDIT_BROKEN = 862, Refused, final, "The audit trail was changed";
    AUDIT_KEY_UNUSABLE = 863, Invalid, final, "The key that signs the audit trail cannot be used";
    SERVER_UNREACHABLE = 864, Unavailable, retry, "The Nimbus server does not answer";
    SERVER_ANSWER = 865, Unavailable, final, "The Nimbus server answered in a way that is not understood";
    PROFILE_UNUSABLE = 866, Invalid, final, "The stored sign-in cannot be used";
    QUOTA_EXCEEDED = 867, Refused, final, "A quota would be exceeded";
    REQUEST_FORGED = 868, Forbidden, final, "The request may come from another site";
    AUDIT_ARCHIVE = 869, Unavailable, final, "The archive of the audit trail cannot be used";
    METHOD_NOT_ALLOWED = 870, Invalid, final, "The path does not take this HTTP method";
    LAST_ADMINISTRATOR = 871, Forbidden, final, "Nobody would be left to administer";
    REQUEST_TOO_LARGE = 872, Invalid, final, "The request is larger than the server takes";

    // Deployments on a server.
    NOT_ON_SERVER = 880, Refused, final, "A server does not do this for a tenant";
    RUN_TAKEN_OVER = 881, Conflict, final, "Another worker has the run";
    REQUEST_KEY_REUSED = 882, Conflict, final, "The idempotency key was used for another request";
    DEPLOYMENT_BUSY = 883, Conflict, retry, "Runs of the deployment are not over";
    RUN_NOT_OPEN = 884, Conflict, final, "The run is not in a state in which this can be done";
    WORKSPACE_FILE_INVALID = 885, Invalid, final, "A file of the workspace is not acceptable";
    NOT_REMOTE = 886, Refused, final, "This has no form for a server";
    RUN_TIME_LIMIT = 887, Failed, final, "The run took longer than the server allows";
    REQUEST_UNDER_WAY = 888, Conflict, retry, "A request with this idempotency key has no answer yet";
    ANSWER_GIVEN_ONCE = 889, Conflict, final, "The answer had a secret in it and is not given again";

    // Durable workflows.
    WORKFLOW_UNKNOWN = 900, NotFound, final, "There is no such workflow";
    WORKFLOW_CONFLICT = 901, Conflict, final, "The workflow was started before with something else";
    WORKFLOW_INVALID = 902, Invalid, final, "A workflow's name, input, signal or schedule is not understood";
    WORKFLOW_RUNTIME = 903, Unavailable, retry, "The workflow runtime does not answer";
    WORKFLOW_PANICKED = 904, Internal, retry, "A workflow or a step of it panicked";
    WORKFLOW_TIMEOUT = 905, Failed, retry, "A step of a workflow took too long";
    WORKFLOW_CANCELLED = 906, Cancelled, final, "The workflow was cancelled and could not undo everything";
    WORKFLOW_POISONED = 907, Failed, final, "The workflow ended its process again and again";
    STATE_EXPORT = 908, Failed, retry, "States cannot be exported";
    WORKFLOW_RUN_FAILED = 909, Failed, final, "The run that a workflow is about failed";

    // GraphQL.
    QUERY_TOO_COSTLY = 940, Invalid, final, "The GraphQL document asks for too much at once";
    INTROSPECTION_OFF = 941, Invalid, final, "Questions about the GraphQL schema are switched off";

    // Calls to other servers.
    ADDRESS_REFUSED = 942, Forbidden, final, "The server does not call this address";
    CALL_FAILED = 943, Unavailable, retry, "Another server did not answer as it should";

    // Live events.
    VALKEY_ADDRESS = 950, Invalid, final, "The address of Valkey cannot be used";
    VALKEY_AWAY = 951, Unavailable, retry, "Valkey is not reached";
    TOO_MANY_ROOMS = 952, Invalid, final, "A connection listens to too many rooms";
    EVENTS_LEFT_OUT = 953, Conflict, final, "Events were left out for somebody who is too far behind";

    // Notifications that leave the application.
    WEBHOOKS_EXHAUSTED = 960, Refused, final, "The tenant has as many webhooks as it may have";
    DELIVERY_UNDER_WAY = 961, Conflict, final, "The delivery is under way";
    DELIVERY_WITHOUT_RECEIVER = 962, Conflict, final, "There is nobody to deliver this to";

    // The catalog, rules about it and landing zones.
    COMPONENT_INVALID = 970, Invalid, final, "A component cannot be used as it is written";
    OPERATOR_ONLY = 971, Refused, final, "This belongs to the operator";
    CONTRACT_BREAKS = 972, Refused, final, "A new version would break those who use the component";
    COMPONENT_UNPUBLISHED = 973, Refused, final, "Nothing of the component is published";
    COMPONENT_DENIED = 974, Refused, final, "A rule denies the component";
    PARAMETER_REFUSED = 975, Refused, final, "A rule does not allow the value of a parameter";
    INSTANCES_EXHAUSTED = 976, Refused, final, "A rule allows no more instances of the component";
    RULE_INVALID = 977, Invalid, final, "A rule cannot be used as it is written";
    RULE_FROM_ABOVE = 978, Refused, final, "The rule was set from further up";
    ZONE_WITHOUT_ACCOUNT = 979, Refused, final, "The landing zone has no cloud account";
    ZONE_STATUS = 980, Conflict, final, "The landing zone is not in a status in which this can be done";
    ENVIRONMENT_STATUS = 981, Conflict, final, "The environment is not in a status in which this can be done";
    WIRING_INVALID = 982, Invalid, final, "An input is wired to an output that does not fit";
    SEMANTIC_IN_USE = 983, Conflict, final, "Something is bound to this type";
    COMPONENT_PROTECTED = 984, Refused, final, "The component belongs to the platform";
    REPOSITORY_UNREADABLE = 985, Failed, final, "The repository cannot be read";
    PROGRAMS_UNREADABLE = 986, Unavailable, final, "This server cannot read programs";

    // Resolvers.
    RESOLVER_UNKNOWN = 990, NotFound, final, "There is no such resolver or output";
    RESOLVER_INPUT_INVALID = 991, Invalid, final, "An input of a resolver is wrong";
    RESOLVER_NOT_CONFIGURED = 992, Refused, final, "A resolver is not configured for this place";
    RESOLVER_CONFIG_INVALID = 993, Invalid, final, "The configuration of a resolver is wrong";
    POOL_OVERLAP = 994, Conflict, final, "The pool overlaps another one";
    POOL_OUTSIDE_PARENT = 995, Invalid, final, "The block lies outside of its pool";
    POOL_EXHAUSTED = 996, Refused, retry, "The pool has nothing left";
    BLOCK_TAKEN = 997, Conflict, final, "The block of addresses is taken";
    NAME_RULE_BROKEN = 998, Invalid, final, "The name breaks a rule of its type";
    NAME_TAKEN = 999, Conflict, final, "The name is taken";
    IMAGE_UNKNOWN = 1000, NotFound, final, "The catalog has no such image";
    PARAMETERS_INVALID = 1001, Invalid, final, "The parameters of a component are wrong";
    PARAMETER_UNRESOLVED = 1002, Refused, final, "A parameter could not be resolved";
    POOL_IN_USE = 1003, Conflict, final, "The pool is in use";
    POOL_UNKNOWN = 1004, NotFound, final, "There is no such pool";
    LEASE_IN_USE = 1005, Conflict, final, "What is deployed has the lease";

    // Approvals.
    APPROVAL_NEEDS_PLAN = 1020, Refused, final, "The environment needs approval, which is given to a plan";
    APPROVAL_NOT_YOURS = 1021, Forbidden, final, "Others decide on this step";
    APPROVAL_OWN_REQUEST = 1022, Forbidden, final, "Nobody decides on what they asked for themselves";
    APPROVAL_TWICE = 1023, Conflict, final, "You have decided on this step already";
    APPROVAL_TOO_LATE = 1024, Conflict, final, "The time to decide is over";
    APPROVAL_ENDED = 1025, Conflict, final, "The request for approval has ended";
    APPROVAL_DENIED = 1026, Refused, final, "The run was denied";
    APPROVAL_EXPIRED = 1027, Refused, final, "Nobody decided on the run in time";

    // Workers on other machines.
    WORKER_WITHOUT_TLS = 1060, Refused, final, "A worker would be given secrets over a network without TLS";
    WORKER_REFUSED = 1061, Forbidden, final, "The server no longer takes the worker's key";

    // Configuration items.
    ITEMS_INVALID = 1100, Invalid, final, "A file of configuration items cannot be imported";
    CLASS_INVALID = 1101, Invalid, final, "A class of configuration items cannot be used as it is written";
    RELATIONSHIP_REFUSED = 1102, Refused, final, "The class of the item begins no such relationship";
    RELATIONSHIP_KEPT = 1103, Conflict, final, "A run or an import says that the relationship is there";
}

impl ErrorCode {
    /// Every registered code, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        REGISTRY.iter().map(|entry| entry.code)
    }

    /// Reads `NIM-0001`, `nim-1` or `1`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().to_ascii_uppercase();
        let number: u16 = digits
            .strip_prefix("NIM-")
            .unwrap_or(&digits)
            .parse()
            .ok()?;
        REGISTRY
            .iter()
            .map(|entry| entry.code)
            .find(|code| code.0 == number)
    }

    pub fn kind(self) -> ErrorKind {
        self.entry().map_or(ErrorKind::Internal, |entry| entry.kind)
    }

    pub fn title(self) -> &'static str {
        self.entry().map_or("", |entry| entry.title)
    }

    /// Whether the same request may succeed later without any change.
    pub fn retryable(self) -> bool {
        self.entry().is_some_and(|entry| entry.retryable)
    }

    fn entry(self) -> Option<&'static CodeEntry> {
        REGISTRY.iter().find(|entry| entry.code == self)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NIM-{:04}", self.0)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_is_registered_once_and_reads_back() {
        let all: Vec<_> = ErrorCode::all().collect();
        assert_eq!(
            all.iter().collect::<BTreeSet<_>>().len(),
            all.len(),
            "a number is used twice"
        );
        for code in all {
            assert_eq!(ErrorCode::parse(&code.to_string()), Some(code));
            assert!(!code.title().is_empty());
        }
    }

    #[test]
    fn codes_are_read_in_every_common_spelling() {
        for text in ["NIM-0001", "nim-0001", "nim-1", " 1 "] {
            assert_eq!(ErrorCode::parse(text), Some(ErrorCode::INTERNAL), "{text}");
        }
        for text in ["", "NIM-", "NIM-9999", "E1", "-1", "99999999"] {
            assert_eq!(ErrorCode::parse(text), None, "{text}");
        }
    }
}
