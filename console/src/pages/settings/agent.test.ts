/** How sessions are called. */
import { describe, expect, it } from "vitest";

import { agentWords } from "./agent";

describe("a session's program", () => {
  it("is the browser and the system that it says first of all", () => {
    expect(agentWords("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/153.0.0.0 Safari/537.36")).toBe("Chrome on Linux");
    expect(agentWords("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/153.0 Safari/537.36 Edg/153.0")).toBe("Edge on Windows");
    expect(agentWords("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1")).toBe("Safari on iOS");
  });

  it("is its own words where it is no browser, and a program where it says nothing", () => {
    expect([agentWords("nimbus/0.1.0"), agentWords(""), agentWords(null)]).toEqual(["nimbus/0.1.0", "a program", "a program"]);
  });
});
