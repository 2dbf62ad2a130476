// Secrets and unknown values as they travel: an object with a signature, and a fixed text.
"use strict";

const SIGNATURE = "4dabf18193072939515e22adb298388d";
const SECRET = "1b47061264138c4ac30d75fd1eb44270";
const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

/** The value inside a secret, or the value itself. */
function unwrap(value) {
    const secret = value && typeof value === "object" && value[SIGNATURE] === SECRET;
    return secret ? value.value : value;
}

/** A value that nobody should see. */
function secret(value) {
    return { [SIGNATURE]: SECRET, value };
}

/** What becomes of a text that may not be known yet. */
function map(value, change) {
    return value === UNKNOWN || typeof value !== "string" ? value : change(value);
}

module.exports = { map, secret, unwrap };
