// A provider as it is shipped: what it draws at random is kept until its keepers change.
import * as random from "@pulumi/random";

const pet = new random.RandomPet("pet", { length: 2, keepers: { generation: "1" } });
const password = new random.RandomPassword("password", { length: 12, special: false });
new random.RandomId("id", { byteLength: 4, prefix: "n-" });
const integer = new random.RandomInteger("integer", { min: 7, max: 7 });
export const name = pet.id;
export const hidden = password.result;
export const seven = integer.result;
