// One legend of policies for all pictures. What it hides is in the address after the part of the
// page, as in #worst&hide=spot, so that a link shows the same.
window.report.loaded.then(() => {
  const policies = window.report.data.policies || [];
  const box = document.getElementById('legend');
  if (policies.length < 2 || !box) return;
  const parse = () => {
    const [part, ...rest] = location.hash.slice(1).split('&');
    return [part.startsWith('hide=') ? '' : part, new URLSearchParams(location.hash.slice(part.startsWith('hide=') ? 1 : part.length + 2)), rest.length > 0 || part.startsWith('hide=')];
  };
  const hidden = new Set(parse()[1].getAll('hide'));
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
    const query = new URLSearchParams([...hidden].map(name => ['hide', name])).toString();
    history.replaceState(null, '', '#' + [parse()[0], query].filter(x => x).join('&'));
  };
  addEventListener('hashchange', () => {
    const [, query, given] = parse();
    if (given) { // another link to this page
      hidden.clear();
      query.getAll('hide').forEach(name => hidden.add(name));
      show();
    } else if (hidden.size > 0) keep(); // a link within the page
  });
  show();
});
