/** Until when AWS supports versions of Kubernetes without charging extra. */

/** Last days of standard support, from the release calendar of EKS. */
const STANDARD_SUPPORT_ENDS: Readonly<Record<string, string>> = {
  "1.31": "2025-11-26",
  "1.32": "2026-03-23",
  "1.33": "2026-07-29",
  "1.34": "2026-12-02",
  "1.35": "2027-03-27",
};

export const DEFAULT_KUBERNETES_VERSION = "1.35";

const NOTICE_DAYS = 60;
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * What to say about a version on a day; nothing while all is well. Clusters refuse extended support,
 * so AWS upgrades them by itself when standard support ends, at a time that nobody chose.
 */
export function supportNotice(version: string, today: Date): string | undefined {
  const ends = STANDARD_SUPPORT_ENDS[version];
  if (ends === undefined) {
    return undefined;
  }
  const days = Math.floor((Date.parse(ends) - today.getTime()) / DAY_MS);
  if (days > NOTICE_DAYS) {
    return undefined;
  }
  const when = days < 0 ? `ended on ${ends}` : `ends on ${ends}`;
  return `standard support of Kubernetes ${version} ${when}; raise services-eks:kubernetesVersion by one minor version`;
}
