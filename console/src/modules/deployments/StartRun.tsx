/** Asking for a run: what it is, where, and what happens if it fails. Destroying asks for the deployment's id. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { useStart } from "../../api/queries/runs";
import type { StartAct } from "../../api/queries/runs";
import { stateQuery } from "../../api/queries/states";
import type { StatePlace } from "../../api/queries/states";
import { Button } from "../../components/Button";
import { CommandLine } from "../../components/Copy";
import { Dialog } from "../../components/Dialog";
import { Field, SelectField, Tick } from "../../components/Field";
import { Notice } from "../../components/PageState";
import { runAddress } from "../runs/RunTable";
import { useMay } from "../shell/context";

interface Props {
  act: StartAct;
  deployment: string;
  environment: string;
  tenant: string | undefined;
  /** Only this unit. */
  only?: string;
  /** The plan that a deploy is held to. */
  plan?: { id: string; number: string; rehearsal: boolean };
  onClose: () => void;
}

const TEXTS: Record<StartAct, { title: string; about: string; verb: string }> = {
  preview: {
    title: "Plan",
    about: "Every program says what it would do, with the planned outputs of those before it. Nothing changes.",
    verb: "Plan",
  },
  deploy: {
    title: "Deploy",
    about: "Units start as soon as those that they need are done. What has not changed is skipped.",
    verb: "Deploy",
  },
  rollback: {
    title: "Roll back",
    about: "Every unit goes back to its last good state, last first. What existed before is never destroyed.",
    verb: "Roll back",
  },
  refresh: {
    title: "Refresh",
    about: "Every unit is looked at and what is really there is recorded. Nothing in the cloud changes; what has drifted is deployed again by the next deploy.",
    verb: "Refresh",
  },
  destroy: {
    title: "Destroy",
    about: "Everything that this deployment made in this environment goes, last first. Protected resources stay.",
    verb: "Destroy",
  },
};

export function StartRunDialog({ act, deployment, environment, tenant, only, plan, onClose }: Props) {
  const texts = TEXTS[act];
  const start = useStart(tenant);
  const navigate = useNavigate();
  const [rehearsal, setRehearsal] = useState(plan?.rehearsal ?? true);
  const [force, setForce] = useState(false);
  const [types, setTypes] = useState(false);
  const [onFailure, setOnFailure] = useState("rollback");
  const [typed, setTyped] = useState("");
  const [order, setOrder] = useState("");
  const confirmed = act !== "destroy" || typed === deployment;
  const verb = act === "preview" ? "preview" : act;
  const flags = [rehearsal ? " --rehearse" : "", force ? " --force" : "", types || (act !== "preview" && act !== "deploy") ? "" : " --no-typecheck", rehearsal && order.trim() ? ` --order '${order.trim()}'` : ""].join("");

  const begin = () => {
    const body = {
      environment,
      rehearsal,
      ...(only ? { stacks: [only] } : {}),
      ...(plan ? { plan: plan.id } : {}),
      ...(rehearsal && order.trim() ? { orders: [order.trim()] } : {}),
      ...(act === "preview" || act === "deploy" ? { transpile_only: !types } : {}),
      ...(force ? { force } : {}),
      ...(act === "deploy" ? { on_failure: onFailure } : {}),
    };
    start.mutate(
      { act, deployment, body },
      {
        onSuccess: (run) => {
          onClose();
          void navigate({ to: runAddress(run) });
        },
      },
    );
  };

  return (
    <Dialog
      title={`${texts.title} ${only ? `${only} of ` : ""}${deployment} in ${environment}`}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind={act === "destroy" ? "danger" : "pri"}
            busy={start.isPending}
            off={confirmed ? null : "Type the id of the deployment first."}
            onClick={begin}
          >
            {start.isPending ? "Asking…" : `${texts.verb}${rehearsal ? " (rehearsal)" : ""}`}
          </Button>
        </>
      }
    >
      <p className="sec">{texts.about}</p>
      {start.error ? <Notice tone="bad">{start.error.message}</Notice> : null}
      {plan ? (
        <Notice tone="ok">
          Held to plan {plan.number}{plan.rehearsal ? ", on the simulated cloud" : ""}: what it shows is done, or nothing if anything moved since.
        </Notice>
      ) : (
        <Tick checked={rehearsal} onChange={(event) => setRehearsal(event.target.checked)}>
          Rehearse on a simulated cloud
        </Tick>
      )}
      {act === "deploy" ? (
        <>
          <SelectField label="If a unit fails" value={onFailure} onChange={(event) => setOnFailure(event.target.value)}>
            <option value="rollback">Roll back everything that this run did</option>
            <option value="hold">Stop there and keep what is done</option>
            <option value="continue">Go on with units that do not need it</option>
          </SelectField>
          {plan ? null : (
            <Tick checked={force} onChange={(event) => setForce(event.target.checked)}>
              Run units that have not changed as well
            </Tick>
          )}
        </>
      ) : null}
      {act === "deploy" || act === "preview" ? (
        <Tick checked={types} onChange={(event) => setTypes(event.target.checked)}>
          Check the types of programs first
        </Tick>
      ) : null}
      {act === "deploy" && rehearsal && !plan ? (
        <Field
          label="Break something (optional)"
          value={order}
          autoComplete="off"
          spellCheck={false}
          placeholder="on: create, type: aws:s3/*, do: fail"
          hint="An order to the simulated cloud: fail, throttle, lose, half, stall or vanish."
          onChange={(event) => setOrder(event.target.value)}
        />
      ) : null}
      {act === "destroy" ? <WhatGoes place={{ deployment, environment, rehearsal }} tenant={tenant} /> : null}
      {act === "destroy" ? (
        <Field
          label={`Type ${deployment} to confirm`}
          value={typed}
          autoComplete="off"
          onChange={(event) => setTyped(event.target.value)}
        />
      ) : null}
      {only || plan ? null : <CommandLine command={`nimbus ${verb} ${deployment} --environment ${environment}${flags}`} />}
    </Dialog>
  );
}

/** What would go, unit by unit, and what is protected. */
function WhatGoes({ place, tenant }: { place: StatePlace; tenant: string | undefined }) {
  const may = useMay();
  const state = useQuery({ ...stateQuery(tenant, place), enabled: may("deployment:state:read") === null });
  if (!state.data) return null;
  const units = state.data
    .map((unit) => ({ name: unit.unit, goes: unit.resources.filter((one) => one.custom && !one.external).length, stays: unit.resources.filter((one) => one.protect).length }))
    .filter((unit) => unit.goes > 0);
  const total = units.reduce((sum, unit) => sum + unit.goes, 0);
  const kept = units.reduce((sum, unit) => sum + unit.stays, 0);
  if (total === 0) return <Notice>Nothing is recorded there: there is nothing to destroy.</Notice>;
  return (
    <Notice tone="warn">
      <p>
        <b>{total.toLocaleString("en")} resources</b> of {units.length} units go{kept > 0 ? `, ${kept} are protected and stay` : ""}.
      </p>
      <p className="mute small">{units.map((unit) => `${unit.name} ${unit.goes}`).join(", ")}</p>
    </Notice>
  );
}
