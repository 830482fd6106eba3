// What an assessor chose, until the server has confirmed it. Loaded before desk.js, which says what to do with answers.
//
// Each act is an entry of its own in localStorage, named by user and batch: another person or another batch never sends
// it, and two tabs do not write over each other. Sent twice by two tabs it is still one judgment, since its key is the
// same. Acts are sent one after the other in the order in which they were chosen.

"use strict";

// Read anew for each request: signing in again in another tab changes it.
const csrfToken = () => {
  const name = document.getElementById("desk").dataset.csrfCookie;
  const cookie = document.cookie.split("; ").find((item) => item.startsWith(`${name}=`));
  return cookie ? cookie.slice(cookie.indexOf("=") + 1) : document.querySelector("[name=csrfmiddlewaretoken]").value;
};
// crypto.randomUUID exists only on https and localhost; a desk may well be served by plain http in a house.
const newKey = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
};
const storage = {
  // Full, forbidden or broken storage must not stop the work: memory then carries it until the page is left.
  set(key, value) {
    try { localStorage.setItem(key, value); } catch { /* memory has it */ }
  },
  get(key) {
    try { return localStorage.getItem(key); } catch { return null; }
  },
  remove(key) {
    try { localStorage.removeItem(key); } catch { /* was not there */ }
  },
  keys() {
    try { return Object.keys(localStorage); } catch { return []; }
  },
};

class Outbox {
  // `send(act)` answers "done", "offline", "signed-out" or { refused: why }; `changed()` is called after each change.
  constructor(prefix, send, changed) {
    this.prefix = prefix;
    this.send = send;
    this.changed = changed;
    this.acts = new Map();
    this.state = "idle"; // idle, sending, offline, signed-out
    this.wait = 0;
    this.load();
    window.addEventListener("online", () => this.flush());
    window.addEventListener("storage", (event) => {
      if (event.key && event.key.startsWith(this.prefix)) this.load();
    });
  }

  load() {
    const stored = storage.keys().filter((key) => key.startsWith(this.prefix));
    for (const key of this.acts.keys()) {
      if (this.acts.get(key).stored && !stored.includes(this.prefix + key)) this.acts.delete(key);
    }
    for (const name of stored) {
      try {
        const act = JSON.parse(storage.get(name));
        if (!this.acts.has(act.key)) this.acts.set(act.key, { ...act, stored: true });
      } catch { storage.remove(name); }
    }
    this.changed();
  }

  add(act) {
    storage.set(this.prefix + act.key, JSON.stringify(act));
    this.acts.set(act.key, { ...act, stored: storage.get(this.prefix + act.key) !== null });
    this.changed();
    this.flush();
  }

  remove(key) {
    this.acts.delete(key);
    storage.remove(this.prefix + key);
    this.changed();
  }

  list() {
    return [...this.acts.values()].sort((a, b) => a.chosen - b.chosen);
  }

  of(pair) {
    return this.list().filter((act) => act.pair === pair).pop();
  }

  async flush() {
    if (this.state === "sending") return;
    clearTimeout(this.timer);
    for (;;) {
      const act = this.list().find((item) => !item.refused);
      if (!act) break;
      this.enter("sending");
      const outcome = await this.send(act);
      if (outcome === "done") {
        this.wait = 0;
        this.remove(act.key);
      } else if (outcome.refused) {
        this.acts.set(act.key, { ...act, refused: outcome.refused });
      } else {
        this.enter(outcome);
        if (outcome === "offline") {
          this.wait = Math.min(30, this.wait ? this.wait * 2 : 1);
          this.timer = setTimeout(() => this.flush(), this.wait * 1000);
        }
        return;
      }
    }
    this.enter("idle");
  }

  enter(state) {
    this.state = state;
    this.changed();
  }
}

// POST to the desk; what comes back is data, or why there is none.
async function post(url, fields) {
  let response;
  try {
    response = await fetch(url, {
      method: "POST",
      headers: { Accept: "application/json", "X-CSRFToken": csrfToken() },
      body: new URLSearchParams(fields),
      redirect: "manual",
      signal: AbortSignal.timeout(30000), // a line that hangs is no line; the same act may be sent again
      credentials: "same-origin",
    });
  } catch {
    return { failed: "offline" };
  }
  if (response.type === "opaqueredirect") return { failed: "signed-out" };
  if (response.status >= 500 || response.status === 429) return { failed: "offline" };
  try {
    const data = await response.json();
    return response.ok ? { data } : { refused: data.error };
  } catch {
    return response.status === 403 ? { failed: "signed-out" } : { refused: `The server answered ${response.status}.` };
  }
}
