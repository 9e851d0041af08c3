// Triage by keyboard. A decision removes its rows from the list without loading another page and
// can be undone immediately.
(() => {
  'use strict';
  const { $, $$, must, base, parse, fields, action, plainly, toast, keys, list } = window.dlo;
  const form = $('form[data-groups]');
  const seen = new Set($$('input[data-pick]').map(x => x.value)); // a group removed by a decision counts as new if it comes back
  window.dlo.triage = { seen };
  // Enter in a menu's field presses that menu's button.
  document.addEventListener('keydown', ev => {
    const at = /** @type {Element} */ (ev.target);
    const menu = ev.key === 'Enter' && at.matches('details.menu input:not([type="checkbox"]), details.menu select') && at.closest('[data-menu]');
    if (menu) { ev.preventDefault(); must('button[name="do"]', menu).click(); }
  });
  const group = $('main > .cols [data-peek-source]');
  if (group) {
    /** Opens the form of a fact. @param {string} field */
    const edit = field => () => {
      const input = $(field), fact = input?.closest('details');
      if (fact) { fact.open = true; input?.focus(); }
    };
    Object.assign(keys, {
      e: () => $('[data-do="resolve"]', group)?.click(),
      r: () => $('button[value="requeue"]', group)?.click(),
      s: () => { const m = $('details[data-menu="snooze"]', group); if (m) { m.open = true; must('select', m).focus(); } },
      a: edit('#d-owner'),
      m: edit('#d-merge'),
    });
  }
  if (!form || !list) return;

  // ---------- deciding ----------
  /** The rows for the menu that a key opened. @type {HTMLTableRowElement[] | null} */
  let aimed = null;
  const sections = () => { for (const s of $$('.section-row', form)) s.hidden = !s.nextElementSibling?.matches('[data-row]'); };
  /**
   * Updates rows from a new page. It returns the rows that the new page no longer has.
   * @type {(rows: HTMLTableRowElement[], doc: Document) => HTMLTableRowElement[]}
   */
  const renew = (rows, doc) => rows.filter(row => {
    const value = must('input[data-pick]', row).value, next = $$('input[data-pick]', doc).find(x => x.value === value)?.closest('tr');
    if (next) { row.replaceChildren(...document.importNode(next, true).childNodes); row.classList.remove('is-on', 'is-leaving'); }
    return !next;
  });
  /** @param {Document} doc */
  const fresh = doc => {
    for (const s of ['#found', '.tabs', '#nav', '#tabbar', '#sum', '#settle', '#settled', '#digest-text', '#people']) { const a = $(s), b = $(s, doc); if (a && b) a.replaceWith(document.importNode(b, true)); }
    const shown = $('[data-shown]', form), n = $$('[data-row]', form).length;
    if (shown) shown.textContent = n === 1 ? '1 group on this page' : `${n} groups on this page`;
    sections(); list.sync(); list.move(0);
  };
  /** @type {(note: HTMLFormElement, rows: HTMLTableRowElement[], gone: Gone[]) => () => Promise<void>} */
  const undo = (note, rows, gone) => async () => {
    const response = await fetch(action(note), { method: 'POST', body: fields(note) });
    if (!response.ok) return toast('Not undone: it has changed since');
    const doc = await parse(response);
    list.back(gone);
    for (const { row } of gone) seen.add(must('input[data-pick]', row).value);
    for (const row of renew(rows, doc)) list.gone(row);
    list.point(rows.find(row => row.isConnected));
    fresh(doc);
    toast($('form.note [role="status"]', doc)?.textContent ?? 'Undone');
  };
  /** @type {(by: HTMLElement, rows: HTMLTableRowElement[]) => Promise<void>} */
  const decide = async (by, rows) => {
    const body = list.body(by, rows);
    if (!['assign', 'mine', 'merge'].includes(by.dataset.do ?? '')) list.leave(rows);
    aimed = null;
    form.classList.remove('is-aimed');
    for (const m of $$('details[open]', form)) m.open = false;
    if (list.here()) list.move(0); // moves the focus out of the closed menu
    try {
      const response = await fetch(action(form, by), { method: 'POST', body });
      const doc = await parse(response), note = $('form.note[action$="/triage/undo"]', doc);
      if (!response.ok || !note) throw new Error('no decision');
      const gone = renew(rows, doc).map(list.gone);
      for (const { row } of gone) seen.delete(must('input[data-pick]', row).value);
      if (!$('[data-row]', form)) return location.assign(base + must('input[name="return"]', form).value);
      fresh(doc);
      toast(must('.grow', note).textContent, undo(note, rows, gone));
    } catch { plainly(action(form, by), body); }
  };
  form.addEventListener('submit', ev => {
    const by = ev.submitter;
    if (!by || !('do' in by.dataset)) return;
    ev.preventDefault();
    const rows = aimed ?? list.ticked(), least = by.dataset.do === 'merge' ? 2 : 1;
    if (rows.length >= least) decide(by, rows); else toast(least === 2 ? 'Select two or more groups' : 'Select groups first');
  });

  // ---------- the keyboard ----------
  const nobody = () => toast('Pick a group first (j/k)');
  /** @param {string} name */
  const press = name => () => {
    const by = $(`[data-do="${name}"]`, form), rows = list.aim();
    if (!by) return;
    if (rows.length) decide(by, rows); else nobody();
  };
  /** @param {string} name */
  const menu = name => () => {
    const m = $(`details[data-menu="${name}"]`, form), rows = list.aim();
    if (!m) return;
    if (!rows.length) return nobody();
    aimed = rows;
    form.classList.add('is-aimed');
    if (!list.ticked().length) must('[data-bulk-count]', form).textContent = `${must('input[data-pick]', rows[0]).value} ${must('.rowlink', rows[0]).textContent}`;
    m.open = true;
    must('select, input', m).focus();
  };
  form.addEventListener('toggle', () => { if (aimed && !$('details.menu[open]', form)) { aimed = null; form.classList.remove('is-aimed'); list.sync(); } }, true);
  Object.assign(keys, { e: press('resolve'), s: menu('snooze'), a: menu('assign'), m: () => $('[data-do="merge"]', form)?.click() });
})();
