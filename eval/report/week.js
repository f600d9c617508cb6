// A click on a run opens its week: savings over time, nodes by market, events.
window.report.loaded.then(() => {
  const { data, readout, amount, date, copyable } = window.report;
  if (!data.weeks || data.weeks.length === 0) return;

  const height = 220, left = 58, right = 10, top = 12, bottom = 30;
  const namespace = document.querySelector('svg').namespaceURI;
  const svg = (name, attributes, ...children) => {
    const e = document.createElementNS(namespace, name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  };
  const html = (name, text, className) => {
    const e = document.createElement(name);
    if (text) e.textContent = text;
    if (className) e.className = className;
    return e;
  };
  const colourOf = i => `var(--chart-series-${i % 7})`;

  // axes returns a picture with both axes and how points and values become pixels.
  const axes = (label, week, points, low, high, text) => {
    const width = Math.max(300, Math.min(700, innerWidth - 70)); // a pixel of it is one of the screen
    const x = k => left + k / Math.max(1, points - 1) * (width - left - right);
    const y = v => height - bottom - (v - low) / (high - low || 1) * (height - top - bottom);
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label });
    const raw = (high - low) / 4 || 1, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find(f => f * power >= raw) * power;
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) {
      picture.append(svg('path', { d: `M${left},${y(v)}H${width - right}`, class: 'grid' }), svg('text', { x: left - 6, y: y(v) + 4, 'text-anchor': 'end' }, text(v)));
    }
    const days = points * week.step / 86400, every = days > 2 ? Math.ceil(days * 80 / width) : 0.25;
    for (let d = 0; d < days - every / 4; d += every) {
      picture.append(svg('text', { x: x(d * 86400 / week.step), y: height - 10, 'text-anchor': 'middle' }, every < 1 ? d * 24 + ' h' : 'day ' + d));
    }
    return { picture, x, y, point: px => Math.max(0, Math.min(points - 1, Math.round((px - left) / (width - left - right) * (points - 1)))) };
  };
  const time = (week, k) => date(week.from + k * week.step) + ' UTC';

  const savings = week => {
    const all = week.saved;
    const a = axes(`Saved so far against ${week.against || 'on-demand'}: ${amount(all.at(-1))} at the end`, week, all.length, Math.min(0, ...all), Math.max(1, ...all), v => amount(v));
    a.picture.append(svg('path', { d: 'M' + all.map((v, k) => `${a.x(k)},${a.y(v)}`).join('L'), class: 'line' }));
    readout(a.picture, px => {
      const k = a.point(px);
      return { title: time(week, k), rows: [[colourOf(0), 'saved so far', amount(all[k])]], rule: [a.x(k), height - bottom, top] };
    });
    return a.picture;
  };

  // layers are the nodes of each market at each point, those with the most first and the rest in one.
  const layers = week => {
    const counts = new Map();
    for (const [k, market, nodes] of week.held) {
      if (!counts.has(market)) counts.set(market, new Array(week.saved.length).fill(0));
      counts.get(market).fill(nodes, k);
    }
    const sum = list => list.reduce((a, b) => a + b, 0);
    const sorted = [...counts].map(([market, list]) => [data.markets[market], list]).sort((a, b) => sum(b[1]) - sum(a[1]));
    const rest = sorted.splice(6);
    if (rest.length > 0) sorted.push([`${rest.length} others`, week.saved.map((_, k) => sum(rest.map(r => r[1][k])))]);
    return sorted;
  };
  const fleet = week => {
    const all = layers(week), points = week.saved.length;
    const total = week.saved.map((_, k) => all.reduce((s, [, list]) => s + list[k], 0));
    const a = axes('Nodes by market over time', week, points, 0, Math.max(1, ...total), v => Number.isInteger(v) ? String(v) : '');
    const below = new Array(points).fill(0);
    all.forEach(([, list], i) => {
      const lower = below.map((v, k) => `${a.x(k)},${a.y(v)}`).reverse();
      list.forEach((n, k) => { below[k] += n; });
      a.picture.append(svg('path', { d: 'M' + below.map((v, k) => `${a.x(k)},${a.y(v)}`).concat(lower).join('L') + 'Z', style: `fill:${colourOf(i)}` }));
    });
    readout(a.picture, px => {
      const k = a.point(px);
      return { title: `${time(week, k)}: ${total[k]} nodes`, rows: all.map(([name, list], i) => [colourOf(i), name, String(list[k])]).filter(r => r[2] !== '0'), rule: [a.x(k), height - bottom, top] };
    });
    return [a.picture, all];
  };

  const events = week => {
    const of = minutes => date(week.from + minutes * 60);
    const all = week.taken.map(([m, market, n]) => [m, `${of(m)}  ${n} reclaimed: ${data.markets[market]}`])
      .concat(week.out.map(([m, to, n]) => [m, `${of(m)}  ${n} outage minutes until ${of(to).slice(11)}`, 'bad']));
    all.sort((a, b) => a[0] - b[0]);
    const list = html('ol', '', 'events');
    for (const [, text, className] of all) list.append(html('li', text, className));
    return all.length > 0 ? list : html('p', 'No node was reclaimed and nothing was out.');
  };

  const dialog = html('dialog');
  dialog.setAttribute('aria-labelledby', 'week-h');
  document.body.append(dialog);
  window.openWeek = n => {
    const week = data.weeks[n - 1];
    const close = html('button', 'Close', 'small');
    close.addEventListener('click', () => dialog.close());
    const head = html('div', '', 'brand'), title = html('h2', week.title);
    title.id = 'week-h';
    head.append(title, close);
    const [picture, all] = fleet(week);
    const legend = html('ul', '', 'legend');
    all.forEach(([name], i) => {
      const item = html('li', name), swatch = html('i');
      swatch.style.background = colourOf(i);
      item.prepend(swatch);
      legend.append(item);
    });
    const scroll = html('div', '', 'eventbox');
    scroll.tabIndex = 0;
    scroll.setAttribute('role', 'group');
    scroll.setAttribute('aria-label', 'Events');
    scroll.append(events(week));
    const command = html('p', '', 'command');
    command.append(html('code', week.command));
    copyable(command);
    dialog.replaceChildren(head, html('p', week.facts), html('h3', `Saved so far against ${week.against || 'on-demand'}`), savings(week),
      html('h3', 'Nodes by market'), legend, picture, html('h3', 'Events (UTC)'), scroll, html('h3', 'Run it again'), command);
    dialog.showModal();
  };
  dialog.addEventListener('click', e => { if (e.target === dialog) dialog.close(); });

  for (const row of document.querySelectorAll('tr[data-week]')) {
    const n = Number(row.dataset.week);
    const b = html('button', 'Week', 'small');
    b.type = 'button';
    b.setAttribute('aria-label', 'See the week of ' + data.weeks[n - 1].title);
    row.cells[0].append(' ', b);
    row.addEventListener('click', e => {
      if (e.target === b || !e.target.closest('.command, button')) window.openWeek(n);
    });
  }
});
