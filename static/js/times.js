// Times are shown in UTC, as the server writes them, or in local time. The reader's choice applies
// to all pages.
(() => {
  'use strict';
  const { $$, now } = window.dlo;
  /** @param {number} n */
  const two = n => String(n).padStart(2, '0');
  /** @param {Date} t */
  const date = t => `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`;
  /** @param {Date} t */
  const clock = t => `${two(t.getHours())}:${two(t.getMinutes())}`;
  /** A time as the server writes it: short if it is near. @param {Date} t */
  const near = t => {
    const days = (now().getTime() - t.getTime()) / 864e5;
    if (date(t) === date(now())) return clock(t);
    return Math.abs(days) < 6 ? `${t.toLocaleDateString('en-GB', { weekday: 'short' })} ${clock(t)}` : date(t);
  };
  /** @param {Date} t */
  const day = t => `${t.getDate()} ${t.toLocaleDateString('en-GB', { month: 'short' })}`;
  /** @type {Record<string, (t: Date) => string>} */
  const ways = { time: clock, date: day, day: t => `${day(t)} ${clock(t)}` };
  /** @type {string} */
  let zone = 'utc';
  /** Writes the times below an element in the zone that was chosen. @type {typeof dlo.times} */
  const write = (root = document) => {
    for (const t of $$('[data-clock]', root)) {
      t.dataset.utc ??= t.textContent ?? '';
      const at = new Date(t.getAttribute('datetime') ?? '');
      t.textContent = zone === 'utc' ? t.dataset.utc : (ways[t.dataset.clock ?? ''] ?? near)(at);
    }
    for (const w of $$('[data-zone-word]', root)) w.textContent = zone === 'utc' ? 'UTC' : 'local time';
  };
  window.dlo.times = write;
  // "4 s ago" counts up with the time since the page opened. The clock of the reader is not used,
  // because it may be wrong.
  /** @type {WeakMap<Element, number>} */
  const began = new WeakMap();
  setInterval(() => {
    for (const t of $$('time:not([data-clock])')) {
      const said = /^(?:just now|(\d+) (s|min) ago)$/.exec(t.textContent ?? '');
      if (!said) continue;
      const at = began.get(t) ?? performance.now() - Number(said[1] ?? 0) * (said[2] === 'min' ? 6e4 : 1e3), s = Math.floor((performance.now() - at) / 1e3);
      began.set(t, at);
      if (s > 0 && s < 3600) t.textContent = s < 60 ? `${s} s ago` : `${Math.floor(s / 60)} min ago`;
    }
  }, 1000);
  /** @param {string} to */
  const choose = to => {
    if (to === zone) return;
    for (const i of $$('input[type="datetime-local"]')) {
      const t = new Date(i.value + (to === 'local' ? 'Z' : ''));
      if (i.value) i.value = to === 'local' ? `${date(t)}T${clock(t)}` : t.toISOString().slice(0, 16);
    }
    zone = to;
    for (const b of $$('button[data-zone]')) b.setAttribute('aria-pressed', String(b.dataset.zone === to));
    write();
  };
  if (document.cookie.split('; ').includes('zone=local')) choose('local');
  for (const b of $$('button[data-zone]')) {
    b.addEventListener('click', () => {
      const to = b.dataset.zone === 'other' ? (zone === 'utc' ? 'local' : 'utc') : b.dataset.zone ?? 'utc';
      // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API needs HTTPS
      document.cookie = `zone=${to}; path=/; max-age=31536000; samesite=strict`;
      choose(to);
    });
  }
  document.addEventListener('formdata', ev => {
    for (const i of $$('input[type="datetime-local"]', /** @type {Element} */ (ev.target))) {
      const v = ev.formData.get(i.name);
      if (zone === 'local' && typeof v === 'string' && v) ev.formData.set(i.name, new Date(v).toISOString().slice(0, 16));
    }
  });
})();
