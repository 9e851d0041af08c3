// A field with a list of choices, for query completion and for the palette. The list is a listbox
// under the field. Arrow keys move within it, Enter takes the marked choice, and Escape closes it.
(() => {
  'use strict';
  const { $, $$, must, base } = window.dlo;
  let count = 0;
  /**
   * Lists the choices that ask returns for a text, and calls take with one. now asks at once.
   * @type {(input: HTMLInputElement, list: HTMLElement, ask: (text: string, caret: number) => Promise<Choice[]>, take: (chosen: Choice) => void) => { now(): void; close(): void }}
   */
  const choose = (input, list, ask, take) => {
    let timer = 0, asked = 0, at = -1;
    /** @type {Choice[]} */
    let shown = [];
    list.id ||= 'choices-' + ++count;
    for (const [name, value] of Object.entries({ role: 'combobox', 'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': list.id, autocomplete: 'off' })) input.setAttribute(name, value);
    /** @param {number} to */
    const mark = to => {
      at = to;
      $$('[role="option"]', list).forEach((o, i) => { o.setAttribute('aria-selected', String(i === at)); if (i === at) o.scrollIntoView({ block: 'nearest' }); });
      if (at < 0) input.removeAttribute('aria-activedescendant');
      else input.setAttribute('aria-activedescendant', `${list.id}-${at}`);
    };
    /** @param {Choice[]} choices */
    const show = choices => {
      shown = choices;
      list.replaceChildren(...choices.map((c, i) => {
        const o = document.createElement('li'), text = document.createElement('span');
        o.id = `${list.id}-${i}`; o.setAttribute('role', 'option'); o.className = 'choice';
        text.className = 'clip mono'; text.textContent = c.text; o.title = c.text;
        o.append(text);
        for (const [name, said] of [['kind', c.kind], ['label', c.label], ['key', c.key]]) {
          if (!said) continue;
          const s = document.createElement('span');
          s.className = name === 'kind' ? 'faint tiny first' : 'push faint tiny clip'; s.textContent = said;
          if (name === 'kind') o.prepend(s); else o.append(s);
        }
        return o;
      }));
      list.hidden = !choices.length;
      input.setAttribute('aria-expanded', String(!list.hidden));
      mark(-1);
    };
    const close = () => { clearTimeout(timer); asked++; if (!list.hidden) show([]); };
    const now = async () => {
      const mine = ++asked, choices = await ask(input.value, input.selectionStart ?? input.value.length);
      if (mine === asked && document.activeElement === input) show(choices);
    };
    const soon = () => { clearTimeout(timer); timer = setTimeout(() => now().catch(close), 120); };
    input.addEventListener('input', soon);
    input.addEventListener('blur', close);
    input.addEventListener('keydown', ev => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[ev.key];
      if (step && list.hidden) { ev.preventDefault(); return soon(); }
      if (list.hidden) return;
      if (step) { ev.preventDefault(); return mark((at + step + shown.length + (at < 0 && step < 0 ? 1 : 0)) % shown.length); }
      if (ev.key === 'Escape') { ev.preventDefault(); ev.stopPropagation(); return close(); }
      const chosen = shown[at];
      if (!chosen || ev.key !== 'Enter' && ev.key !== 'Tab') return;
      ev.preventDefault();
      close(); take(chosen);
    });
    list.addEventListener('mousedown', ev => {
      ev.preventDefault(); // the field keeps the focus
      const o = /** @type {Element} */ (ev.target).closest('[role="option"]'), chosen = o && shown[$$('[role="option"]', list).indexOf(o)];
      if (chosen) { close(); take(chosen); }
    });
    return { now: soon, close };
  };

  /** @type {(path: string) => Promise<Choice[]>} */
  const fetched = async path => {
    const response = await fetch(path);
    return response.ok ? response.json() : [];
  };

  // ---------- query completion: the server completes the word before the caret ----------
  for (const box of $$('input[data-query]')) {
    const list = document.createElement('ul');
    list.className = 'menu-list choices'; list.hidden = true; list.setAttribute('role', 'listbox'); list.setAttribute('aria-label', 'Completions');
    box.removeAttribute('list');
    (box.closest('.query-box') ?? box).after(list);
    const field = choose(box, list, (q, at) => fetched((box.dataset.query || base + '/letters/complete') + '?' + new URLSearchParams({ q, at: String(at) })), chosen => {
      const rest = box.value.slice(box.selectionStart ?? box.value.length);
      box.value = chosen.text + rest;
      box.setSelectionRange(chosen.text.length, chosen.text.length);
      if (/[:.]$/.test(chosen.text)) field.now();
    });
    box.addEventListener('focus', field.now);
  }

  // ---------- the palette: everything with a name, and this page's actions ----------
  const jump = $('input#jump-in'), found = $('#jump-list');
  if (jump && found) {
    /** The actions of the buttons of this page. @type {(text: string) => Choice[]} */
    const deeds = text => $$('main [data-verb], main [data-do], [data-theme-form] button, [data-live-pause]')
      .filter(b => b.offsetParent && !b.closest('dialog, [data-row]') && !('disabled' in b && b.disabled))
      .map(b => ({ kind: 'Do', text: (b.getAttribute('aria-label') ?? (b.innerText || b.textContent || '').trim()).split('\n')[0]?.trim() ?? '', deed: b }))
      .filter((c, i, all) => c.text !== '' && c.text.toLowerCase().includes(text.toLowerCase()) && all.findIndex(x => x.text === c.text) === i).slice(0, 6);
    const field = choose(jump, found, async q => {
      const named = await fetched(base + '/palette?' + new URLSearchParams({ q })), acts = deeds(q.trim());
      return q.trim() ? [...acts, ...named] : [...named, ...acts];
    }, chosen => {
      if (chosen.link) { location.href = base + chosen.link; return; }
      jump.closest('dialog')?.close();
      chosen.deed?.click();
    });
    jump.addEventListener('focus', field.now);
    jump.closest('dialog')?.addEventListener('close', () => { jump.value = ''; });
    // Without a marked choice, Enter submits the form and the server takes its best match.
    must('form', must('#dlg-jump')).addEventListener('submit', field.close);
  }
})();
