// Speed on top of pages that work without it: every action here is a plain link or form first.
(() => {
  'use strict';
  const $ = (s, r = document) => r.querySelector(s), $$ = (s, r = document) => [...r.querySelectorAll(s)];
  const root = document.documentElement;
  const memory = { get: k => { try { return localStorage.getItem(k); } catch { return null; } }, set: (k, v) => { try { localStorage.setItem(k, v); } catch { /* private mode: not remembered */ } } };
  const reveal = r => { for (const x of $$('[data-js]', r)) x.hidden = false; };
  const parse = async response => new DOMParser().parseFromString(await response.text(), 'text/html');

  const toast = text => {
    const t = document.createElement('div');
    t.className = 'toast'; t.textContent = text;
    $('.toasts').replaceChildren(t);
    const leave = () => { if (t.matches(':hover, :focus-within')) setTimeout(leave, 2000); else t.remove(); };
    setTimeout(leave, 10000);
  };

  // ---------- dialogs ----------
  const open = id => {
    const d = document.getElementById(id);
    if (!d || d.open) return;
    d.showModal();
    $('[autofocus]', d)?.focus();
  };

  const copy = async b => {
    const pre = $('pre', b.parentElement);
    try { await navigator.clipboard.writeText(pre ? pre.innerText : b.dataset.copy); toast('Copied'); } catch { toast('Copying failed: select the text instead'); }
  };

  document.addEventListener('click', ev => {
    if (ev.target.tagName === 'DIALOG') return ev.target.close();
    const b = ev.target.closest('button, a');
    if (!b) return;
    if (b.dataset.open) { ev.preventDefault(); open(b.dataset.open); }
    if ('close' in b.dataset) b.closest('dialog').close();
    if ('cancel' in b.dataset && b.closest('dialog')) { ev.preventDefault(); b.closest('dialog').close(); }
    if ('copy' in b.dataset) copy(b);
    if ('tab' in b.dataset && !(ev.ctrlKey || ev.metaKey || ev.shiftKey || ev.button)) { ev.preventDefault(); swap(b.href); }
  });

  // A second press of a button that starts something does nothing; the key in the form guards the server too.
  document.addEventListener('submit', ev => {
    const form = ev.target, by = ev.submitter;
    if (form.matches('[data-theme-form]')) { ev.preventDefault(); return theme(form); }
    if (form.matches('.pick, [data-act]') && !form.dataset.plain) { ev.preventDefault(); return confirm(form, by); }
    if (by && 'once' in by.dataset) {
      if (by.getAttribute('aria-disabled') === 'true') return ev.preventDefault();
      by.setAttribute('aria-disabled', 'true');
    }
  });
  window.addEventListener('pageshow', () => { for (const b of $$('[data-once]')) b.removeAttribute('aria-disabled'); });

  // The confirm page of the chosen letters, shown in a dialog; anything unexpected falls back to the page itself.
  const confirm = async (form, by) => {
    if (form.matches('.pick') && !$('[data-pick]:checked', form)) return toast('Select letters first');
    try {
      // Not form.action: the button of that name would answer.
      const data = new URLSearchParams(new FormData(form, by));
      const doc = await parse(await fetch(form.getAttribute('action'), { method: 'POST', body: data }));
      const section = $('#confirm', doc), d = $('#dlg-confirm');
      if (!section) throw new Error('no confirm page');
      const content = document.importNode($('form', section), true);
      d.replaceChildren(content);
      d.setAttribute('aria-labelledby', 'confirm-h'); d.setAttribute('aria-describedby', 'confirm-d'); d.removeAttribute('aria-label');
      const count = $('[data-confirm]', d), go = $('[data-confirm-btn]', d);
      if (count && go) {
        const check = () => { go.disabled = count.value.replace(/[, .']/g, '') !== count.dataset.confirm; };
        count.addEventListener('input', check); check();
      }
      open('dlg-confirm');
    } catch {
      form.dataset.plain = '1';
      form.requestSubmit(by);
    }
  };

  const theme = form => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    const next = dark ? 'light' : 'dark';
    root.dataset.theme = next;
    const b = $('button', form);
    b.title = next === 'dark' ? 'Theme: dark. Switch to light' : 'Theme: light. Switch to dark';
    b.setAttribute('aria-label', b.title);
    const data = new URLSearchParams(new FormData(form));
    data.set('theme', next);
    fetch(form.getAttribute('action'), { method: 'POST', body: data, redirect: 'manual' });
  };

  // ---------- the tabs of a letter: the same links, without leaving the page ----------
  const swap = async href => {
    try {
      const response = await fetch(href);
      const next = $('[data-swap]', await parse(response));
      if (!response.ok || !next) throw new Error('no content');
      reveal(next);
      $('[data-swap]').replaceWith(document.importNode(next, true));
      history.pushState({ tab: true }, '', href);
      $('[data-swap] [aria-current]')?.focus({ preventScroll: true });
    } catch { location.href = href; }
  };
  window.addEventListener('popstate', () => location.reload());

  // ---------- a list with a cursor and a selection ----------
  const list = $('[data-list]');
  let here = -1, last = -1;
  const rows = () => list ? $$('tr[data-row]', list) : [];
  const box = row => $('[data-pick]', row);
  const move = i => {
    const r = rows();
    if (!r.length) return;
    here = Math.max(0, Math.min(r.length - 1, i));
    r.forEach((x, k) => x.classList.toggle('is-here', k === here));
    $('.rowlink', r[here]).focus({ preventScroll: true });
    r[here].scrollIntoView({ block: 'nearest' });
  };
  const range = (from, to, on) => rows().slice(Math.min(from, to), Math.max(from, to) + 1).forEach(x => { box(x).checked = on; });
  const sync = () => {
    const r = rows(), n = r.filter(x => box(x).checked).length, all = $('[data-pick-all]', list), text = $('[data-bulk-count]', list);
    for (const x of r) x.classList.toggle('is-on', box(x).checked);
    all.checked = n === r.length; all.indeterminate = n > 0 && n < r.length;
    if (text) text.textContent = n + ' selected';
    for (const x of $$('[data-bulk-n]', list)) x.textContent = n || '';
  };
  if (list) {
    list.classList.add('is-live');
    list.addEventListener('change', ev => {
      if (ev.target.matches('[data-pick-all]')) for (const x of rows()) box(x).checked = ev.target.checked;
      sync();
    });
    list.addEventListener('click', ev => {
      if (ev.target.closest('[data-clear]')) { for (const x of rows()) box(x).checked = false; return sync(); }
      if (!ev.target.matches('[data-pick]')) return;
      const i = rows().indexOf(ev.target.closest('tr'));
      if (ev.shiftKey && last >= 0) range(i, last, ev.target.checked);
      last = i;
      sync();
    });
    window.addEventListener('pageshow', sync);
    sync();
  }

  // ---------- keyboard ----------
  let chord = 0;
  const follow = selector => $(selector)?.click();
  const pick = () => { const r = rows()[here]; if (r) { box(r).checked = !box(r).checked; last = here; sync(); } };
  const pickRange = () => { if (here >= 0) { range(here, last < 0 ? here : last, true); sync(); } };
  const keys = {
    g: () => { chord = Date.now(); },
    j: () => list ? move(here + 1) : follow('.head a[rel="next"]'),
    k: () => list ? move(here - 1) : follow('.head a[rel="prev"]'),
    x: pick, X: pickRange,
    r: () => { if (!list || $('[data-pick]:checked', list)) follow('button[data-verb="requeue"]'); },
    c: () => follow('.code-wrap [data-copy]'),
    '/': () => ($('[data-query]') ? $('[data-query]').focus() : open('dlg-jump')),
    '?': () => open('dlg-keys'),
  };
  document.addEventListener('keydown', ev => {
    if ((ev.metaKey || ev.ctrlKey) && ev.key.toLowerCase() === 'k') { ev.preventDefault(); return open('dlg-jump'); }
    if (ev.key === 'Escape' && !$('dialog[open]')) return follow('[data-list] [data-clear]');
    if (memory.get('keys') === 'off' || ev.metaKey || ev.ctrlKey || ev.altKey || $('dialog[open]') || ev.target.matches('input:not([type="checkbox"]), textarea, select')) return;
    if (Date.now() - chord < 900) {
      chord = 0;
      const to = { l: '/letters', o: '/operations' }[ev.key];
      if (to) { ev.preventDefault(); location.href = to; }
      return;
    }
    const act = Object.hasOwn(keys, ev.key) && keys[ev.key];
    if (act) { ev.preventDefault(); act(); }
  });
  const toggle = $('[data-keys-toggle]');
  if (toggle) {
    toggle.checked = memory.get('keys') !== 'off';
    toggle.addEventListener('change', () => memory.set('keys', toggle.checked ? 'on' : 'off'));
  }

  // ---------- live: an event names what changed, the page fetches itself and takes those parts ----------
  // Rows never move under the cursor: a list only says that there are new ones.
  const refresh = async kinds => {
    const response = await fetch(location.href, { headers: { Accept: 'text/html' } });
    if (!response.ok) return;
    const doc = await parse(response);
    for (const kind of kinds) {
      for (const old of $$(`[data-live~="${kind}"]`)) {
        const next = doc.getElementById(old.id);
        if (!next || old.contains(document.activeElement)) continue;
        reveal(next);
        if (next.outerHTML !== old.outerHTML) old.replaceWith(document.importNode(next, true));
      }
    }
    const fresh = $('[data-fresh]');
    if (fresh && kinds.has('letters') && !new URLSearchParams(location.search).get('after')) {
      const first = $('[data-pick]', doc)?.value;
      if (first && !$$('[data-pick]').some(x => x.value === first)) fresh.hidden = false;
    }
  };
  if ('events' in document.body.dataset && window.EventSource) {
    const state = $('[data-live-state]'), word = $('[data-live-word]'), dot = state && $('.dot', state), button = $('[data-live-pause]');
    const say = (text, tone) => { if (state) { state.hidden = false; word.textContent = text; dot.className = 'dot ' + tone; } };
    let paused = false, changed = new Set(), timer = 0, before = 0;
    const run = () => {
      timer = 0;
      if (paused || document.hidden || !changed.size) return;
      const kinds = changed;
      changed = new Set(); before = Date.now();
      refresh(kinds).catch(() => say('Stale', 'warn'));
    };
    const soon = () => { timer ||= setTimeout(run, Math.max(250, before + 1500 - Date.now())); };
    // A hidden tab listens to nothing: a browser opens only six connections to one host.
    let source = null;
    const listen = () => {
      if (source || document.hidden) return;
      source = new EventSource(document.body.dataset.events);
      source.onopen = () => { if (!paused) say('Live', ''); };
      source.onerror = () => { if (!paused) say('Stale, reconnecting', 'warn'); };
      for (const kind of ['status', 'letters', 'operation']) source.addEventListener(kind, () => { changed.add(kind); soon(); });
    };
    const hush = () => { source?.close(); source = null; };
    listen();
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) return hush();
      for (const kind of ['status', 'letters', 'operation']) changed.add(kind); // whatever happened meanwhile
      listen(); soon();
    });
    window.addEventListener('pagehide', hush);
    window.addEventListener('pageshow', ev => { if (ev.persisted) location.reload(); });
    button?.addEventListener('click', () => {
      paused = !paused;
      button.setAttribute('aria-pressed', paused);
      say(paused ? 'Paused' : 'Live', paused ? 'mute' : '');
      if (!paused) soon();
    });
  }

  reveal(document);
})();
