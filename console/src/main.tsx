/** The console begins: theme, cache, routes. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { ApiError, onSignedOut } from "./api/client";
import { Toasts } from "./components/Toasts";
import { applyDensity } from "./modules/shell/density";
import { rememberField } from "./modules/shell/returning";
import { applyTheme } from "./modules/shell/theme";
import { createConsoleRouter } from "./router";
import "./theme/tokens.css";
import "./theme/base.css";
import "./theme/shell.css";
import "./theme/pages.css";
import "./theme/run.css";
import "./theme/plan.css";

applyTheme();
applyDensity();

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // What is refused stays refused; what did not arrive is tried again.
      retry: (count, error) => !(error instanceof ApiError && error.status < 500) && count < 2,
    },
  },
});

const router = createConsoleRouter(client);

onSignedOut(() => {
  const { pathname, searchStr } = router.state.location;
  if (pathname === "/login") return;
  rememberField(pathname);
  void router.navigate({ to: "/login", search: { next: pathname + searchStr } as never });
});

// A newer server has other files: one reload, never two.
window.addEventListener("vite:preloadError", (event) => {
  const once = "nimbus.reloaded";
  if (sessionStorage.getItem(once)) return;
  event.preventDefault();
  sessionStorage.setItem(once, "yes");
  location.reload();
});

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <Toasts>
          <RouterProvider router={router} />
        </Toasts>
      </QueryClientProvider>
    </StrictMode>,
  );
}
