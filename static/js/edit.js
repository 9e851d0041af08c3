// The editor of a payload: what was typed is checked on the server after a pause, and diff, checks and mistake are put in the place of the old ones. Without it the button Check does the same.
(() => {
  'use strict';
  const form = document.querySelector('[data-editor]');
  if (!form) return;
  const text = form.querySelector('#edit-text');
  let timer = 0, asked = 0;

  const swap = (doc, id) => {
    const now = doc.getElementById(id), was = document.getElementById(id);
    if (now && was) was.replaceWith(document.importNode(now, true));
  };

  const check = async () => {
    const turn = ++asked, data = new URLSearchParams(new FormData(form));
    data.set('do', 'check');
    try {
      const response = await fetch(form.getAttribute('action'), { method: 'POST', body: data });
      const doc = new DOMParser().parseFromString(await response.text(), 'text/html');
      if (turn !== asked || !doc.querySelector('[data-editor]')) return;
      for (const id of ['edit-diff', 'edit-checks', 'edit-text-mistake']) swap(doc, id);
      text.toggleAttribute('aria-invalid', !!doc.querySelector('#edit-text-wrong'));
    } catch { /* the button says why */ }
  };

  form.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(check, 500); });

  // The caret goes to the mistake that the server found.
  const wrong = form.querySelector('[data-line]');
  if (wrong && wrong.dataset.line > 0) {
    const lines = text.value.split('\n'), line = wrong.dataset.line - 1;
    const at = lines.slice(0, line).reduce((n, l) => n + l.length + 1, 0) + wrong.dataset.column - 1;
    text.focus();
    text.setSelectionRange(at, at);
  }

  // A new line begins where the one before did.
  text.addEventListener('keydown', ev => {
    if (ev.key !== 'Enter' || ev.shiftKey || ev.isComposing) return;
    const before = text.value.slice(0, text.selectionStart), indent = /(^|\n)( *)[^\n]*$/.exec(before)[2];
    if (!indent) return;
    ev.preventDefault();
    document.execCommand('insertText', false, '\n' + indent);
  });
})();
