// A list with a cursor and a selection. The selection is the ticked rows of this page, or all
// matching rows except the unticked ones. Only a person ticks rows. A key acts on the ticked rows.
// If there are none, it acts on the row under the cursor.
(() => {
  'use strict';
  const { $, $$, must, memory, toast, parse, reveal, fields, action, confirm, keys } = window.dlo;
  const list = $('form[data-list]');
  if (!list) return;
  /** The row under the cursor. @type {HTMLTableRowElement | undefined} */
  let here;
  let last = -1;
  /** @param {number} n */
  const number = n => n.toLocaleString('en-US');
  let rows = $$('tr[data-row]', list);
  /** @param {HTMLTableRowElement} row */
  const box = row => must('input[data-pick]', row);
  const all = $('input[data-all]', list);
  const ticked = () => rows.filter(x => box(x).checked), left = () => rows.filter(x => !box(x).checked);
  /** @type {(from: number, to: number, on: boolean) => void} */
  const range = (from, to, on) => { for (const x of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) box(x).checked = on; };
  /** @param {boolean} on */
  const everything = on => { for (const x of rows) box(x).checked = on; };

  // The cursor's position is stored, so that it is restored after Back, a reload and an undo.
  const address = new URLSearchParams(location.search);
  for (const name of ['done', 'left', 'sent']) address.delete(name);
  const place = `cursor ${location.pathname}?${address}`;

  /** @type {(row: HTMLTableRowElement | undefined) => void} */
  const point = row => {
    if (!row) return;
    here = row;
    memory.keep(place, JSON.stringify({ id: box(row).value, at: rows.indexOf(row) }));
    for (const x of rows) x.classList.toggle('is-here', x === row);
    must('.rowlink', row).focus({ preventScroll: true });
    row.scrollIntoView({ block: 'nearest' });
    row.dispatchEvent(new Event('dlo:here', { bubbles: true }));
  };
  const stays = () => rows.filter(x => !x.classList.contains('is-leaving'));
  /** @param {number} by */
  const move = by => {
    const among = stays();
    point(among[Math.max(0, Math.min(among.length - 1, (here ? among.indexOf(here) : -1) + by))]);
  };

  /** Puts the cursor where it was when this list was last shown. */
  const again = () => {
    const [navigation] = performance.getEntriesByType('navigation'), undone = $('[data-undone]')?.dataset.undone?.split(' ');
    if (undone) return point(rows.find(x => undone.includes(box(x).value)));
    const returned = navigation instanceof PerformanceNavigationTiming && navigation.type !== 'navigate';
    if (!returned && !$('form.note.good [name="id"]')) return;
    /** @type {{ id?: string, at?: number }} */
    let was = {};
    try { was = JSON.parse(memory.kept(place) ?? '{}'); } catch { /* not ours */ }
    if (was.id) point(rows.find(x => box(x).value === was.id) ?? rows[Math.min(was.at ?? 0, rows.length - 1)]);
  };

  // A selection of all rows excludes the rows unticked on this page. total is 0 if only the
  // server can count.
  const words = () => {
    const n = ticked().length, total = Number(list.dataset.total), except = left().length;
    if (!all?.checked) return { text: number(n) + ' selected', n: n ? number(n) : '' };
    const text = total ? 'All ' + number(total) + ' matching' : 'All that match';
    return { text: except ? text + ', except ' + number(except) : text, n: total ? number(total - except) : '' };
  };

  // ---------- what a key acts on ----------
  const aim = () => { const chosen = ticked(); return chosen.length || !here ? chosen : [here]; };
  /** @type {List['body']} */
  const body = (by, about) => {
    const sent = fields(list, by);
    for (const row of about) sent.delete(box(row).name);
    for (const row of about) sent.append(box(row).name, box(row).value);
    return sent;
  };
  for (const [key, verb] of Object.entries({ r: 'requeue', d: 'discard', h: 'hold' })) {
    keys[key] = () => {
      const by = $(`.bulkbar button[data-verb="${verb}"]`, list), about = aim();
      if (!by) return;
      if (about.length) confirm(action(list, by), body(by, about)); else toast('Pick a row first (j/k)');
    };
  }

  const sync = () => {
    const n = ticked().length, page = must('input[data-pick-all]', list), said = words(), offer = $('[data-scope-offer]', list);
    if (all?.checked && !n) all.checked = false; // the last row was unticked, so nothing is selected
    for (const x of rows) x.classList.toggle('is-on', box(x).checked);
    page.checked = n > 0 && n === rows.length; page.indeterminate = n > 0 && n < rows.length;
    const count = $('[data-bulk-count]', list);
    if (count) count.textContent = words().text;
    for (const x of $$('[data-bulk-n]', list)) x.textContent = said.n;
    if (offer && all) {
      must('[data-scope]', list).hidden = !all.checked && n < rows.length;
      must('[data-scope-word]', list).textContent = all.checked ? words().text + ' ' + (n < rows.length ? 'is' : 'are') + ' selected.' : 'All ' + number(n) + ' on this page are selected.';
      must('[data-scope-all]', list).hidden = all.checked;
    }
    for (const x of $$('input[name="except"]', list)) x.remove();
    if (all?.checked && left().length) {
      const except = document.createElement('input');
      except.type = 'hidden'; except.name = 'except'; except.value = left().map(x => box(x).value).join(' ');
      list.append(except);
    }
  };

  /** @param {HTMLElement} b */
  const command = b => {
    if (!all?.checked) return b.dataset.ids + ticked().map(x => box(x).value).join(' ');
    return b.dataset.command + left().map(x => ' --except ' + box(x).value).join('');
  };

  list.classList.add('is-live');
  if (all) { must('[data-scope-box]', list).hidden = true; must('[data-scope-offer]', list).hidden = false; }
  list.addEventListener('change', ev => {
    const page = ev.target;
    if (page instanceof HTMLInputElement && page.matches('[data-pick-all]')) { everything(page.checked); if (!page.checked && all) all.checked = false; }
    sync();
  });
  list.addEventListener('click', async ev => {
    const at = /** @type {Element} */ (ev.target);
    if (at.closest('[data-clear]')) { everything(false); if (all) all.checked = false; return sync(); }
    if (all && at.closest('[data-scope-all]')) { everything(true); all.checked = true; sync(); return $('.bulkbar .btn', list)?.focus(); }
    const copy = at.closest('[data-command]');
    if (copy) {
      const text = command(copy);
      try { await navigator.clipboard.writeText(text); toast('Copied: ' + (text.length > 300 ? text.slice(0, 300) + '…' : text)); } catch { toast(text); }
      return;
    }
    const row = at.closest('tr');
    if (!row || !at.matches('[data-pick]')) return;
    const i = rows.indexOf(row);
    if (ev.shiftKey && last >= 0) range(i, last, box(row).checked);
    last = i;
    sync();
  });
  // ---------- a row opens wherever it is clicked ----------
  /** The row at which an event happened, unless the event belongs to a link or a box. @param {Event} ev */
  const rowAt = ev => {
    const at = /** @type {Element} */ (ev.target);
    return at.closest('a, button, label, input, details') ? null : at.closest('tr[data-row]');
  };
  /** @param {MouseEvent} ev */
  const follow = ev => {
    const row = rowAt(ev), link = row && must('a.rowlink', row);
    if (!link || !getSelection()?.isCollapsed) return; // a person selects text
    if (ev.button || ev.ctrlKey || ev.metaKey) window.open(link.href, '_blank', 'noopener'); else link.click();
  };
  list.addEventListener('click', follow);
  list.addEventListener('auxclick', ev => { if (ev.button === 1) follow(ev); });
  list.addEventListener('mousedown', ev => { if (ev.button === 1 && rowAt(ev)) ev.preventDefault(); }); // it would scroll

  // ---------- the panel beside the list, which follows the cursor ----------
  const peek = $('[data-peek]'), wide = () => matchMedia('(min-width: 84.01rem)').matches;
  let asked = 0, timer = 0, beside = rows[0]?.innerText; // beside is the text of the row that the panel shows
  /** @param {HTMLElement} row */
  const show = async row => {
    const n = ++asked, url = new URL(must('a.rowlink', row).href);
    url.searchParams.set('peek', '1');
    const source = $('[data-peek-source]', await parse(await fetch(url)));
    if (n !== asked || !source) return;
    beside = row.innerText;
    const aside = document.createElement('aside');
    aside.className = 'panel peek'; aside.tabIndex = 0; aside.setAttribute('aria-labelledby', 'peek-h');
    aside.append(...document.importNode(source, true).childNodes);
    const h1 = must('h1', aside), h2 = document.createElement('h2');
    h2.id = h1.id; h2.className = h1.className; h2.textContent = h1.textContent; h1.replaceWith(h2);
    reveal(aside);
    for (const back of $$('input[name="return"]', aside)) back.value = must('input[name="return"]', list).value;
    peek?.replaceChildren(aside);
  };
  /** @param {HTMLElement} row */
  const look = row => { clearTimeout(timer); if (peek && !peek.hidden && wide()) timer = setTimeout(() => show(row).catch(() => {}), 120); };
  document.addEventListener('dlo:live', () => { // keep the panel in step with its row
    const row = here ?? $('[data-row]', list);
    if (peek && row && row.innerText !== beside && !peek.contains(document.activeElement) && !$('details[open]', peek)) look(row);
  });
  list.addEventListener('dlo:here', ev => look(/** @type {HTMLElement} */ (ev.target)));
  if (peek?.hidden) keys[' '] = () => {
    if (!wide()) return toast('The preview needs a wider window');
    peek.hidden = !peek.hidden;
    peek.replaceChildren();
    if (here) look(here);
  };

  window.addEventListener('pageshow', sync);
  sync();
  window.dlo.list = {
    move, sync, ticked, aim, body, point,
    here: () => here,
    // The cursor moves on immediately. The next key then applies to the next row, even if the
    // response is slow.
    leave: leaving => {
      const at = here ? rows.indexOf(here) : -1;
      for (const row of leaving) { row.classList.add('is-leaving'); box(row).checked = false; }
      sync();
      if (!here || !leaving.includes(here)) return;
      const next = stays().find(x => rows.indexOf(x) > at) ?? stays().at(-1);
      if (next) point(next); else here = undefined;
    },
    gone: row => {
      const at = rows.indexOf(row), next = $$('tr[data-row]', list)[at + 1] ?? null;
      rows = rows.filter(x => x !== row);
      row.remove(); last = -1;
      if (row === here) here = rows[Math.min(at, rows.length - 1)];
      return { row, next };
    },
    back: gone => {
      for (const { row, next } of gone.toReversed()) (next?.isConnected ? next.before(row) : must('tbody', list).append(row));
      rows = $$('tr[data-row]', list); last = -1;
    },
    pick: () => { if (here) { box(here).checked = !box(here).checked; last = rows.indexOf(here); sync(); } },
    range: () => { if (here) { const at = rows.indexOf(here); range(at, last < 0 ? at : last, true); sync(); } },
  };
  document.addEventListener('DOMContentLoaded', again); // once all scripts have run
})();
