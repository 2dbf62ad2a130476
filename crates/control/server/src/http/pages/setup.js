// Finishes the first run: sends the form with the token of the page's address to the API.
const form = document.getElementById("setup");
const outcome = document.getElementById("outcome");
const token = new URLSearchParams(location.search).get("token");

// The secret does not stay in the address bar or in the history.
history.replaceState(null, "", location.pathname);

function tell(text, bad) {
  outcome.textContent = text;
  outcome.className = bad ? "bad" : "good";
}

async function complete(fields) {
  const response = await fetch("/api/v1/setup/complete", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token, ...fields }),
  });
  if (response.ok) return;
  const body = await response.json().catch(() => null);
  throw new Error(body?.error?.message ?? `The server answered ${response.status}.`);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { repeated, ...fields } = Object.fromEntries(new FormData(form));
  if (fields.password !== repeated) {
    tell("The two passwords differ.", true);
    return;
  }
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    await complete(fields);
    form.remove();
    tell(
      `Done. Sign in from a terminal: nimbus login --server ${location.origin} --email ${fields.email}`,
    );
  } catch (error) {
    tell(error.message, true);
    button.disabled = false;
  }
});

if (!token) {
  form.remove();
  tell("This address has no token. Open the link that `nimbus up` printed.", true);
}
