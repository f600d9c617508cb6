// The form of the page web.html: it hands what is chosen to week-worker.js and shows what comes back.
// A query such as ?scenario=web-week&policy=portfolio&seed=1 is chosen and run at once.
'use strict';
{
  const form = document.getElementById('week'), by = id => document.getElementById(`week-${id}`);
  let worker, ready;

  const say = text => { by('state').textContent = text; };

  function run() {
    worker?.terminate(); // a run under way is not waited for
    const asked = Object.fromEntries(new FormData(form));
    by('answer').hidden = true;
    by('progress').hidden = false;
    by('progress').removeAttribute('value');
    say('Loading the simulator.');
    worker = new Worker(new URL('week-worker.js', document.baseURI));
    worker.addEventListener('message', ({ data }) => on[data.kind](data, asked));
    worker.addEventListener('error', e => on.failed({ error: e.message }));
  }

  const on = {
    ready: (_, asked) => { say('Playing the week.'); worker.postMessage(asked); },
    progress: ({ done, total }) => {
      Object.assign(by('progress'), { value: done, max: total });
      say(`Playing the week: ${done} of ${total} done.`);
    },
    failed: ({ error }) => {
      worker.terminate();
      by('progress').hidden = true;
      say(`It failed: ${error}`);
    },
    done: ({ verdict, table, text, command }) => {
      worker.terminate();
      by('progress').hidden = true;
      by('verdict').textContent = verdict;
      by('table').innerHTML = table;
      by('text').textContent = text;
      by('command').textContent = command;
      by('answer').hidden = false;
      say('Done.');
    },
  };

  form.addEventListener('submit', e => {
    e.preventDefault();
    history.replaceState(null, '', `?${new URLSearchParams(new FormData(form))}`);
    run();
  });
  const query = new URLSearchParams(location.search);
  for (const [name, value] of query) {
    const field = form.elements[name];
    if (!field) continue;
    // A name that is not offered is handed on, so that the program says which there are.
    if (field.options && ![...field.options].some(o => o.value === value)) field.append(new Option(value, value));
    field.value = value;
  }
  if (query.has('scenario') || query.has('policy') || query.has('seed')) run();
}
