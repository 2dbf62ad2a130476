/** Everything behind the sign-in: who and where first, then the frame and the page. */
import { Link } from "@tanstack/react-router";

import { Empty, Failed, Skeleton } from "../components/PageState";
import { PlaceProvider } from "../modules/shell/context";
import { FrameProvider } from "../modules/shell/frame";
import { Shell } from "../modules/shell/Shell";

export function SignedIn() {
  return (
    <PlaceProvider>
      {(place, error, lost) =>
        place ? (
          <FrameProvider>
            <Shell />
          </FrameProvider>
        ) : (
          <main className="page">
            {error ? (
              <Failed what="The console cannot start" error={error} onRetry={() => location.reload()} />
            ) : lost ? (
              <Empty
                title="There is no such tenant"
                action={
                  <Link to="/" search={{ t: undefined } as never} className="btn">
                    To your own
                  </Link>
                }
              >
                The address names a tenant that does not exist, or that you may not see.
              </Empty>
            ) : (
              <Skeleton />
            )}
          </main>
        )
      }
    </PlaceProvider>
  );
}

/** The same for what does not exist and for what one may not see. */
export function NotFound() {
  return (
    <div className="page">
      <Empty
        title="Nothing is here"
        action={
          <Link to="/" className="btn">
            Home
          </Link>
        }
      >
        The address may be wrong, or it is something that you may not see.
      </Empty>
    </div>
  );
}
