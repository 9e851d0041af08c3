// The query box and its parts: completion, recent searches, and the filters as a dialog.
(() => {
  'use strict';
  const { $, $$, must, base, memory, open } = window.dlo;

  // ---------- the query box ----------
  const box = $('input[data-query]');
  if (box) {
    // Backspace in the empty box turns the last token back into text.
    box.addEventListener('keydown', ev => {
      const tokens = $$('.query-box .token a'), texts = tokens.map(t => t.dataset.token);
      if (ev.key !== 'Backspace' || box.value || !tokens.length || !texts.every(Boolean)) return;
      ev.preventDefault();
      box.value = texts.pop() ?? '';
      must('input[name="q"]', box.form ?? document).value = texts.join(' '); // only the remaining tokens
      tokens.pop()?.parentElement?.remove();
    });
  }

  // ---------- recent searches: in this browser only ----------
  const recent = $('[data-recent]');
  if (recent) {
    const q = new URLSearchParams(location.search).get('q');
    /** @type {string[]} */
    let all = [];
    try { all = JSON.parse(memory.get('recent') ?? '[]').filter(/** @param {unknown} x */ x => typeof x === 'string'); } catch { /* not ours */ }
    const others = all.filter(x => x !== q);
    if (q && !$('#query-mistake')) memory.set('recent', JSON.stringify([q, ...others].slice(0, 8)));
    must('ul', recent).replaceChildren(...others.slice(0, 8).map(x => {
      const li = document.createElement('li'), a = document.createElement('a'), span = document.createElement('span');
      a.className = 'item mono'; span.className = 'clip'; span.textContent = x; a.title = x;
      a.href = base + '/letters?' + new URLSearchParams({ q: x });
      a.append(span); li.append(a);
      return li;
    }));
    recent.hidden = !others.length;
  }

  // ---------- search in a long facet ----------
  for (const find of $$('input[data-narrow]')) {
    find.addEventListener('input', () => {
      const facet = find.closest('details'), text = find.value.toLowerCase();
      for (const li of facet ? $$('.pair', facet) : []) li.hidden = !must('.facet', li).title.toLowerCase().includes(text);
      for (const rest of facet ? $$('details', facet) : []) rest.open = text !== '';
    });
    find.addEventListener('keydown', ev => { if (ev.key === 'Enter') ev.preventDefault(); });
  }

  // ---------- filters as a dialog, if there is no room for their column ----------
  const filters = $('#filters'), toFilters = $('[data-filters]');
  toFilters?.addEventListener('click', ev => {
    if (!filters) return;
    ev.preventDefault();
    const d = must('#dlg-filters'), place = document.createComment('filters');
    filters.before(place);
    d.append(filters);
    d.addEventListener('close', () => { place.replaceWith(filters); toFilters.focus(); }, { once: true });
    open('dlg-filters');
  });
  filters?.addEventListener('click', ev => { if (/** @type {Element} */ (ev.target).closest('[data-close]') && filters.closest('dialog')) ev.preventDefault(); });
})();
