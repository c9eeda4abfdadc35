// Loads the page again when the server reports a change, and replaces the parts that are marked as live.
"use strict";

(() => {
  const address = document.body.dataset.events;
  if (!address) return;
  let loads = false;
  let again = false;

  const key = (element) => element.id || element.getAttribute("href") || element.textContent;

  function replace(old, fresh) {
    if (old.innerHTML === fresh.innerHTML) return;
    const open = new Set([...old.querySelectorAll("details[open] > summary")].map(key));
    const offsets = [...old.querySelectorAll(".scroll")].map((region) => region.scrollLeft);
    const active = document.activeElement;
    const focused = old.contains(active) && active !== old ? [active.localName, key(active)] : null;
    old.replaceChildren(...fresh.childNodes);
    for (const summary of old.querySelectorAll("summary")) {
      if (open.has(key(summary))) summary.parentElement.open = true;
    }
    old.querySelectorAll(".scroll").forEach((region, index) => {
      region.scrollLeft = offsets[index] || 0;
    });
    if (focused) {
      const same = [...old.querySelectorAll(focused[0])].find((element) => key(element) === focused[1]);
      if (same) same.focus({ preventScroll: true });
    }
  }

  async function renew() {
    if (loads) {
      again = true;
      return;
    }
    loads = true;
    try {
      const response = await fetch(location.href, { credentials: "same-origin" });
      if (response.status === 404) location.reload();
      if (response.ok) {
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        document.title = page.title;
        for (const old of document.querySelectorAll("[data-live]")) {
          const fresh = page.querySelector(`${old.localName}[data-live]`);
          if (fresh) replace(old, fresh);
        }
      }
    } catch {
      // The next message tries again.
    }
    loads = false;
    if (again) {
      again = false;
      renew();
    }
  }

  const events = new EventSource(address);
  // Changes before the connection are unknown.
  events.addEventListener("open", renew);
  events.addEventListener("change", renew);
})();
