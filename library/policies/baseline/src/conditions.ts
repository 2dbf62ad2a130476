/** Conditions of policies: which of them say who may come, and which only look like it. */
import { isInternet } from "./networks";
import { isObject, type Props } from "./rule";

/** Whether one value of a key names somebody, or at least somebody's place. */
type Names = (value: string) => boolean;

const exactly: Names = (value) => value.trim() !== "" && !/[*?]/.test(value);

/** An ARN of one account, or of something that only one account can have. */
const ofAnAccount: Names = (value) => {
  const [arn, , , , account = "", ...rest] = value.split(":");
  if (arn !== "arn") {
    return false;
  }
  return account === "" ? exactly(rest.join(":")) : exactly(account);
};

const inAnOrganisation: Names = (value) => /^o-[a-z0-9]+(\/|$)/.test(value);
const withABeginning: Names = (value) => /^[^*?]{8,}/.test(value);
const inANetwork: Names = (value) =>
  exactly(value) && !isInternet(value.includes("/") ? value : `${value}/128`);

/**
 * Keys that are about who asks, in lower case because AWS ignores it. Whether a request is encrypted,
 * when it comes and what browser it names says nothing about that.
 */
const IDENTITY: Readonly<Record<string, Names>> = {
  "aws:principalaccount": exactly,
  "aws:principalarn": ofAnAccount,
  "aws:principalorgid": exactly,
  "aws:principalorgpaths": inAnOrganisation,
  "aws:sourceaccount": exactly,
  "aws:sourcearn": ofAnAccount,
  "aws:sourceip": inANetwork,
  "aws:sourceorgid": exactly,
  "aws:sourceorgpaths": inAnOrganisation,
  "aws:sourceowner": exactly,
  "aws:sourcevpc": exactly,
  "aws:sourcevpce": exactly,
  "aws:userid": withABeginning,
  "aws:vpcsourceip": inANetwork,
  "elasticfilesystem:accesspointarn": ofAnAccount,
  "kms:calleraccount": exactly,
  "s3:dataaccesspointaccount": exactly,
  "s3:dataaccesspointarn": ofAnAccount,
};

/** Comparisons that fail when the key is missing and hold for what is named. */
const COMPARES = /^(ForAnyValue:)?(String|Arn)(Equals|Like)(IgnoreCase)?$|^IpAddress$/i;

/** Whether a condition limits who may come: one that every request can meet does not. */
export function limits(condition: Props | undefined): boolean {
  const named = compared(condition).some(({ key, values }) => {
    const names = IDENTITY[key];
    return names !== undefined && values.length > 0 && values.every(names);
  });
  return named || throughMountTarget(condition);
}

/** Mount targets are in a network, and their security groups say who comes. */
function throughMountTarget(condition: Props | undefined): boolean {
  return compared(condition, /^Bool$/i).some(
    ({ key, values }) =>
      key === "elasticfilesystem:accessedviamounttarget" &&
      values.length > 0 &&
      values.every((value) => value.toLowerCase() === "true"),
  );
}

/** Subjects of tokens that name a repository, a service account or a user. */
const SUBJECTS: ReadonlyArray<readonly [key: RegExp, names: RegExp]> = [
  [/^token\.actions\.githubusercontent\.com:sub$/, /^repo:[^*?/]+\/|^repository_owner:[^*?]/],
  // Audiences that somebody was given; that of GitHub's tokens is the same for everybody.
  [/^(cognito-identity\.amazonaws|accounts\.google)\.com:aud$/, /^[^*?]+$/],
  [/:sub$/, /^[^*?]{3,}/],
];

/** Whether a trust in tokens says whose tokens: everybody can get some from a public service. */
export function namesSubject(condition: Props | undefined): boolean {
  return compared(condition).some(({ key, values }) => {
    const [, names] = SUBJECTS.find(([one]) => one.test(key)) ?? [];
    return names !== undefined && values.length > 0 && values.every((value) => names.test(value));
  });
}

/** Whether a condition limits what is used: by tags, by names, or through which service. */
export function limitsUse(condition: Props | undefined): boolean {
  const about = /resourcetag\/|resourcealiases$|viaservice$|resourceaccount$|encryptioncontext:/;
  return compared(condition).some(
    ({ key, values }) => about.test(key) && values.every((value) => !/^[*?]*$/.test(value)),
  );
}

function compared(
  condition: Props | undefined,
  operators = COMPARES,
): Array<{ key: string; values: string[] }> {
  return Object.entries(condition ?? {})
    .filter(([operator, keys]) => operators.test(operator) && isObject(keys))
    .flatMap(([, keys]) => Object.entries(keys as Props))
    .map(([key, values]) => ({
      key: key.toLowerCase(),
      values: [values].flat().map(String),
    }));
}
