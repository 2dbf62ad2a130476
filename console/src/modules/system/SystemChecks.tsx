/** What was looked at in an installation, with what to do about it. */
import type { SystemView } from "../../api/queries/reviews";
import { StatusShape } from "../../components/StatusShape";
import type { Shape } from "../../components/StatusShape";

const SHAPES: Record<string, [Shape, string]> = {
  ok: ["ok", "in order"],
  warning: ["warning", "look at this"],
  failed: ["failed", "has to be mended"],
};

export function SystemChecks({ checks }: { checks: SystemView["checks"] }) {
  return (
    <ul className="card" aria-label="System check">
      {checks.map((check) => {
        const [shape, word] = SHAPES[check.status] ?? ["unknown", check.status];
        return (
          <li key={check.kind} className="risk check">
            <StatusShape shape={shape} label={word} />
            <span className="b check-name">{check.name}</span>
            <span className="grow">
              <span className="sec">{check.message}</span>
              {check.help ? <span className="mute small check-help">{check.help}</span> : null}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
