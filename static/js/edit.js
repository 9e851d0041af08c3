// Text editors. In the payload editor, the server checks the text after a pause in typing. The
// page's diff, checks and mistake are then replaced. Without this script, the Check button does the
// same.
(() => {
  'use strict';
  const { $, parse, fields, action } = window.dlo;
  const text = $('textarea.editor');
  if (!text) return;
  const form = $('form[data-editor]');
  let timer = 0, asked = 0;

  /** @type {(doc: Document, id: string) => void} */
  const swap = (doc, id) => {
    const now = doc.getElementById(id), was = document.getElementById(id);
    if (now && was) was.replaceWith(document.importNode(now, true));
  };

  /** @type {(form: HTMLFormElement) => Promise<void>} */
  const check = async form => {
    const turn = ++asked, body = fields(form);
    body.set('do', 'check');
    try {
      const doc = await parse(await fetch(action(form), { method: 'POST', body }));
      if (turn !== asked || !$('[data-editor]', doc)) return;
      for (const id of ['edit-diff', 'edit-checks', 'edit-text-mistake']) swap(doc, id);
      text.toggleAttribute('aria-invalid', !!$('#edit-text-wrong', doc));
    } catch { /* the button says why */ }
  };

  // The length of the selected text, or of the whole text.
  const size = $('#edit-text-size');
  const count = () => {
    const part = text.value.slice(text.selectionStart, text.selectionEnd), of = part || text.value;
    const [characters, bytes] = [[...of].length, new TextEncoder().encode(of).length].map(n => n.toLocaleString('en-US'));
    if (size) size.textContent = `${part ? 'Selected characters' : 'Characters'}: ${characters}. Bytes: ${bytes}.`;
  };
  for (const kind of ['input', 'select', 'keyup', 'mouseup']) text.addEventListener(kind, count);

  form?.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(check, 500, form); });

  // The caret moves to the mistake that the server found.
  const wrong = $('.error[data-line]'), line = Number(wrong?.dataset.line ?? 0);
  if (wrong && line > 0) {
    const before = text.value.split('\n').slice(0, line - 1);
    const at = before.reduce((n, l) => n + l.length + 1, 0) + Number(wrong.dataset.column) - 1;
    text.focus();
    text.setSelectionRange(at, at);
  }

  // A new line gets the indentation of the line before it.
  text.addEventListener('keydown', ev => {
    if (ev.key !== 'Enter' || ev.shiftKey || ev.isComposing) return;
    const before = text.value.slice(0, text.selectionStart), indent = /(^|\n)( *)[^\n]*$/.exec(before)?.[2];
    if (!indent) return;
    ev.preventDefault();
    document.execCommand('insertText', false, '\n' + indent);
  });
})();
