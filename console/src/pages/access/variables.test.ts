/** Credentials as people paste them. */
import { describe, expect, it } from "vitest";

import { parseVariables } from "./CloudAccountsPage";

describe("pasted variables", () => {
  it("are read with and without export, quotes and empty lines", () => {
    expect(parseVariables('export AWS_ACCESS_KEY_ID="AKIA=="\n\n AWS_SECRET_ACCESS_KEY = s=e=c \nnonsense\n')).toEqual({
      AWS_ACCESS_KEY_ID: "AKIA==",
      AWS_SECRET_ACCESS_KEY: "s=e=c",
    });
  });
});
