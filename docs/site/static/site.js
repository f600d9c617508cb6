// The search, the menu of versions, the button for light and dark, and the menu of pages
// on a phone. It asks for two files: search.js when somebody searches, and versions.json,
// which build/site-versions makes beside the folders of the versions.
'use strict';
const root = document.documentElement;
const folder = new URL('.', document.currentScript.src);
let index; // every section, with what is looked through in lower case
let indexed; // called when it has come
window.found = sections => { index = sections.map(s => ({ ...s, inHead: `${s.name} ${s.heading}`.toLowerCase(), inText: s.text.toLowerCase() })); indexed(); };

const stored = (() => { try { return localStorage; } catch { return {}; } })();
if (stored.theme) root.dataset.theme = stored.theme;

// search returns the twelve sections that fit best: all words must be there, and a word in
// a heading counts more than one in the text.
function search(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const score = s => words.reduce((sum, w) => {
    const head = s.inHead.includes(w), times = s.inText.split(w).length - 1;
    return head || times > 0 ? sum + (head ? 10 : 0) + (s.heading.toLowerCase() === w ? 20 : 0) + Math.min(times, 5) : NaN;
  }, 0);
  return words.length === 0 ? [] : index.map(s => [score(s), s]).filter(([n]) => n > 0).sort(([a], [b]) => b - a).slice(0, 12)
    .map(([, s]) => ({ ...s, excerpt: excerpt(s, words[0]) }));
}

// excerpt returns what stands before, at and behind the first place of a word.
function excerpt(s, word) {
  const at = Math.max(0, s.inText.indexOf(word)), end = at + (s.inText.includes(word) ? word.length : 0);
  return [s.text.slice(Math.max(0, at - 60), at).replace(/^\S+/, at > 60 ? '…' : '$&'), s.text.slice(at, end), s.text.slice(end, end + 100).replace(/\S*$/, '…')];
}

function element(name, text, ...children) {
  const e = document.createElement(name);
  e.textContent = text;
  e.append(...children);
  return e;
}

function show(list, query) {
  const all = search(query);
  list.hidden = query.trim() === '';
  list.replaceChildren(...all.map(f => {
    const [before, marked, after] = f.excerpt;
    const a = element('a', '', element('b', f.name === f.heading ? f.name : `${f.name} › ${f.heading}`), element('span', before, element('mark', marked), after));
    a.href = `${f.page}#${f.anchor}`;
    return element('li', '', a);
  }));
  if (all.length === 0) list.append(element('li', 'Nothing has all of these words.'));
}

// versions fills the menu. The version that is chosen may lack this page.
async function versions(menu) {
  const all = await (await fetch(new URL('../versions.json', folder))).json();
  menu.replaceChildren(...all.map(v => new Option(v, v, false, v === menu.value)));
  menu.addEventListener('change', async () => {
    const to = new URL(`../${menu.value}/`, folder), page = new URL(location.pathname.split('/').at(-1), to);
    location.href = (await fetch(page, { method: 'HEAD' })).ok ? page : to;
  });
}

addEventListener('DOMContentLoaded', () => {
  const by = id => document.getElementById(id);
  const input = by('search'), list = by('found');
  const load = () => {
    if (indexed) return;
    indexed = () => show(list, input.value);
    document.head.append(Object.assign(document.createElement('script'), { src: new URL('search.js', folder) }));
  };
  input.addEventListener('focus', load);
  input.addEventListener('input', () => { load(); if (index) show(list, input.value); });
  addEventListener('keydown', e => {
    if (e.key === '/' && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) { e.preventDefault(); input.focus(); }
    if (list.hidden) return;
    if (e.key === 'Escape') { list.hidden = true; input.focus(); }
    const stops = [input, ...list.querySelectorAll('a')], at = stops.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && at >= 0) { e.preventDefault(); stops[at + step]?.focus(); }
    if (e.key === 'Enter' && at === 0) stops[1]?.click();
  });
  addEventListener('click', e => { if (!e.target.closest('.search') || e.target.closest('#found a')) list.hidden = true; });
  by('theme').addEventListener('click', () => {
    const dark = (root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
    root.dataset.theme = stored.theme = dark ? 'light' : 'dark';
  });
  by('menu').addEventListener('click', e => {
    e.currentTarget.setAttribute('aria-expanded', by('nav').classList.toggle('open'));
  });
  by('nav').querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  if (location.protocol !== 'file:') versions(by('version'));
});
