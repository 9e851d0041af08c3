// The query box and what belongs to it: completion, the last searches, the filters as a dialog,
// times in local time.
(() => {
  'use strict';
  const { $, $$, must, memory, open } = window.dlo;
  /** @param {string} name */
  const cookie = name => document.cookie.split('; ').find(c => c.startsWith(name + '='))?.slice(name.length + 1);

  // ---------- the query box ----------
  const box = $('input[data-query]');
  if (box) {
    // Backspace in the empty box takes the last token back into it.
    box.addEventListener('keydown', ev => {
      const token = $$('.query-box .token a').pop();
      if (ev.key !== 'Backspace' || box.value || !token?.dataset.token) return;
      ev.preventDefault();
      const q = must('input[name="q"]', box.form ?? document);
      q.value = new URL(token.href).searchParams.get('q') ?? '';
      box.value = token.dataset.token;
      token.parentElement?.remove();
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
      a.href = '/letters?' + new URLSearchParams({ q: x });
      a.append(span); li.append(a);
      return li;
    }));
    recent.hidden = !others.length;
  }

  // ---------- a long facet is searched ----------
  for (const find of $$('input[data-narrow]')) {
    find.addEventListener('input', () => {
      const facet = find.closest('details'), text = find.value.toLowerCase();
      for (const li of facet ? $$('.pair', facet) : []) li.hidden = !must('.facet', li).title.toLowerCase().includes(text);
      for (const rest of facet ? $$('details', facet) : []) rest.open = text !== '';
    });
    find.addEventListener('keydown', ev => { if (ev.key === 'Enter') ev.preventDefault(); });
  }

  // ---------- filters as a dialog, where their column has no room ----------
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

  // ---------- times: UTC as the server writes them, or local ----------
  const form = $('[data-times]');
  /** @param {number} n */
  const two = n => String(n).padStart(2, '0');
  /** @param {Date} t */
  const local = t => `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}T${two(t.getHours())}:${two(t.getMinutes())}`;
  /** @type {string | undefined} */
  let zone = 'utc';
  /** @param {string | undefined} to */
  const times = to => {
    if (to === zone) return;
    for (const i of form ? $$('input[type="datetime-local"]', form) : []) {
      if (i.value) i.value = to === 'local' ? local(new Date(i.value + 'Z')) : new Date(i.value).toISOString().slice(0, 16);
    }
    for (const t of $$('time[data-clock]')) {
      t.dataset.utc ??= t.textContent;
      t.textContent = to === 'utc' ? t.dataset.utc : new Date(t.dateTime).toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' }).replace(',', '');
    }
    for (const w of $$('[data-zone-word]')) w.textContent = to === 'utc' ? 'UTC' : 'local time';
    for (const b of $$('[data-zone]')) b.setAttribute('aria-pressed', String(b.dataset.zone === to));
    zone = to;
  };
  if (cookie('zone') === 'local') times('local');
  for (const b of $$('[data-zone]')) {
    b.addEventListener('click', () => {
      // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API needs HTTPS
      document.cookie = `zone=${b.dataset.zone}; path=/; max-age=31536000; samesite=strict`;
      times(b.dataset.zone);
    });
  }
  form?.addEventListener('formdata', ev => {
    for (const name of ['from', 'to']) {
      const v = ev.formData.get(name);
      if (zone === 'local' && typeof v === 'string' && v) ev.formData.set(name, new Date(v).toISOString().slice(0, 16));
    }
  });
})();
