// What stands under the pointer in a picture. window.report is for week.js.
window.report.loaded = (async () => {
  const unpack = text => new Response(new Blob([Uint8Array.from(atob(text), c => c.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream('deflate-raw'))).json();
  const source = document.getElementById('data');
  const data = source ? await unpack(source.textContent) : {};
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.setAttribute('aria-hidden', 'true'); // the tables and the description of the picture have it too
  tip.hidden = true;
  document.body.append(tip);

  const rule = (svg, x, y0, y1) => {
    let line = svg.querySelector('.rule');
    if (!line) {
      line = document.createElementNS(svg.namespaceURI, 'path');
      line.setAttribute('class', 'rule');
      svg.append(line);
    }
    line.setAttribute('d', x === null ? '' : `M${x},${y0}V${y1}`);
  };

  // readout shows what find returns for a place in the picture: a title, rows of colour, name and
  // value, and perhaps where a rule is to be drawn and the run that a click opens.
  const readout = (svg, find) => {
    const box = svg.viewBox.baseVal;
    let found = null;
    const hide = () => {
      tip.hidden = true;
      if (found && found.rule) rule(svg, null);
      found = null;
      svg.style.cursor = '';
    };
    svg.addEventListener('pointermove', e => {
      const at = svg.getBoundingClientRect();
      found = find((e.clientX - at.left) / at.width * box.width, (e.clientY - at.top) / at.height * box.height);
      if (!found) return hide();
      tip.replaceChildren();
      const title = document.createElement('strong');
      title.textContent = found.title;
      tip.append(title);
      for (const [colour, name, value] of found.rows || []) {
        const row = document.createElement('div');
        const swatch = document.createElement('i');
        swatch.style.background = colour;
        const number = document.createElement('b');
        number.textContent = value;
        row.append(swatch, name, number);
        tip.append(row);
      }
      if (found.rule) rule(svg, ...found.rule);
      svg.style.cursor = found.week ? 'pointer' : '';
      (svg.closest('dialog') || document.body).append(tip); // above a dialog only what is in it shows
      tip.hidden = false;
      const left = e.clientX + 14 + tip.offsetWidth > innerWidth ? e.clientX - tip.offsetWidth - 14 : e.clientX + 14;
      tip.style.left = Math.max(4, left) + 'px';
      tip.style.top = Math.max(4, Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 4)) + 'px';
    });
    svg.addEventListener('pointerleave', hide);
    svg.addEventListener('click', () => {
      if (found && found.week && window.openWeek) window.openWeek(found.week);
    });
  };

  // As the package figures of Go writes them.
  const amount = (v, unit) => {
    const size = Math.abs(v), cents = size < 99.995 ? 2 : 0;
    const text = unit === '%' ? (size * 100).toFixed(1) + '%' :
      '$' + size.toLocaleString('en', { minimumFractionDigits: cents, maximumFractionDigits: cents });
    return (v < 0 && /[1-9]/.test(text) ? '−' : '') + text;
  };
  const date = seconds => new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ');

  // The scale of a picture: pixels and values at the ends of both axes.
  const scaleOf = svg => {
    const [left, right, low, high, x0, x1, y0, y1] = svg.dataset.scale.split(' ').map(Number);
    return {
      low, high,
      inside: (px, py) => px >= left - 6 && px <= right + 6 && py >= high - 6 && py <= low + 6,
      px: x => left + (x - x0) / (x1 - x0) * (right - left),
      py: y => low + (y - y0) / (y1 - y0) * (high - low),
      x: px => x0 + (px - left) / (right - left) * (x1 - x0),
      y: py => y0 + (py - low) / (high - low) * (y1 - y0),
    };
  };

  // nearest returns the item whose distance is least.
  const nearest = (items, distance) => items.reduce((best, item) => {
    const d = distance(item);
    return !best || d < best[1] ? [item, d] : best;
  }, null);

  // pointsOf returns the points of a line, of which each but the first is relative to the one before.
  const pointsOf = d => {
    const points = [];
    let x = 0, y = 0;
    for (const [, command, text] of d.matchAll(/([Mlhv])([^Mlhv]*)/g)) {
      const numbers = text.match(/-?\d*\.?\d+/g).map(Number);
      while (numbers.length > 0) {
        if (command === 'M') x = y = 0;
        if (command !== 'v') x += numbers.shift();
        if (command !== 'h') y += numbers.shift();
        points.push([x, y]);
      }
    }
    return points;
  };
  // heightAt returns where a line is at x.
  const heightAt = (points, x) => {
    const i = points.findIndex(p => p[0] >= x);
    if (i <= 0) return points.at(i)[1]; // before the first point, or behind the last
    const [x0, y0] = points[i - 1], [x1, y1] = points[i];
    return y0 + (x - x0) / (x1 - x0) * (y1 - y0);
  };

  const finders = {
    // Curves are the only paths of their width.
    lines(svg, scale, hover) {
      const curves = [...svg.querySelectorAll('path')].filter(path => getComputedStyle(path).strokeWidth === '1.8px')
        .map(path => ({ path, points: pointsOf(path.getAttribute('d')) }));
      return (px, py) => {
        if (!scale.inside(px, py) || curves.length !== hover.series.length) return null;
        const first = curves[0].points, x = Math.max(first[0][0], Math.min(px, first.at(-1)[0]));
        const rows = curves.map((c, i) => [getComputedStyle(c.path).stroke, hover.series[i], scale.y(heightAt(c.points, x))])
          .filter((_, i) => !curves[i].path.closest('.off'));
        rows.sort((a, b) => b[2] - a[2]);
        return {
          title: `${hover.time} ${scale.x(x).toFixed(1)}`, rule: [x, scale.low, scale.high],
          rows: rows.map(([colour, name, value]) => [colour, name, amount(value, hover.unit)]),
        };
      };
    },
    rows(svg, scale, hover) {
      return (px, py) => {
        if (py < scale.high || py > scale.low) return null;
        return { title: nearest(hover.marks, m => Math.abs(m[1] - scale.y(py)))[0][2] };
      };
    },
    points(svg, scale, hover) {
      return (px, py) => {
        // What sums up a policy goes before the dots below it.
        const [m, d] = nearest(hover.marks, m => Math.hypot(scale.px(m[0]) - px, scale.py(m[1]) - py) - (typeof m[2] === 'string' ? 3 : 0));
        if (d > 12) return null;
        if (typeof m[2] === 'string') return { title: m[2] };
        const run = data.weeks[m[2] - 1];
        return { title: run.title, rows: [['transparent', run.facts, ''], ['transparent', 'Click to see its week.', '']], week: m[2] };
      };
    },
    grid(svg, scale, hover) {
      return (px, py) => {
        if (!scale.inside(px, py)) return null;
        const row = hover.names.length - 1 - Math.round(scale.y(py));
        const at = hover.edges.findLastIndex(e => e <= scale.x(px));
        const count = (hover.cells[row] || [])[at];
        return count ? { title: `${hover.names[row]}: ${count} reclaimed`, rows: [['transparent', `${date(hover.edges[at])} to ${date(hover.edges[at + 1])}`, '']] } : null;
      };
    },
  };
  for (const picture of document.querySelectorAll('.picture')) {
    const hover = (data.pictures || {})[picture.dataset.picture];
    const svg = picture.querySelector('svg');
    if (hover && svg) readout(svg, finders[hover.kind](svg, scaleOf(svg), hover));
  }
  Object.assign(window.report, { data, readout, amount, date });
})();
