// Speed on top of pages that work without it: every action here is a plain link or form first. This file is what every page shares: dialogs, menus, copying,
// the theme, the keyboard. It leaves its tools in window.dlo for the files after it.
(() => {
  'use strict';
  const $ = (s, r = document) => r.querySelector(s), $$ = (s, r = document) => [...r.querySelectorAll(s)];
  const root = document.documentElement;
  const memory = { get: k => { try { return localStorage.getItem(k); } catch { return null; } }, set: (k, v) => { try { localStorage.setItem(k, v); } catch { /* private mode: not remembered */ } } };
  const reveal = r => { for (const x of $$('[data-js]', r)) x.hidden = false; };
  const parse = async response => new DOMParser().parseFromString(await response.text(), 'text/html');

  // undo, where there is one, is what its button does.
  const toast = (text, undo) => {
    const t = document.createElement('div');
    t.className = 'toast'; t.textContent = text;
    if (undo) {
      const b = document.createElement('button');
      b.className = 'btn btn-s'; b.type = 'button'; b.textContent = 'Undo'; b.dataset.undo = '';
      b.addEventListener('click', () => { t.remove(); undo(); });
      t.append(b);
    }
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
    for (const m of $$('details.menu[open]')) if (!m.contains(ev.target)) m.open = false;
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
    if (form.matches('.pick, [data-act]') && !form.dataset.plain && !(by && 'do' in by.dataset)) { ev.preventDefault(); return confirm(form, by); }
    if (by && 'once' in by.dataset) {
      if (by.getAttribute('aria-disabled') === 'true') return ev.preventDefault();
      by.setAttribute('aria-disabled', 'true');
    }
  });
  window.addEventListener('pageshow', () => { for (const b of $$('[data-once]')) b.removeAttribute('aria-disabled'); });

  // The confirm page of the chosen letters, shown in a dialog; anything unexpected falls back to the page itself.
  const confirm = async (form, by) => {
    if (form.matches('.pick') && !by?.closest('[data-row]') && !$('[data-pick]:checked, [data-all]:checked', form)) return toast('Select letters first');
    try {
      // Not form.action: the button of that name would answer.
      const data = new URLSearchParams(new FormData(form, by));
      const doc = await parse(await fetch(by?.getAttribute('formaction') ?? form.getAttribute('action'), { method: 'POST', body: data }));
      const section = $('#confirm', doc), d = $('#dlg-confirm');
      if (!section) throw new Error('no confirm page');
      d.replaceChildren(document.importNode($('form', section), true));
      d.setAttribute('aria-labelledby', 'confirm-h'); d.setAttribute('aria-describedby', 'confirm-d'); d.removeAttribute('aria-label');
      typed(d);
      open('dlg-confirm');
    } catch {
      form.dataset.plain = '1';
      form.requestSubmit(by);
    }
  };

  // The button that destroys waits until the count stands in its field.
  const typed = r => {
    const count = $('[data-confirm]', r), go = $('[data-confirm-btn]', r);
    if (!count || !go) return;
    const check = () => { go.disabled = count.value.replace(/[, .']/g, '') !== count.dataset.confirm; };
    count.addEventListener('input', check); check();
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

  // ---------- a node and its bytes: each shows the other ----------
  const runs = at => $$('.hex a[data-n]').filter(a => a.dataset.n === at || a.dataset.n.startsWith(at + '.'));
  let pinned = [];
  const light = list => { for (const x of $$('.is-at')) x.classList.remove('is-at'); for (const x of [...pinned, ...list]) x.classList.add('is-at'); };
  const partner = el => {
    const run = el.closest?.('.hex a[data-n]'), row = !run && (el.closest?.('.tree .f[id]') || (el.matches?.('.to-bytes') && $('.f[id]', el.parentElement)));
    if (run) return [run, document.getElementById('n' + run.dataset.n)].filter(Boolean);
    return row ? [row, ...runs(row.id.slice(1))] : [];
  };
  for (const kind of ['mouseover', 'focusin']) document.addEventListener(kind, ev => { if ($('.hex a[data-n], .is-at')) light(partner(ev.target)); });
  document.addEventListener('click', ev => {
    const a = ev.target.closest('.tree a[data-bytes], .hex a[data-n]');
    if (!a || ev.ctrlKey || ev.metaKey || ev.shiftKey || ev.button) return;
    const found = partner(a);
    const to = a.matches('.hex a') ? found[1] : found[1]?.closest('a');
    if (!to) return; // its bytes are not on this page: the link leads there
    ev.preventDefault();
    pinned = found; light([]);
    for (let d = to.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;
    to.scrollIntoView({ block: 'nearest' });
  });

  // What was revealed is hidden again after a minute.
  const revealed = () => { const a = $('a[data-hide]'); if (a) setTimeout(() => location.replace(a.href), 60000); };
  revealed();

  // ---------- keyboard ----------
  let chord = 0;
  const follow = selector => $(selector)?.click();
  const keys = {
    g: () => { chord = Date.now(); },
    j: () => dlo.list ? dlo.list.move(1) : follow('.head a[rel="next"]'),
    k: () => dlo.list ? dlo.list.move(-1) : follow('.head a[rel="prev"]'),
    x: () => dlo.list?.pick(), X: () => dlo.list?.range(),
    z: () => follow('.toast [data-undo], form.note[action="/triage/undo"] button'),
    r: () => { if (!$('[data-list]') || $('[data-pick]:checked, [data-all]:checked')) follow('button[data-verb="requeue"]'); },
    i: () => follow('a[data-verb="edit"]'),
    c: () => follow('.code-wrap [data-copy]'),
    '/': () => ($('[data-query]') ? $('[data-query]').focus() : open('dlg-jump')),
    '?': () => open('dlg-keys'),
  };
  document.addEventListener('keydown', ev => {
    if ((ev.metaKey || ev.ctrlKey) && ev.key.toLowerCase() === 'k') { ev.preventDefault(); return open('dlg-jump'); }
    if (ev.key === 'Escape' && !$('dialog[open]')) {
      const menu = $('details.menu[open]');
      if (!menu) return follow('[data-list] [data-clear]');
      menu.open = false;
      return $('summary', menu).focus();
    }
    if (memory.get('keys') === 'off' || ev.metaKey || ev.ctrlKey || ev.altKey || $('dialog[open]') || ev.target.matches('input:not([type="checkbox"]), textarea, select')) return;
    if (Date.now() - chord < 900) {
      chord = 0;
      const to = { h: '/', t: '/triage', l: '/letters', o: '/operations', q: '/queues', s: '/schemas', r: '/rules', a: '/audit' }[ev.key];
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

  typed(document);
  window.dlo = { $, $$, memory, reveal, parse, toast, open, keys };
  reveal(document);
})();
