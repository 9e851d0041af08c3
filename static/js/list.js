// A list with a cursor and a selection: the ticked letters of this page, or all that match except
// those that were unticked.
(() => {
  'use strict';
  const { $, $$, must, toast } = window.dlo;
  const list = $('form[data-list]');
  if (!list) return;
  let here = -1, last = -1;
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

  /** @param {number} by */
  const move = by => {
    const next = Math.max(0, Math.min(rows.length - 1, here + by)), row = rows[next];
    if (!row) return;
    here = next;
    for (const x of rows) x.classList.toggle('is-here', x === row);
    must('.rowlink', row).focus({ preventScroll: true });
    row.scrollIntoView({ block: 'nearest' });
    row.dispatchEvent(new Event('dlo:here', { bubbles: true }));
  };

  // Of a selection of all, what was unticked on this page is left out; total is 0 where only the
  // server can count.
  const words = () => {
    const n = ticked().length, total = Number(list.dataset.total), except = left().length;
    if (!all?.checked) return { text: number(n) + ' selected', n: n ? number(n) : '' };
    const text = total ? 'All ' + number(total) + ' matching' : 'All that match';
    return { text: except ? text + ', except ' + number(except) : text, n: total ? number(total - except) : '' };
  };

  const sync = () => {
    const n = ticked().length, page = must('input[data-pick-all]', list), said = words(), offer = $('[data-scope-offer]', list);
    if (all?.checked && !n) all.checked = false; // the last one was unticked: nothing is selected any more
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
  window.addEventListener('pageshow', sync);
  sync();
  window.dlo.list = {
    move, sync, ticked,
    here: () => rows[here],
    gone: row => { rows = rows.filter(x => x !== row); row.remove(); here = Math.min(here, rows.length - 1); last = -1; },
    pick: () => { const r = rows[here]; if (r) { box(r).checked = !box(r).checked; last = here; sync(); } },
    range: () => { if (here >= 0) { range(here, last < 0 ? here : last, true); sync(); } },
  };
})();
