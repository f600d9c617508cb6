// Opens HTML reports from disk in Chromium, at the sizes of a desk and of a
// phone, in light and in dark, and fails when one asks for anything outside
// itself, writes to the console, is wider than the screen, has a serious fault
// of accessibility, or does not do what its script is for.
//
//   node check.mjs CHROMIUM MODULES REPORT…
//
// MODULES is the node_modules folder with playwright-core and axe-core. The
// last REPORT is opened in all four ways, the others in one of them each, in
// turns: their pages are of the same style. It is then made faulty in several
// ways, and each must be noticed.
import { readFileSync, writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { load } from './axe.mjs';

const [executablePath, modules, ...reports] = process.argv.slice(2);
const { chromium, accessibility } = load(modules);

const sizes = { desk: { width: 1440, height: 900 }, phone: { width: 375, height: 812 } };
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });

// faults opens file and returns what is wrong with it; of its accessibility only
// where that is wanted, which takes most of the time.
async function faults(file, size, colorScheme, accessible = true) {
  const context = await browser.newContext({ viewport: sizes[size], colorScheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const url = pathToFileURL(resolve(file)).href;
  const found = [];
  page.on('request', r => { if (r.url() !== url) found.push(`asks for ${r.url()}`); });
  page.on('console', m => found.push(`console: ${m.text()}`));
  page.on('pageerror', e => found.push(`script: ${e}`));
  await page.goto(url);
  await page.evaluate(() => {
    document.querySelectorAll('details').forEach(d => { d.open = true; });
    // A shadow that tells of more to the side keeps contrast from being measured.
    document.querySelectorAll('.scroll').forEach(e => { e.style.background = 'none'; });
  });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (over > 0) found.push(`is ${over} px wider than the screen`);
  const { passes, violations } = accessible ? await accessibility(page, context) : { passes: 0, violations: [] };
  for (const v of violations) {
    if (v.impact === 'serious' || v.impact === 'critical') found.push(`${v.impact}: ${v.id} at ${v.nodes} places, first ${v.first}`);
  }
  await context.close();
  return { found, passes, minor: violations.length };
}

// misbehaves returns what the script of file does not do: values under the pointer, the
// week of a run by a click, tables that are sorted and filtered.
async function misbehaves(file) {
  const context = await browser.newContext({ viewport: sizes.desk, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(3000);
  const found = [];
  const check = (ok, text) => { if (!ok) found.push(text); };
  await page.goto(pathToFileURL(resolve(file)).href);
  await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));

  // What stands under the pointer at a place of each picture where there is something.
  const tip = page.locator('.tip');
  const values = async () => (await tip.locator('b').allInnerTexts())[0] ?? '';
  for (const picture of await page.locator('.picture > svg').all()) {
    await picture.scrollIntoViewIfNeeded();
    const box = await picture.boundingBox();
    const title = await picture.locator('title').textContent();
    const [x, y] = await picture.evaluate(async svg => {
      await window.report.loaded;
      const hover = window.report.data.pictures?.[svg.parentElement.dataset.picture];
      const [left, right, low, high, x0, x1, y0, y1] = svg.dataset.scale.split(' ').map(Number);
      let at = [(x0 + x1) / 2, (y0 + y1) / 2];
      if (hover?.kind === 'points') at = hover.marks[0];
      if (hover?.kind === 'rows') at = [at[0], 0];
      if (hover?.kind === 'grid') {
        const row = hover.cells.findIndex(r => r.some(n => n > 0)), column = hover.cells[row].findIndex(n => n > 0);
        at = [(hover.edges[column] + hover.edges[column + 1]) / 2, hover.cells.length - 1 - row];
      }
      return [left + (at[0] - x0) / (x1 - x0) * (right - left), low + (at[1] - y0) / (y1 - y0) * (high - low)];
    });
    const scale = box.width / (await picture.evaluate(s => s.viewBox.baseVal.width));
    await page.mouse.move(0, 0);
    await page.mouse.move(box.x + x * scale, box.y + y * scale);
    const text = await tip.isVisible() ? await tip.innerText() : '';
    check(/\d/.test(text), `${title} has no value under the pointer`);
    if (title.startsWith('Bill')) {
      check(/\$[\d,.]+/.test(text), `${title} shows ${text}`);
      // The greatest value at the right end is what the description ends with.
      const desc = await picture.locator('desc').textContent();
      const [, right, low] = (await picture.getAttribute('data-scale')).split(' ').map(Number);
      await page.mouse.move(box.x + right * scale, box.y + (low - 20) * scale);
      const most = Math.max(...[...desc.matchAll(/\$([\d,.]*\d)/g)].map(m => Number(m[1].replaceAll(',', ''))));
      const shown = Number((await values()).replace(/[$,]/g, ''));
      check(Math.abs(shown - most) <= 0.01 * most, `${title} shows ${shown} at its end, which is ${most}`);
    }
  }

  const rows = page.locator('tr[data-week]');
  if (await rows.count() > 0) {
    await rows.first().locator('button').click();
    const dialog = page.locator('dialog[open]');
    check(await dialog.count() === 1, 'a run does not open');
    check(await dialog.locator('svg').count() === 2, 'a run has not two pictures');
    check(await dialog.locator('.legend li').count() > 0, 'a run has no nodes by market');
    const svg = await dialog.locator('svg').last().boundingBox();
    await page.mouse.move(svg.x + svg.width / 2, svg.y + svg.height / 2);
    check(/UTC: \d+ nodes/.test(await tip.innerText()), 'the nodes of a run have no value under the pointer');
    const { violations } = await accessibility(page, context);
    for (const v of violations) if (v.impact === 'serious' || v.impact === 'critical') found.push(`an open run: ${v.id}, first ${v.first}`);
    await page.keyboard.press('Escape');
    check(await page.locator('dialog[open]').count() === 0, 'a run does not close by the keyboard');
  }

  const filter = page.locator('.filter input').first();
  if (await filter.count() > 0) {
    const table = page.locator('.filter + .scroll table').first();
    const word = await table.locator('tbody tr').last().locator('th').evaluate(e => e.firstChild.textContent);
    await filter.fill(word.toUpperCase());
    const shown = await table.locator('tbody tr:visible').allInnerTexts();
    check(shown.length > 0 && shown.every(t => t.toLowerCase().includes(word.toLowerCase())), `the filter ${word} leaves ${shown.length} rows`);
    await filter.fill('no row has this');
    check(await table.locator('tbody tr:visible').count() === 0, 'a filter that nothing meets leaves rows');
    await filter.fill('');
  }
  // The first column of numbers.
  const [table, column] = await page.locator('table.sortable').evaluateAll(all => {
    const at = all.map(t => [...t.tBodies[0].rows[0].cells].findIndex((c, i) => i > 0 && /\d/.test(c.firstChild?.textContent ?? '') && !c.classList.contains('words')));
    const first = at.findIndex(c => c >= 0);
    return [first, at[first]];
  });
  if (table >= 0) {
    const sorted = page.locator('table.sortable').nth(table);
    const numbers = () => sorted.locator('tbody tr').evaluateAll((all, c) => all.map(r => {
      const text = r.cells[c].firstChild.textContent;
      return text === '–' ? -Infinity : Number(/[−+]?\$?\d[\d,.]*/.exec(text)[0].replace('−', '-').replace(/[+$,]/g, ''));
    }), column);
    const heading = sorted.locator('thead th').nth(column).locator('button');
    await heading.click();
    const up = await numbers();
    await heading.click();
    const down = await numbers();
    check(up.every((v, i) => i === 0 || up[i - 1] <= v) && down.every((v, i) => i === 0 || down[i - 1] >= v), `sorted it is ${up}, and ${down}`);
  }
  await context.close();
  return found;
}

let failed = false;
const ways = [['desk', 'dark'], ['phone', 'light'], ['desk', 'light'], ['phone', 'dark']];
for (const [i, report] of reports.entries()) {
  const whole = report === reports.at(-1);
  for (const [size, scheme] of whole ? ways : [ways[i % 2]]) {
    const { found, passes, minor } = await faults(report, size, scheme);
    console.log(`${basename(report)} ${size} ${scheme}: ${found.length} faults, ${passes} rules of accessibility kept, ${minor} not`);
    for (const f of found) console.log(`  ${f}`);
    failed ||= found.length > 0;
  }
}

for (const report of reports) {
  const found = await misbehaves(report);
  console.log(`${basename(report)}: its script has ${found.length} faults`);
  for (const f of found) console.log(`  ${f}`);
  failed ||= found.length > 0;
}

// A check that cannot fail says nothing: each of these must.
const folder = mkdtempSync(join(tmpdir(), 'report-'));
const good = readFileSync(reports.at(-1), 'utf8');
for (const [what, pattern, markup] of [
  ['an image of a host', /asks for|console/, '<img alt="" src="https://host.invalid/x.png"/>'],
  ['a script of its own', /console/, '<script>alert(1)</script>'],
  ['a wide box', /wider/, '<div style="width:3000px">wide</div>'],
  ['pale words', /color-contrast/, '<p style="color:#eee;background:#fff">pale</p>'],
]) {
  const file = join(folder, 'faulty.html');
  writeFileSync(file, good.replace('</main>', markup + '</main>'));
  const { found } = await faults(file, 'phone', 'light', pattern.test('color-contrast'));
  if (!found.some(f => pattern.test(f))) {
    console.log(`${what} is not noticed: ${found.join('; ') || 'no fault'}`);
    failed = true;
  }
}
for (const [what, pattern, from, to] of [
  ['data that are none', /does not open|no value|Timeout/, /id="data"/, 'id="nothing"'],
  ['a scale that is none', /no value|shows/, /data-scale="[^"]*"/g, 'data-scale="0 1 0 1 0 1 0 1"'],
]) {
  const file = join(folder, 'faulty.html');
  writeFileSync(file, readFileSync(reports[0], 'utf8').replace(from, to));
  const found = await misbehaves(file).catch(e => [String(e)]);
  if (!found.some(f => pattern.test(f))) {
    console.log(`${what} is not noticed: ${found.join('; ') || 'no fault'}`);
    failed = true;
  }
}
rmSync(folder, { recursive: true });
await browser.close();
process.exit(failed ? 1 : 0);
