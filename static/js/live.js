// Live updates: an event names what has changed, and the page fetches those parts of itself again.
// Rows never move under the cursor. A list only shows how many new rows there are.
(() => {
  'use strict';
  const { $, $$, must, now, reveal, parse } = window.dlo;
  // What a pointer holds down is replaced only after it is released, because a click would be lost.
  /** @type {Node | null} */
  let held = null;
  /** @type {Set<string>} */
  let missed = new Set();
  document.addEventListener('pointerdown', ev => { held = /** @type {Node} */ (ev.target); }, true);
  for (const end of ['pointerup', 'pointercancel']) document.addEventListener(end, () => setTimeout(() => {
    const kinds = missed;
    held = null; missed = new Set();
    if (kinds.size) refresh(kinds).catch(() => { /* the next event tries again */ });
  }), true);
  /** @param {Set<string>} kinds */
  const refresh = async kinds => {
    const response = await fetch(location.href, { headers: { Accept: 'text/html', 'Dlo-Live': [...kinds].join(' ') } });
    if (!response.ok) return;
    const doc = await parse(response);
    for (const kind of kinds) {
      for (const old of $$(`[data-live~="${kind}"]`)) {
        const next = doc.getElementById(old.id);
        if (held && old.contains(held)) { missed.add(kind); continue; }
        if (!next || old.contains(document.activeElement) || $('details[open]', old)) continue; // somebody is reading or typing there
        reveal(next);
        dlo.times?.(next.parentElement ?? doc);
        if (next.outerHTML !== old.outerHTML) old.replaceWith(document.importNode(next, true));
      }
    }
    const fresh = $('[data-fresh]'), search = new URLSearchParams(location.search);
    if (fresh && kinds.has('letters') && !search.get('after') && !search.get('before')) {
      const ids = $$('input[data-pick]').map(x => x.value), newest = ids[0], shown = new Set(ids);
      const page = $$('input[data-pick]', doc).map(x => x.value), n = page.filter(x => !shown.has(x) && newest !== undefined && x > newest).length;
      fresh.hidden = !n;
      if (n) must('a', fresh).textContent = n + (n === page.length ? ' or more' : '') + ' new, show';
    }
    const groups = $('[data-fresh-groups]');
    if (groups && kinds.has('letters')) {
      const n = $$('input[data-pick]', doc).filter(x => !dlo.triage?.seen.has(x.value)).length;
      groups.hidden = !n;
      must('[data-fresh-count]', groups).textContent = n + (n === 1 ? ' new group' : ' new groups');
    }
    live();
    tick();
    document.dispatchEvent(new Event('dlo:live'));
  };
  // Shows the state of live updates. The page may be up to date while a broker is away.
  let live = () => {};
  const events = document.body.dataset.events;
  if (events !== undefined && window.EventSource) {
    const state = $('[data-live-state]'), button = $('[data-live-pause]');
    /** @type {(text: string, tone: string) => void} */
    const say = (text, tone) => { if (state) { state.hidden = false; must('[data-live-word]', state).textContent = text; must('.dot', state).className = 'dot ' + tone; } };
    let paused = false, fetching = false, timer = 0, before = 0;
    live = () => { if (paused) say('Paused', 'mute'); else if ($('[data-away]')) say('Live updates, broker away', 'warn'); else say('Live updates', ''); };
    /** @type {Set<string>} */
    let changed = new Set();
    const run = () => {
      timer = 0;
      if (paused || document.hidden || !changed.size) return;
      const kinds = changed;
      changed = new Set(); before = Date.now(); fetching = true;
      refresh(kinds).catch(() => say('Stale', 'warn')).finally(() => { fetching = false; if (changed.size) soon(); });
    };
    const soon = () => { if (!timer && !fetching) timer = setTimeout(run, Math.max(250, before + 1500 - Date.now())); }; // only one refresh at a time

    // A hidden tab closes its event stream, because a browser opens only six connections to one
    // host.
    /** @type {EventSource | null} */
    let source = null;
    const listen = () => {
      if (source || document.hidden) return;
      source = new EventSource(events);
      source.onopen = live;
      source.onerror = () => { if (!paused) say('Stale, reconnecting', 'warn'); };
      for (const kind of ['status', 'letters', 'operation']) source.addEventListener(kind, () => { changed.add(kind); soon(); });
    };
    const hush = () => { source?.close(); source = null; };
    listen();
    setInterval(() => { const kind = $('[data-again]')?.dataset.again; if (kind) { changed.add(kind); soon(); } }, 5000); // no event reports the queue depth
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) return hush();
      for (const kind of ['status', 'letters', 'operation']) changed.add(kind); // events may have been missed
      listen(); soon();
    });
    window.addEventListener('pagehide', hush);
    window.addEventListener('pageshow', ev => { if (ev.persisted) location.reload(); });
    button?.addEventListener('click', () => {
      paused = !paused;
      button.setAttribute('aria-pressed', String(paused));
      live();
      if (!paused) soon();
    });
  }

  // ---------- countdowns ----------
  const tick = () => { for (const x of $$('[data-until]')) x.textContent = String(Math.max(0, Math.round((Date.parse(x.dataset.until ?? '') - now().getTime()) / 1000))); };
  setInterval(tick, 1000);
})();
