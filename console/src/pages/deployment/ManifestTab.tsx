/** The manifest as text. Saving names the revision that was read, so nobody's change is lost. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { ApiError } from "../../api/client";
import { manifestQuery, useSaveManifest } from "../../api/queries/deployments";
import type { Deployment } from "../../api/queries/deployments";
import { Button } from "../../components/Button";
import { Failed, Notice, Skeleton } from "../../components/PageState";
import { useSay } from "../../components/Toasts";
import { useMay, usePlace } from "../../modules/shell/context";

export function ManifestTab({ deployment }: { deployment: Deployment }) {
  const { named } = usePlace();
  const may = useMay();
  const say = useSay();
  const manifest = useQuery(manifestQuery(named, deployment.id));
  const save = useSaveManifest(named, deployment.id);
  const [draft, setDraft] = useState<{ text: string; revision: number } | null>(null);
  if (manifest.isPending) return <Skeleton />;
  if (manifest.isError) return <Failed what="The manifest was not read" error={manifest.error} onRetry={() => void manifest.refetch()} />;
  if (!draft) {
    return (
      <>
        <div className="row">
          <span className="mute">Revision {deployment.revision}</span>
          <span className="grow" />
          <Button
            size="sm"
            off={may("deployment:definition:update")}
            onClick={() => setDraft({ text: manifest.data, revision: deployment.revision })}
          >
            Edit
          </Button>
        </div>
        <pre className="text code" tabIndex={0} aria-label="Manifest">
          {manifest.data}
        </pre>
      </>
    );
  }
  const moved = save.error instanceof ApiError && save.error.status === 409;
  return (
    <>
      {save.error ? (
        <Notice tone="bad">
          {save.error.message}
          {moved ? " Somebody else saved meanwhile: copy your text, then read the new revision." : null}
          {save.error instanceof ApiError
            ? save.error.details.map((detail) => <div key={detail.field}>{`${detail.field}: ${detail.message}`}</div>)
            : null}
        </Notice>
      ) : null}
      <textarea
        className="input"
        rows={28}
        aria-label="Manifest"
        spellCheck={false}
        value={draft.text}
        onChange={(event) => setDraft({ ...draft, text: event.target.value })}
      />
      <div className="row">
        <Button
          kind="pri"
          busy={save.isPending}
          onClick={() =>
            save.mutate(
              { manifest: draft.text, revision: draft.revision },
              {
                onSuccess: () => {
                  setDraft(null);
                  say("The manifest is saved. Nothing runs until you deploy.");
                },
              },
            )
          }
        >
          Save
        </Button>
        <Button onClick={() => setDraft(null)}>Discard</Button>
      </div>
    </>
  );
}
