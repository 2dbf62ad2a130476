/** A list's saved views: choose one, keep the present one under a name, forget one. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Bookmark, Check } from "lucide-react";
import { useState } from "react";
import type { FormEvent } from "react";

import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Field } from "../../components/Field";
import { Menu } from "../../components/Menu";
import { useSay } from "../../components/Toasts";
import { usePlace } from "../shell/context";
import { dropView, keepView, readViews, viewOf } from "./views";

export function SavedViews({ page }: { page: string }) {
  const { me } = usePlace();
  const person = me.user.id;
  const search = useSearch({ strict: false }) as Record<string, unknown>;
  const navigate = useNavigate();
  const say = useSay();
  const [views, setViews] = useState(() => readViews(localStorage, person, page));
  const [naming, setNaming] = useState(false);
  const here = JSON.stringify(viewOf(search));
  const keep = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
    setViews(keepView(localStorage, person, page, { name, search: viewOf(search) }));
    setNaming(false);
    say(`${name} is kept on this machine.`);
  };
  return (
    <>
      <Menu
        label="Saved views"
        button={(props) => (
          <button type="button" className="btn sm" {...props}>
            <Bookmark className="s" aria-hidden />
            Views
            {views.length > 0 ? <span className="mute num">{views.length}</span> : null}
          </button>
        )}
      >
        {(close) => (
          <>
            {views.map((view) => (
              <button
                key={view.name}
                type="button"
                role="menuitem"
                className="item"
                onClick={() => {
                  close();
                  void navigate({ to: ".", search: ((before: { t?: string }) => ({ ...view.search, t: before.t })) as never });
                }}
              >
                {JSON.stringify(viewOf(view.search)) === here ? <Check className="s" aria-label="shown now" /> : <Bookmark className="s" aria-hidden />}
                <span className="trunc">{view.name}</span>
              </button>
            ))}
            <button
              type="button"
              role="menuitem"
              className="item"
              onClick={() => {
                close();
                setNaming(true);
              }}
            >
              Save this view…
            </button>
            {views
              .filter((view) => JSON.stringify(viewOf(view.search)) === here)
              .map((view) => (
                <button
                  key={view.name}
                  type="button"
                  role="menuitem"
                  className="item"
                  onClick={() => {
                    close();
                    setViews(dropView(localStorage, person, page, view.name));
                  }}
                >
                  Forget {view.name}
                </button>
              ))}
          </>
        )}
      </Menu>
      {naming ? (
        <Dialog title="Save this view" onClose={() => setNaming(false)}>
          <form className="col" onSubmit={keep}>
            <Field label="Name" name="name" required autoFocus maxLength={60} hint="The filters as they are now, for you on this machine." />
            <div className="row" style={{ justifyContent: "flex-end" }}>
              <Button onClick={() => setNaming(false)}>Cancel</Button>
              <Button kind="pri" type="submit">
                Save
              </Button>
            </div>
          </form>
        </Dialog>
      ) : null}
    </>
  );
}
