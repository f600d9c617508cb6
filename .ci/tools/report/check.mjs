// Opens HTML reports from disk in Chromium, at the sizes of a desk and of a
// phone, in light and in dark, and fails when one asks for anything outside
// itself, writes to the console, is wider than the screen, or has a serious
// fault of accessibility.
//
//   node check.mjs CHROMIUM MODULES REPORT…
//
// MODULES is the node_modules folder with playwright-core and axe-core. The
// last REPORT is opened in all four ways, the others in one of them each, in
// turns: their pages are of the same style. It is then made faulty in several
// ways, and each must be noticed.
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [executablePath, modules, ...reports] = process.argv.slice(2);
const require = createRequire(join(resolve(modules), 'x.js'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const sizes = { desk: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });

// accessibility runs axe beside the page, whose policy lets no other script in.
async function accessibility(page, context) {
  const session = await context.newCDPSession(page);
  const { frameTree } = await session.send('Page.getFrameTree');
  const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id });
  await session.send('Runtime.evaluate', { contextId, expression: axe });
  const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
    contextId, awaitPromise: true, returnByValue: true,
    expression: `axe.run(document, { resultTypes: ['violations'] }).then(r => ({
      passes: r.passes.length,
      violations: r.violations.map(v => ({ impact: v.impact, id: v.id, nodes: v.nodes.length, first: v.nodes[0].html.slice(0, 200) })),
    }))`,
  });
  if (exceptionDetails) throw new Error('axe: ' + exceptionDetails.exception.description);
  return result.value;
}

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
rmSync(folder, { recursive: true });
await browser.close();
process.exit(failed ? 1 : 0);
