// One legend of policies for all pictures. What it hides is in the address after the part of the
// page, as in #worst&hide=spot, so that a link shows the same.
window.report.loaded.then(() => {
  const policies = window.report.data.policies || [];
  const box = document.getElementById('legend');
  if (policies.length < 2 || !box) return;
  const parse = () => {
    const query = new URLSearchParams(location.hash.slice(1));
    return { part: [...query.keys()].filter(k => k !== 'hide'), hidden: query.getAll('hide') };
  };
  const hidden = new Set(parse().hidden);
  const buttons = policies.map(({ name, colour }) => {
    const b = document.createElement('button'), swatch = document.createElement('i');
    b.type = 'button';
    b.className = 'small';
    swatch.style.background = `var(${colour})`;
    b.append(swatch, name);
    b.addEventListener('click', () => {
      if (!hidden.delete(name)) hidden.add(name);
      show();
      keep();
    });
    return b;
  });
  const label = document.createElement('span');
  label.textContent = 'In all charts:';
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', 'Policies in all charts');
  box.append(label, ...buttons);

  // A picture has a group for each series, before them one for each entry of its own legend.
  const pictures = [...document.querySelectorAll('.picture[data-series]')].map(p => [
    p.dataset.series.split(' ').map(s => s.split(',').map(i => policies[i].name)), [...p.querySelectorAll('g.series')],
  ]);
  const show = () => {
    buttons.forEach((b, i) => b.setAttribute('aria-pressed', String(!hidden.has(policies[i].name))));
    for (const [series, groups] of pictures) {
      groups.forEach((g, i) => g.classList.toggle('off', series[i % series.length].every(name => hidden.has(name))));
    }
  };
  const keep = () => {
    const all = [...parse().part, ...[...hidden].map(name => 'hide=' + encodeURIComponent(name))];
    history.replaceState(null, '', '#' + all.join('&'));
  };
  addEventListener('hashchange', () => {
    const given = parse().hidden;
    if (given.length === 0) return keep(); // a link within the page
    hidden.clear(); // another link to this page
    given.forEach(name => hidden.add(name));
    show();
  });
  show();
});
