import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../.ci/entryPoints.ts';
import { EVENT_ATTRIBUTES, SPAN_ATTRIBUTES, SPAN_EVENTS, SPAN_NAMES } from '../../lib/telemetry/spanNames.ts';

const NAMES = {
  names: Object.values(SPAN_NAMES),
  attributes: Object.values(SPAN_ATTRIBUTES),
  events: Object.values(SPAN_EVENTS),
  eventAttributes: Object.values(EVENT_ATTRIBUTES),
};

describe('names of spans', () => {
  it('are those that searches and dashboards know; a change here is a breaking one', () => {
    const golden = JSON.parse(readFileSync(join(root, 'spec/telemetry/names.golden.json'), 'utf8')) as {
      readonly spans: unknown;
    };
    expect(NAMES).to.deep.equal(golden.spans);
  });

  it('are all in the reference, and no others are', () => {
    const firsts = (heading: string): readonly string[] => cells(heading).map(([first = '']) => first);
    expect(firsts('Spans')).to.have.members([...NAMES.names]);
    expect(firsts('Attributes')).to.have.members([...NAMES.attributes]);
    expect(firsts('Events on spans')).to.have.members([...NAMES.events]);
    const ofEvents = cells('Events on spans').flatMap(([, , attributes = '']) => attributes.split(', '));
    const known = new Set([...NAMES.eventAttributes, SPAN_ATTRIBUTES.errorType]);
    expect(new Set(ofEvents.filter((name) => name !== ''))).to.deep.equal(known);
  });

  it('are each given once', () => {
    for (const names of Object.values(NAMES)) expect(names).to.deep.equal([...new Set(names)]);
  });
});

/** The rows of the table under a heading. */
function cells(heading: string): readonly (readonly string[])[] {
  const page = readFileSync(join(root, 'docs/reference/tracing.md'), 'utf8');
  const [, after = ''] = page.split(`\n## ${heading}\n`);
  const [section = ''] = after.split('\n## ');
  return section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.slice(1, -1).split('|'))
    .map((row) => row.map((cell) => cell.trim().replaceAll('`', '')));
}
