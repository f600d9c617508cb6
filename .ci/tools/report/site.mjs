// Opens the site of the documents in Chromium, from a server on this machine, and fails
// where a page is not what a reader needs.
//
//   node site.mjs CHROMIUM MODULES SITE INDEX WEEK…
//
// MODULES is the node_modules folder with playwright-core and axe-core, SITE has the
// versions v0.9.0, v0.10.0 and v1.0.0-rc.1 of the site, and INDEX is docs/README.md. Each WEEK
// is a file SCENARIO.POLICY.SEED.txt with what `spotter eval` prints of it, next to one that ends
// with .md and has it as Markdown.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, extname, join } from 'node:path';
import { load } from './axe.mjs';

const [executablePath, modules, site, index, ...weeks] = process.argv.slice(2);
const { chromium, accessibility } = load(modules);

const types = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.svg': 'image/svg+xml', '.png': 'image/png', '.json': 'application/json', '.gz': 'application/gzip' };
let spoiled = text => text; // makes a page faulty
const server = createServer((request, response) => {
  let file = join(site, new URL(request.url, 'http://x').pathname);
  if (existsSync(file) && statSync(file).isDirectory()) file = join(file, 'index.html');
  if (!existsSync(file)) return response.writeHead(404).end();
  const type = types[extname(file)] ?? 'application/octet-stream';
  const data = readFileSync(file);
  response.writeHead(200, { 'content-type': type }).end(type === 'text/html' ? spoiled(data.toString()) : data);
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const host = `http://127.0.0.1:${server.address().port}/`;

const pages = [...readFileSync(index, 'utf8').matchAll(/^- \[.+?\]\((.+?)\.md\): /gm)].map(m => `${m[1]}.html`);
const sizes = { desk: { width: 1440, height: 900 }, phone: { width: 375, height: 812 } };
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });

// open returns a page of which faults are noted in found, and its context.
async function open(size, colorScheme, found) {
  const context = await browser.newContext({ viewport: sizes[size], colorScheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on('request', r => { if (!r.url().startsWith(host)) found.push(`asks for ${r.url()}`); });
  page.on('response', r => { if (r.status() >= 400) found.push(`has no ${r.url()}`); });
  page.on('console', m => found.push(`console: ${m.text()}`));
  page.on('pageerror', e => found.push(`script: ${e}`));
  return { page, context };
}

// faults opens one page, then on a phone, and returns what is wrong with it.
async function faults(name, size, scheme) {
  const found = [];
  const { page, context } = await open(size, scheme, found);
  await page.goto(`${host}latest/${name}`);
  const { titles, blank, here } = await page.evaluate(() => ({
    titles: document.querySelectorAll('main h1').length,
    blank: [...document.images].filter(i => i.naturalWidth === 0).map(i => i.src),
    here: document.querySelectorAll('nav [aria-current=page]').length,
  }));
  if (titles !== 1) found.push(`has ${titles} titles`);
  if (blank.length > 0) found.push(`shows no ${blank[0]}`);
  if (here !== (name === 'index.html' ? 0 : 1)) found.push(`is ${here} times current in the navigation`);
  for (const v of (await accessibility(page, context)).violations) {
    if (v.impact === 'serious' || v.impact === 'critical') found.push(`${v.impact}: ${v.id} at ${v.nodes} places, first ${v.first}`);
  }
  await page.setViewportSize(sizes.phone);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (over > 0) found.push(`is ${over} px wider than a phone`);
  await context.close();
  return found;
}

// misbehaves returns what the scripts of the site do not do.
async function misbehaves() {
  const found = [];
  const check = (ok, text) => { if (!ok) found.push(text); };
  const { page, context } = await open('phone', 'light', found);
  await page.goto(host);
  await page.waitForURL(`${host}latest/index.html`);

  await page.locator('#menu').click();
  check(await page.locator('nav a:visible').count() === pages.length, 'the menu of a phone has not all pages');
  await page.keyboard.press('/');
  check(await page.locator('#search').evaluate(e => e === document.activeElement), '/ does not lead to the search');
  await page.keyboard.type('CapacityPool');
  await page.locator('#found a').first().waitFor().catch(() => {});
  const hits = await page.locator('#found a').evaluateAll(all => all.map(a => a.getAttribute('href')));
  check(hits.includes('reference-crds.html#capacitypool'), `CapacityPool is found at ${hits}`);
  const { violations } = await accessibility(page, context);
  for (const v of violations) if (v.impact === 'serious' || v.impact === 'critical') found.push(`an open search: ${v.id}, first ${v.first}`);
  await page.locator('#search').fill('no page has these words: xyzzy');
  check(/Nothing/.test(await page.locator('#found').innerText()), 'what is nowhere is found');
  await page.keyboard.press('Escape');
  check(await page.locator('#found').isHidden(), 'the search does not close by the keyboard');

  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.locator('#theme').click();
  const dark = await paper();
  await page.goto(`${host}latest/run.html`);
  check(light !== dark && await paper() === dark, `light is ${light}, dark ${dark}, and on the next page ${await paper()}`);

  await page.locator('#version option').nth(2).waitFor({ state: 'attached' }).catch(() => {});
  const versions = await page.locator('#version option').allInnerTexts();
  check(versions.join() === 'v1.0.0-rc.1,v0.10.0,v0.9.0', `the versions are ${versions}`);
  check(await page.locator('#version').inputValue() === 'v0.10.0', `the latest is ${await page.locator('#version').inputValue()}`);
  await page.locator('#version').selectOption('v0.9.0');
  await page.waitForURL(`${host}v0.9.0/run.html`).catch(() => found.push('the menu does not lead to v0.9.0/run.html'));
  await context.close();
  return found;
}

// plays opens the page that plays a week and returns in what it differs from what the program
// printed: all of its text, and every row of its table, which is that of its Markdown.
async function plays(name, printed, markdown) {
  const [scenario, policy, seed] = name.split('.');
  const found = [], states = new Set();
  const { page, context } = await open('phone', 'dark', found);
  await page.exposeFunction('stated', text => states.add(text));
  await page.addInitScript(() => addEventListener('DOMContentLoaded', () =>
    new MutationObserver(() => stated(document.getElementById('week-state').textContent))
      .observe(document.getElementById('week-state'), { childList: true, characterData: true, subtree: true })));
  const begun = Date.now();
  await page.goto(`${host}latest/web.html?${new URLSearchParams({ scenario, policy, seed })}`);
  await page.waitForFunction(() => /^(Done|It failed)/.test(document.getElementById('week-state').textContent), null, { timeout: 120_000 })
    .catch(e => found.push(`${e}`));
  const took = Date.now() - begun;
  const shown = await page.evaluate(() => ({
    state: document.getElementById('week-state').textContent,
    text: document.getElementById('week-text').textContent,
    rows: [...document.querySelectorAll('#week-table tr')].map(r => [...r.cells].map(c => c.textContent)),
  }));
  if (shown.state !== 'Done.') found.push(`says ${shown.state}`);
  if (shown.text !== printed) found.push(`prints\n${shown.text}\nand the program\n${printed}`);
  if (!shown.rows.some(r => r[0].includes(policy))) found.push(`has no row of ${policy}: ${JSON.stringify(shown.rows)}`);
  for (const row of shown.rows) {
    if (!markdown.includes(`| ${row.join(' | ')} |\n`)) found.push(`shows ${row.join(' | ')}, which the program does not`);
  }
  if (![...states].some(s => /\d of \d done/.test(s))) found.push(`says nothing of how far it is: ${[...states]}`);
  for (const v of (await accessibility(page, context)).violations) {
    if (v.impact === 'serious' || v.impact === 'critical') found.push(`${v.impact}: ${v.id}, first ${v.first}`);
  }
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (over > 0) found.push(`is ${over} px wider than a phone with a week`);
  await context.close();
  return { found, took };
}

// saidOf returns what the program printed of a week, as text and as Markdown without its escapes.
function saidOf(file) {
  return [readFileSync(file, 'utf8'), readFileSync(file.replace(/txt$/, 'md'), 'utf8').replaceAll('\\', '')];
}

// refuses returns what the page does not say of a scenario that there is not, and whether the form
// plays another week.
async function refuses() {
  const found = [];
  const { page, context } = await open('desk', 'light', found);
  const until = text => page.locator('#week-state', { hasText: text }).waitFor({ timeout: 120_000 }).catch(e => found.push(`${e}`));
  await page.goto(`${host}latest/web.html?scenario=none`);
  await until('It failed: there is no such choice: scenario "none", known are api-throttle');
  await page.locator('#week select[name=scenario]').selectOption('tiny');
  await page.locator('#week select[name=policy]').selectOption('spot');
  await page.locator('#week button').click();
  await until('Done.');
  if (!page.url().endsWith('web.html?scenario=tiny&policy=spot&seed=1')) found.push(`the address is ${page.url()}`);
  await context.close();
  return found;
}

let failed = pages.length < 20;
console.log(`${pages.length} pages`);
const ways = [['desk', 'dark'], ['phone', 'light'], ['desk', 'light'], ['phone', 'dark']];
for (const [i, name] of ['index.html', ...pages].entries()) {
  const found = await faults(name, ...ways[i % 4]);
  if (found.length > 0) console.log(`${name}:\n  ${found.join('\n  ')}`);
  failed ||= found.length > 0;
}
const found = await misbehaves();
console.log(`the scripts of the site have ${found.length} faults`);
for (const f of found) console.log(`  ${f}`);
failed ||= found.length > 0;

for (const file of weeks) {
  const name = basename(file, '.txt');
  const { found, took } = await plays(name, ...saidOf(file));
  console.log(`${name} is played in ${took} ms${found.length > 0 ? `:\n  ${found.join('\n  ')}` : ''}`);
  failed ||= found.length > 0;
}
const unsaid = await refuses();
for (const f of unsaid) console.log(`web.html: ${f}`);
failed ||= unsaid.length > 0 || weeks.length === 0;
const changed = text => text.replaceAll(/\d/g, d => (+d + 1) % 10);
const other = weeks.length > 0 ? await plays(basename(weeks[0], '.txt'), ...saidOf(weeks[0]).map(changed)) : { found: [] };
if (!['prints', 'shows'].every(word => other.found.some(f => f.startsWith(word)))) {
  console.log('figures that differ are not noticed');
  failed = true;
}

// A check that cannot fail says nothing: each of these must.
for (const [what, pattern, markup] of [
  ['an image of a host', /asks for/, '<img alt="" src="https://host.invalid/x.png">'],
  ['an image that is not there', /has no|shows no/, '<img alt="" src="pictures/none.png">'],
  ['a script that fails', /script/, '<script>nothing()</script>'],
  ['a wide box', /wider/, '<div style="width:3000px">wide</div>'],
  ['pale words', /color-contrast/, '<p style="color:#eee;background:#fff">pale</p>'],
]) {
  spoiled = text => text.replace('</main>', markup + '</main>');
  const noticed = await faults('speed.html', 'phone', 'light');
  if (!noticed.some(f => pattern.test(f))) {
    console.log(`${what} is not noticed: ${noticed.join('; ') || 'no fault'}`);
    failed = true;
  }
}
await browser.close();
server.close();
process.exit(failed ? 1 : 0);
