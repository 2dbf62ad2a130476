/** The policy pack: what every unit keeps, checked in every preview and every deployment. */
import { PolicyPack } from "@pulumi/policy";
import { resourcePolicies, stackPolicies } from "./src/pack";

new PolicyPack("baseline", {
  enforcementLevel: "mandatory",
  policies: [...resourcePolicies(), ...stackPolicies()],
});
