// Runs axe beside a page.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

// load returns the browser's driver and accessibility, both of the folder node_modules.
export function load(modules) {
  const require = createRequire(join(resolve(modules), 'x.js'));
  const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
  return { chromium: require('playwright-core').chromium, accessibility: (page, context) => accessibility(axe, page, context) };
}

// accessibility runs axe in a world of its own, since the policy of a page may let no other
// script in.
async function accessibility(axe, page, context) {
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
