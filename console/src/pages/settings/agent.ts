/** What a program calls itself, in words: `Chrome on Linux`. */

/** Others call themselves by these names too: the first one that fits is meant. */
const BROWSERS: [RegExp, string][] = [
  [/\bEdg\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bFirefox\//, "Firefox"],
  [/\b(Headless)?Chrome\//, "Chrome"],
  [/\bVersion\/.*\bSafari\//, "Safari"],
];
const SYSTEMS: [RegExp, string][] = [
  [/\b(iPhone|iPad)\b/, "iOS"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\b(Linux|X11)\b/, "Linux"],
];

export function agentWords(agent: string | null | undefined): string {
  if (!agent) return "a program";
  const browser = BROWSERS.find(([test]) => test.test(agent))?.[1];
  const system = SYSTEMS.find(([test]) => test.test(agent))?.[1];
  // What is no browser says in short what it is.
  return browser ? [browser, system].filter(Boolean).join(" on ") : agent;
}
