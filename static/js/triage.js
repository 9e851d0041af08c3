// Triage by keyboard: a decision takes its rows off the list without another page and can be undone
// at once, and the panel beside the list follows the cursor.
(() => {
  'use strict';
  const { $, $$, must, parse, fields, action, toast, reveal, keys, list } = window.dlo;
  const form = $('form[data-groups]'), peek = $('[data-peek]');
  window.dlo.triage = { seen: $$('input[data-pick]').map(x => x.value) };
  // Enter in a field of a menu presses the button of that menu.
  document.addEventListener('keydown', ev => {
    const at = /** @type {Element} */ (ev.target);
    const menu = ev.key === 'Enter' && at.matches('details.menu input:not([type="checkbox"]), details.menu select') && at.closest('[data-menu]');
    if (menu) { ev.preventDefault(); must('button[name="do"]', menu).click(); }
  });
  if (!form || !list) return;

  // ---------- deciding ----------
  /** @param {Document} doc */
  const fresh = doc => { for (const s of ['#found', '.tabs', '#nav', '#tabbar', '#sum', '#settle', '#settled', '#digest-text']) { const a = $(s), b = $(s, doc); if (a && b) a.replaceWith(document.importNode(b, true)); } };
  /** @param {HTMLFormElement} note */
  const undo = note => async () => {
    const response = await fetch(action(note), { method: 'POST', body: fields(note) });
    if (response.ok) location.assign(response.url); else toast('It could not be undone: it has changed since');
  };
  form.addEventListener('submit', async ev => {
    const by = ev.submitter;
    if (!by || !('do' in by.dataset) || form.dataset.plain) return;
    ev.preventDefault();
    const rows = list.ticked();
    if (!rows.length) return toast('Select groups first');
    try {
      const response = await fetch(action(form, by), { method: 'POST', body: fields(form, by) });
      const doc = await parse(response), note = $('form.note[action="/triage/undo"]', doc);
      if (!response.ok || !note) throw new Error('no decision');
      for (const m of $$('details[open]', form)) m.open = false;
      for (const row of rows) {
        const value = must('input[data-pick]', row).value, next = $$('input[data-pick]', doc).find(x => x.value === value)?.closest('tr');
        if (next) { row.replaceChildren(...document.importNode(next, true).childNodes); row.classList.remove('is-on'); } else list.gone(row);
      }
      if (!$('[data-row]', form)) return location.assign(must('input[name="return"]', form).value);
      for (const s of $$('.section-row', form)) if (!s.nextElementSibling?.matches('[data-row]')) s.remove();
      fresh(doc); list.sync(); list.move(0);
      toast(must('.grow', note).textContent, undo(note));
    } catch {
      form.dataset.plain = '1';
      form.requestSubmit(by);
    }
  });

  // ---------- the keyboard: what is ticked, else the row under the cursor ----------
  const chosen = () => { if (!list.ticked().length && list.here()) list.pick(); return list.ticked().length > 0; };
  /** @param {string} name */
  const press = name => () => { if (chosen()) $(`[data-do="${name}"]`, form)?.click(); else toast('Move to a group first, with j and k'); };
  /** @param {string} name */
  const menu = name => () => {
    const m = $(`details[data-menu="${name}"]`, form);
    if (!m || !chosen()) return toast('Move to a group first, with j and k');
    m.open = true;
    must('select, input', m).focus();
  };
  Object.assign(keys, {
    e: press('resolve'), s: menu('snooze'), a: menu('assign'),
    r: () => { if (chosen()) $('button[data-verb="requeue"]', form)?.click(); },
  });

  // ---------- the panel beside the list ----------
  let asked = 0, timer = 0;
  /** @param {HTMLElement} row */
  const show = async row => {
    const n = ++asked, doc = await parse(await fetch(must('a.rowlink', row).href)), source = $('[data-peek-source]', doc);
    if (n !== asked || !source) return;
    const aside = document.createElement('aside');
    aside.className = 'panel peek'; aside.tabIndex = 0; aside.setAttribute('aria-labelledby', 'peek-h');
    aside.append(...document.importNode(source, true).childNodes);
    const h1 = must('h1', aside), h2 = document.createElement('h2');
    h2.id = h1.id; h2.className = h1.className; h2.textContent = h1.textContent; h1.replaceWith(h2);
    reveal(aside);
    for (const back of $$('input[name="return"]', aside)) back.value = must('input[name="return"]', form).value;
    peek?.replaceChildren(aside);
  };
  /** @param {HTMLElement} row */
  const look = row => { clearTimeout(timer); if (peek && matchMedia('(min-width: 84.01rem)').matches) timer = setTimeout(() => show(row).catch(() => {}), 120); };
  form.addEventListener('dlo:here', ev => look(/** @type {HTMLElement} */ (ev.target)));
})();
