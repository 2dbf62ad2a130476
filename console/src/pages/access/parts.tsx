/** Parts that the pages of administration share. */
import type { UseMutationResult } from "@tanstack/react-query";
import { useState } from "react";
import type { FormEvent, ReactNode } from "react";

import { ApiError } from "../../api/client";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Notice } from "../../components/PageState";

export type Values = Record<string, string>;

interface FormProps<Input> {
  title: string;
  verb: string;
  act: UseMutationResult<unknown, Error, Input>;
  /** What the fields say; nothing if it is not complete. */
  input: (values: Values) => Input;
  onDone: (output: unknown) => void;
  onClose: () => void;
  children: (problem: (field: string) => string | undefined) => ReactNode;
}

/** A dialog with a form that makes or changes something. */
export function FormDialog<Input>({ title, verb, act, input, onDone, onClose, children }: FormProps<Input>) {
  const error = act.error;
  const problem = (field: string) => (error instanceof ApiError ? error.field(field) : undefined);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const values: Values = {};
    new FormData(event.currentTarget).forEach((value, name) => {
      values[name] = values[name] ? `${values[name]},${String(value)}` : String(value);
    });
    act.mutate(input(values), { onSuccess: onDone });
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit} className="col" style={{ gap: 12 }}>
        {error ? <Notice tone="bad">{error.message}</Notice> : null}
        {children(problem)}
        <div className="row" style={{ justifyContent: "flex-end" }}>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="pri" busy={act.isPending}>
            {act.isPending ? "Saving…" : verb}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** What has to be typed. */
  word: string;
  verb: string;
  busy: boolean;
  error: Error | null;
  onConfirm: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** For what cannot be undone by a click: says what goes, and asks for its name. */
export function ConfirmDialog({ title, word, verb, busy, error, onConfirm, onClose, children }: ConfirmProps) {
  const [typed, setTyped] = useState("");
  return (
    <Dialog
      title={title}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" busy={busy} off={typed === word ? null : `Type ${word} first.`} onClick={onConfirm}>
            {verb}
          </Button>
        </>
      }
    >
      {error ? <Notice tone="bad">{error.message}</Notice> : null}
      {children}
      <label className="field">
        <span className="label">Type {word} to confirm</span>
        <input className="input" value={typed} autoComplete="off" onChange={(event) => setTyped(event.target.value)} />
      </label>
    </Dialog>
  );
}
