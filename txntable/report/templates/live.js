"use strict";
(() => {
  const every = Number(document.body.dataset.refresh) * 1000;
  const state = document.getElementById("live-state");
  const pause = document.getElementById("live-pause");
  const said = state.textContent;
  let paused = false;

  // The parts that the server draws anew; what a person has opened, or stands on, stays so.
  const replace = (html) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const open = [...document.querySelectorAll("details[open]")].map((one) => one.id);
    const focused = document.activeElement && document.activeElement.closest("[id]");
    const scrolled = [...document.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    for (const id of ["masthead", "report"]) {
      const fresh = page.getElementById(id);
      if (!fresh) return false;
      document.getElementById(id).replaceWith(document.adoptNode(fresh));
    }
    document.title = page.title;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    document.querySelectorAll(".scroll").forEach((one, index) => { one.scrollLeft = scrolled[index] || 0; });
    if (focused && !focused.isConnected) document.getElementById(focused.id)?.querySelector("summary, a, [tabindex]")?.focus({ preventScroll: true });
    return true;
  };

  const tell = (text) => { if (state.textContent !== text) state.textContent = text; };

  const refresh = async () => {
    if (paused || document.hidden) return;
    try {
      const answer = await fetch(location.pathname, { cache: "no-store" });
      const ok = answer.ok && replace(await answer.text());
      tell(ok ? said : "The warehouse cannot be read now; this is what it was");
    } catch {
      tell("The server is gone; this is what the warehouse was");
    }
  };

  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    if (!paused) refresh();
  });
  document.addEventListener("visibilitychange", refresh);
  setInterval(refresh, every);
})();
