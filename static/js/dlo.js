// Pages work without scripts, because every action is a plain link or form. This file makes them
// faster. It contains what all pages share: dialogs, menus, copying, the theme and the keyboard. It
// exports window.dlo to the files after it. The types of its functions are in .ci/js/dlo.d.ts.
(() => {
  'use strict';
  /** @type {typeof dlo.$} */
  const $ = (s, r = document) => r.querySelector(s);
  /** @type {typeof dlo.$$} */
  const $$ = (s, r = document) => [...r.querySelectorAll(s)];
  /** An element that the page must have. @type {typeof dlo.must} */
  const must = (s, r = document) => {
    const found = $(s, r);
    if (!found) throw new Error(`the page has no ${s}`);
    return found;
  };
  const root = document.documentElement;
  /** The path below which dlo is reached. @type {typeof dlo.base} */
  const base = root.dataset.base ?? '';
  // get and set use the storage of the browser. kept and keep use the storage of the tab. In
  // private mode, nothing is remembered.
  /** @type {typeof dlo.memory} */
  const memory = {
    get: k => { try { return localStorage.getItem(k); } catch { return null; } }, set: (k, v) => { try { localStorage.setItem(k, v); } catch { /* not remembered */ } },
    kept: k => { try { return sessionStorage.getItem(k); } catch { return null; } }, keep: (k, v) => { try { sessionStorage.setItem(k, v); } catch { /* not remembered */ } },
  };
  // The reader's clock may be wrong, so times are compared with the clock of the server.
  const ahead = (Date.parse(document.body.dataset.now ?? '') || Date.now()) - Date.now();
  /** @type {typeof dlo.now} */
  const now = () => new Date(Date.now() + ahead);
  /** @type {typeof dlo.reveal} */
  const reveal = r => { for (const x of $$('[data-js]', r)) x.hidden = false; };
  /** @type {typeof dlo.parse} */
  const parse = async response => new DOMParser().parseFromString(await response.text(), 'text/html');
  /** The fields that a form sends when the button by is pressed. @type {typeof dlo.fields} */
  const fields = (form, by = null) => new URLSearchParams([...new FormData(form, by)].map(([name, value]) => [name, String(value)]));
  /**
   * The URL that a form is sent to. form.action could be a button with the name action.
   * @type {typeof dlo.action}
   */
  const action = (form, by) => by?.getAttribute('formaction') ?? form.getAttribute('action') ?? '';

  /** Sends fields as a form, and opens the page of the response. @type {typeof dlo.plainly} */
  const plainly = (to, body) => {
    const form = document.createElement('form');
    form.method = 'post'; form.hidden = true; form.setAttribute('action', to);
    for (const [name, value] of body) {
      const field = document.createElement('input');
      field.type = 'hidden'; field.name = name; field.value = value;
      form.append(field);
    }
    document.body.append(form);
    HTMLFormElement.prototype.submit.call(form);
  };

  /** Shows a message. With undo, it has a button that calls undo. @type {typeof dlo.toast} */
  const toast = (text, undo) => {
    const t = document.createElement('div');
    t.className = 'toast'; t.textContent = text;
    if (undo) {
      const b = document.createElement('button');
      b.className = 'btn btn-s'; b.type = 'button'; b.textContent = 'Undo '; b.dataset.undo = '';
      const key = document.createElement('kbd');
      key.textContent = 'z'; key.setAttribute('aria-hidden', 'true');
      b.append(key);
      b.addEventListener('click', () => { t.remove(); undo(); });
      t.append(b);
    }
    must('.toasts').replaceChildren(t);
    const leave = () => { if (t.matches(':hover, :focus-within')) setTimeout(leave, 2000); else t.remove(); };
    setTimeout(leave, 10000);
  };

  // ---------- dialogs ----------
  /** @type {typeof dlo.open} */
  const open = id => {
    const d = document.getElementById(id);
    if (!(d instanceof HTMLDialogElement) || d.open) return;
    d.showModal();
    $('[autofocus]', d)?.focus();
  };

  /** @param {HTMLElement} b */
  const copy = async b => {
    const of = b.parentElement?.querySelector('pre, textarea');
    try { await navigator.clipboard.writeText(of instanceof HTMLTextAreaElement ? of.value : of?.innerText ?? b.dataset.copy ?? ''); toast('Copied'); } catch { toast('Copying failed: select the text instead'); }
  };

  /**
   * Copies a text from another page. If that page has a note or copying fails, it opens the page.
   * @param {HTMLAnchorElement} a
   */
  const copyFrom = async a => {
    try {
      const page = await parse(await fetch(a.href)), text = $('textarea[data-copied]', page);
      if (!text || $('[data-copy-note]', page)) throw new Error('there is more to it');
      await navigator.clipboard.writeText(text.value);
      toast('Copied ' + (a.textContent ?? '').trim().replace('As ', 'as '));
    } catch { location.href = a.href; }
  };

  document.addEventListener('click', ev => {
    const at = /** @type {Element} */ (ev.target);
    if (at instanceof HTMLDialogElement) return at.close();
    for (const m of $$('details.menu[open]')) if (!m.contains(at)) m.open = false;
    const b = at.closest('button, a');
    if (!b) return;
    if (b.dataset.open) { ev.preventDefault(); open(b.dataset.open); }
    if ('close' in b.dataset) b.closest('dialog')?.close();
    if ('cancel' in b.dataset && b.closest('dialog')) { ev.preventDefault(); b.closest('dialog')?.close(); }
    if ('copy' in b.dataset) copy(b);
    if (b instanceof HTMLAnchorElement && 'copyFrom' in b.dataset && !(ev.ctrlKey || ev.metaKey || ev.shiftKey || ev.button)) {
      ev.preventDefault();
      const menu = b.closest('details');
      if (menu) { menu.open = false; $('summary', menu)?.focus(); }
      copyFrom(b);
    }
    if (b instanceof HTMLAnchorElement && 'tab' in b.dataset && !(ev.ctrlKey || ev.metaKey || ev.shiftKey || ev.button)) { ev.preventDefault(); swap(b.href); }
  });

  // A second press of a button that starts something does nothing. The key in the form also
  // protects the server.
  document.addEventListener('submit', ev => {
    const form = /** @type {HTMLFormElement} */ (ev.target), by = ev.submitter;
    if (form.matches('[data-theme-form]')) { ev.preventDefault(); return theme(form); }
    if (form.matches('.pick, [data-act]') && !(by && 'do' in by.dataset)) {
      ev.preventDefault();
      if (form.matches('.pick') && !by?.closest('[data-row]') && !$('[data-pick]:checked, [data-all]:checked', form)) return toast(form.matches('[data-groups]') ? 'Select groups first' : 'Select letters first');
      return confirm(action(form, by), fields(form, by));
    }
    if (by && 'once' in by.dataset) {
      if (by.getAttribute('aria-disabled') === 'true') return ev.preventDefault();
      by.setAttribute('aria-disabled', 'true');
    }
  });
  window.addEventListener('pageshow', () => { for (const b of $$('[data-once]')) b.removeAttribute('aria-disabled'); });

  let pressed = 0; // number of keys
  document.addEventListener('keydown', () => { pressed++; }, true);

  /**
   * Shows the page that confirms an action as a dialog, unless another key was pressed meanwhile:
   * the dialog must not take a key that was meant for the page. If that fails, it opens the page.
   * @type {typeof dlo.confirm}
   */
  const confirm = async (to, body) => {
    const mine = pressed;
    try {
      const doc = await parse(await fetch(to, { method: 'POST', body }));
      if (mine !== pressed) return;
      const d = must('#dlg-confirm');
      d.replaceChildren(document.importNode(must('#confirm form', doc), true));
      d.setAttribute('aria-labelledby', 'confirm-h'); d.setAttribute('aria-describedby', 'confirm-d'); d.removeAttribute('aria-label');
      typed(d);
      open('dlg-confirm');
    } catch { plainly(to, body); }
  };

  /** Enables a destructive button once the count has been typed. @param {ParentNode} r */
  const typed = r => {
    const count = $('input[data-confirm]', r), go = $('button[data-confirm-btn]', r), first = $('#confirm-first', r), takes = $('[data-takes]', r);
    if (first instanceof HTMLInputElement && takes) first.addEventListener('input', () => {
      const all = Number(takes.dataset.takes), n = Math.min(Number(first.value.replace(/[, ]/g, '')) || all, all);
      takes.textContent = n.toLocaleString('en');
      if (count) { count.dataset.confirm = `${n}`; must('label[for="confirm-count"]', r).textContent = `Type ${n} to confirm`; check(); }
    });
    const check = () => { if (count && go) go.disabled = count.value.replace(/[, .']/g, '') !== count.dataset.confirm; };
    if (!count || !go) return;
    count.addEventListener('input', check); check();
  };

  /** @param {HTMLFormElement} form */
  const theme = form => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    const next = dark ? 'light' : 'dark';
    root.dataset.theme = next;
    const b = must('button', form);
    b.title = next === 'dark' ? 'Theme: dark. Switch to light' : 'Theme: light. Switch to dark';
    b.setAttribute('aria-label', b.title);
    const body = fields(form);
    body.set('theme', next);
    fetch(action(form), { method: 'POST', body, redirect: 'manual' });
  };

  // ---------- a letter's tabs: the same links, without leaving the page ----------
  /** @param {string} href */
  const swap = async href => {
    try {
      const response = await fetch(href);
      const next = $('[data-swap]', await parse(response));
      if (!response.ok || !next) throw new Error('no content');
      reveal(next);
      must('[data-swap]').replaceWith(document.importNode(next, true));
      history.pushState({ tab: true }, '', href);
      $('[data-swap] [aria-current]')?.focus({ preventScroll: true });
    } catch { location.href = href; }
  };
  window.addEventListener('popstate', () => location.reload());

  // ---------- a node and its bytes: each highlights the other ----------
  /** @param {string} at */
  const runs = at => $$('.hex a[data-n]').filter(a => a.dataset.n === at || a.dataset.n?.startsWith(at + '.'));
  /** @type {HTMLElement[]} */
  let pinned = [];
  /** @param {HTMLElement[]} list */
  const light = list => { for (const x of $$('.is-at')) x.classList.remove('is-at'); for (const x of [...pinned, ...list]) x.classList.add('is-at'); };
  /** @type {(el: Element) => HTMLElement[]} */
  const partner = el => {
    const run = el.closest('.hex a[data-n]');
    if (run) return [run, document.getElementById('n' + run.dataset.n)].filter(x => x !== null);
    const row = el.closest('.tree .f[id]') ?? (el.matches('.to-bytes') ? el.parentElement?.querySelector('.f[id]') : null);
    return row ? [row, ...runs(row.id.slice(1))] : [];
  };
  for (const kind of ['mouseover', 'focusin']) {
    document.addEventListener(kind, ev => {
      if ($('.hex a[data-n], .is-at')) light(ev.target instanceof Element ? partner(ev.target) : []);
    });
  }
  document.addEventListener('click', ev => {
    const a = /** @type {Element} */ (ev.target).closest('.tree a[data-bytes], .hex a[data-n]');
    if (!a || ev.ctrlKey || ev.metaKey || ev.shiftKey || ev.button) return;
    const found = partner(a);
    const to = a.matches('.hex a') ? found[1] : found[1]?.closest('a');
    if (!to) return; // its bytes are on another page: follow the link
    ev.preventDefault();
    pinned = found; light([]);
    for (let d = to.closest('details'); d; d = d.parentElement?.closest('details') ?? null) d.open = true;
    to.scrollIntoView({ block: 'nearest' });
  });

  // Revealed values are hidden again after a minute.
  const revealed = () => { const a = $('a[data-hide]'); if (a) setTimeout(() => location.replace(a.href), 60000); };
  revealed();

  // ---------- keyboard ----------
  let chord = 0;
  /** @param {string} selector */
  const follow = selector => $(selector)?.click();
  /** @type {typeof dlo.keys} */
  const keys = {
    g: () => { chord = Date.now(); },
    j: () => dlo.list ? dlo.list.move(1) : follow('.head a[rel="next"]'),
    k: () => dlo.list ? dlo.list.move(-1) : follow('.head a[rel="prev"]'),
    x: () => dlo.list?.pick(), X: () => dlo.list?.range(),
    z: () => follow('.toast [data-undo], form.note[action$="/triage/undo"] button, main [data-undo]'),
    r: () => follow('button[data-verb="requeue"]'),
    d: () => follow('button[data-verb="discard"]'),
    h: () => follow('button[data-verb="hold"]'),
    i: () => follow('a[data-verb="edit"]'),
    c: () => follow('.code-wrap [data-copy]'),
    '/': () => { const query = $('[data-query]'); if (query) query.focus(); else open('dlg-jump'); },
    '?': () => open('dlg-keys'),
  };
  document.addEventListener('keydown', ev => {
    if ((ev.metaKey || ev.ctrlKey) && ev.key.toLowerCase() === 'k') { ev.preventDefault(); return open('dlg-jump'); }
    if (ev.key === 'Escape' && !$('dialog[open]')) {
      const menu = $('details.menu[open]');
      if (!menu) return follow('[data-list] [data-clear]');
      menu.open = false;
      return dlo.list?.here() && menu.closest('[data-list]') ? dlo.list.move(0) : must('summary', menu).focus();
    }
    if (ev.key === ' ' && (ev.shiftKey || !/** @type {Element} */ (ev.target).matches('.rowlink'))) return; // it scrolls, or presses
    if (memory.get('keys') === 'off' || ev.metaKey || ev.ctrlKey || ev.altKey || $('dialog[open]') || /** @type {Element} */ (ev.target).matches('input:not([type="checkbox"]), textarea, select')) return;
    if (Date.now() - chord < 900) {
      chord = 0;
      const to = /** @type {HTMLAnchorElement | null} */ ($(`a[data-key="${CSS.escape(ev.key)}"]`)); // a link of the navigation
      if (to) { ev.preventDefault(); location.href = to.href; }
      return;
    }
    const act = Object.hasOwn(keys, ev.key) && keys[ev.key];
    if (act) { ev.preventDefault(); act(); }
  });
  const toggle = $('input[data-keys-toggle]');
  if (toggle) {
    toggle.checked = memory.get('keys') !== 'off';
    toggle.addEventListener('change', () => memory.set('keys', toggle.checked ? 'on' : 'off'));
  }

  typed(document);
  window.dlo = { $, $$, must, base, memory, now, reveal, parse, fields, action, plainly, confirm, toast, open, keys };
  reveal(document);
})();
