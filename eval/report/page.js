'use strict';
(() => {
  const button = (text, label, act) => {
    const b = document.createElement('button');
    b.type = 'button';
    b.className = 'small';
    b.textContent = text;
    if (label) b.setAttribute('aria-label', label);
    b.addEventListener('click', () => act(b));
    return b;
  };
  const tools = document.getElementById('tools');

  const scenarios = [...document.querySelectorAll('#scenarios > details')];
  if (scenarios.length > 1) {
    tools.append(button('Fold all scenarios', '', b => {
      const open = !scenarios.every(d => d.open);
      scenarios.forEach(d => { d.open = open; });
      b.textContent = open ? 'Fold all scenarios' : 'Open all scenarios';
    }));
  }
  const root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const theme = button('', '', b => {
    root.dataset.theme = dark() ? 'light' : 'dark';
    b.textContent = dark() ? 'Light colours' : 'Dark colours';
  });
  theme.textContent = dark() ? 'Light colours' : 'Dark colours';
  tools.append(theme);

  // copyable adds a button to a command.
  const copyable = box => {
    const code = box.querySelector('code');
    box.append(button('Copy', 'Copy the command ' + code.textContent, async b => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        b.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(code);
        b.textContent = 'Selected';
      }
      setTimeout(() => { b.textContent = 'Copy'; }, 2000);
    }));
  };
  document.querySelectorAll('.command').forEach(copyable);
  window.report = { copyable };

  // A table of many rows can be filtered by words.
  for (const table of document.querySelectorAll('table.sortable')) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 8) continue;
    const label = document.createElement('label');
    label.className = 'filter';
    const input = document.createElement('input');
    input.type = 'search';
    const count = document.createElement('output');
    label.append('Filter rows ', input, count);
    table.parentElement.before(label);
    input.addEventListener('input', () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(w => w);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every(w => text.includes(w));
        shown += !row.hidden;
      }
      count.textContent = words.length > 0 ? `${shown} of ${rows.length}` : '';
    });
  }

  // What a cell is sorted by: the first number in its text, as in ★ 99.2 or −$1,234, a duration in
  // seconds, or the text. What is not known is less than anything, and the baseline is no change.
  const key = cell => {
    const text = cell.firstChild ? cell.firstChild.textContent : '';
    if (text === '–' || text === 'not measured') return -Infinity;
    if (text === 'baseline' || text === 'reference') return 0;
    if (/^(\d+[hms])+$/.test(text)) return [...text.matchAll(/(\d+)([hms])/g)].reduce((sum, [, n, unit]) => sum + n * { h: 3600, m: 60, s: 1 }[unit], 0);
    const number = /^[★ ]*([−+]?)\$?(\d[\d,.]*)/.exec(text);
    return number && !/^\d{4}-\d\d/.test(text) ? Number(number[2].replace(/,/g, '')) * (number[1] === '−' ? -1 : 1) : text;
  };
  for (const table of document.querySelectorAll('table.sortable')) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((th, column) => {
      const b = document.createElement('button');
      b.type = 'button';
      b.append(...th.childNodes);
      b.firstChild.textContent = b.firstChild.textContent.trimEnd(); // no line ends before the arrow
      const arrow = document.createElement('span');
      arrow.className = 'arrow';
      arrow.setAttribute('aria-hidden', 'true');
      b.firstChild.after(arrow);
      th.append(b);
      b.addEventListener('click', () => {
        const up = th.getAttribute('aria-sort') !== 'ascending';
        for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
        th.setAttribute('aria-sort', up ? 'ascending' : 'descending');
        const rows = [...body.rows].map(row => [key(row.cells[column]), row]);
        rows.sort(([a], [c]) => {
          const order = typeof a === 'number' && typeof c === 'number' ? a - c : String(a).localeCompare(String(c), 'en');
          return up ? order : -order;
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
  }

  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1).split('&')[0]));
    const details = target && target.closest('details');
    if (details) details.open = true;
    if (target && location.hash.includes('&')) target.scrollIntoView(); // the browser knows no such part
  };
  addEventListener('hashchange', reveal);
  reveal();
})();
