import { describe, expect, it } from "vitest";

import { chosen } from "./notifications";
import type { Preferences } from "./notifications";

const BEFORE: Preferences = {
  kinds: [
    { kind: "run_failed", in_app: "instant", email: "instant" },
    { kind: "*", in_app: "instant", email: "instant" },
  ],
  digest: { period: "weekly", hour: 7, weekday: 1 },
  mail: true,
};

describe("what somebody chose", () => {
  it("is shown before the server has answered, and leaves the rest as it was", () => {
    const after = chosen(BEFORE, { set: [{ kind: "run_failed", channel: "email", mode: "digest" }] });
    expect(after.kinds).toEqual([{ kind: "run_failed", in_app: "instant", email: "digest" }, BEFORE.kinds[1]]);
    expect(after.digest).toEqual(BEFORE.digest);
  });

  it("is what the next choice goes on from", () => {
    const friday = chosen(BEFORE, { digest: { period: "weekly", hour: 7, weekday: 5 } });
    expect(chosen(friday, { digest: { ...friday.digest, hour: 6 } }).digest).toEqual({ period: "weekly", hour: 6, weekday: 5 });
  });
});
