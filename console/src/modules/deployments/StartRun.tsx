/** Asking for a run: what it is, where, and what happens if it fails. Destroying asks for the deployment's id. */
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { useStart } from "../../api/queries/runs";
import type { StartAct } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { CommandLine } from "../../components/Copy";
import { Dialog } from "../../components/Dialog";
import { Field, SelectField, Tick } from "../../components/Field";
import { Notice } from "../../components/PageState";
import { runAddress } from "../runs/RunTable";

interface Props {
  act: StartAct;
  deployment: string;
  environment: string;
  tenant: string | undefined;
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
  destroy: {
    title: "Destroy",
    about: "Everything that this deployment made in this environment goes, last first. Protected resources stay.",
    verb: "Destroy",
  },
};

export function StartRunDialog({ act, deployment, environment, tenant, onClose }: Props) {
  const texts = TEXTS[act];
  const start = useStart(tenant);
  const navigate = useNavigate();
  const [rehearsal, setRehearsal] = useState(true);
  const [force, setForce] = useState(false);
  const [types, setTypes] = useState(false);
  const [onFailure, setOnFailure] = useState("rollback");
  const [typed, setTyped] = useState("");
  const confirmed = act !== "destroy" || typed === deployment;
  const verb = act === "preview" ? "preview" : act;
  const flags = [rehearsal ? " --rehearse" : "", force ? " --force" : "", types || act === "rollback" || act === "destroy" ? "" : " --no-typecheck"].join("");

  const begin = () => {
    const body = {
      environment,
      rehearsal,
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
      title={`${texts.title} ${deployment} in ${environment}`}
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
      <Tick checked={rehearsal} onChange={(event) => setRehearsal(event.target.checked)}>
        Rehearse on a simulated cloud
      </Tick>
      {act === "deploy" ? (
        <>
          <SelectField label="If a unit fails" value={onFailure} onChange={(event) => setOnFailure(event.target.value)}>
            <option value="rollback">Roll back everything that this run did</option>
            <option value="hold">Stop there and keep what is done</option>
            <option value="continue">Go on with units that do not need it</option>
          </SelectField>
          <Tick checked={force} onChange={(event) => setForce(event.target.checked)}>
            Run units that have not changed as well
          </Tick>
        </>
      ) : null}
      {act === "deploy" || act === "preview" ? (
        <Tick checked={types} onChange={(event) => setTypes(event.target.checked)}>
          Check the types of programs first
        </Tick>
      ) : null}
      {act === "destroy" ? (
        <Field
          label={`Type ${deployment} to confirm`}
          value={typed}
          autoComplete="off"
          onChange={(event) => setTyped(event.target.value)}
        />
      ) : null}
      <CommandLine command={`nimbus ${verb} ${deployment} --environment ${environment}${flags}`} />
    </Dialog>
  );
}
