import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../.ci/entryPoints.ts';
import { policyJsonSchema } from '../../lib/policy/policyJsonSchema.ts';
import { PRESET_NAMES } from '../../lib/policy/presets.ts';
import { RETRY_CLASS_NAMES, retryClasses } from '../../lib/policy/retryClasses.ts';

/** What this spec reads of JSON Schema. */
interface Node {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Node[];
  readonly items?: Node;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: false | Node;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
  readonly default?: unknown;
  readonly description?: string;
}

const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const schema: Node = policyJsonSchema();

/** Objects of the schema by their path; each name of a map is `<name>`. */
function* objectsOf(node: Node, path: string): Generator<readonly [string, Node]> {
  if (node.properties) {
    yield [path, node];
    for (const [key, inner] of Object.entries(node.properties)) {
      yield* objectsOf(inner, path === '' ? key : `${path}.${key}`);
    }
  } else if (node.additionalProperties) yield* objectsOf(node.additionalProperties, `${path}.<name>`);
  else if (node.items) yield* objectsOf(node.items, `${path}[]`);
  for (const form of node.anyOf ?? []) yield* objectsOf(form, path);
}

const objects = [...objectsOf(schema, '')];

describe('policyJsonSchema', () => {
  it('is the one that is recorded', () => {
    const recorded: unknown = JSON.parse(read('spec/api/policy.schema.json'));
    const advice = 'accept it: npx sluice check --schema > spec/api/policy.schema.json, and npm run format';
    expect(policyJsonSchema(), advice).to.deep.equal(recorded);
  });

  it('accepts no unknown keys and describes every key', () => {
    expect(objects).to.have.length.above(20);
    for (const [path, { properties = {}, additionalProperties }] of objects) {
      // Settings of a priority stand under its name.
      if (path !== 'priorities') expect(additionalProperties, path).to.equal(false);
      for (const [key, { description }] of Object.entries(properties)) {
        expect(description, `${path}.${key}`).to.match(/^[A-Z].*\.$/);
      }
    }
  });

  it('names its dialect, and can be written as JSON', () => {
    expect(policyJsonSchema()['$schema']).to.equal('https://json-schema.org/draft/2020-12/schema');
    expect(JSON.parse(JSON.stringify(policyJsonSchema()))).to.deep.equal(policyJsonSchema());
  });
});

describe('docs/reference/policy.md', () => {
  const page = read('docs/reference/policy.md');
  const sections = new Map<string, string>();
  for (const part of page.split(/^## /m).slice(1)) {
    const [title = '', ...lines] = part.split('\n');
    sections.set(title.replace(/`/g, '').replace(/^Top level$/, ''), lines.join('\n'));
  }

  /** Shapes that the page has once, under the first of their paths. */
  const elsewhere =
    /^(quota\.clients\.<name>|models\.<name>\.quota|models\.<name>\.deployments\[\]\.(quota|breaker|concurrency))/;
  /** Many keys of one kind, told in a sentence. */
  const inSentences = ['quota.account.refundOn', 'models.<name>.fallbackOn'];

  for (const [path, { properties = {} }] of objects) {
    if (elsewhere.test(path)) continue;

    it(`tells of every key of ${path || 'the top level'}, with its type and default`, () => {
      const section = sections.get(path);
      if (section === undefined) throw new Error(`there is no section ${path}`);
      if (inSentences.includes(path)) {
        for (const key of Object.keys(properties)) expect(section, key).to.include(`\`${key}\``);
        return;
      }
      const rows = section
        .split('\n')
        .filter((line) => line.startsWith('| `'))
        .map((line) => line.split('|').map((cell) => cell.trim()));
      expect(rows.map((cells) => cells.slice(1, 4))).to.deep.equal(
        Object.entries(properties).map(([key, node]) => [`\`${key}\``, kindOf(node), defaultOf(node)]),
      );
      for (const [, key, , , effect = ''] of rows) expect(effect, key).to.have.length.above(10);
    });
  }

  it('names every preset, and the numbers of every class', () => {
    for (const name of PRESET_NAMES) expect(sections.get('Presets')).to.include(`| \`${name}\``);
    const rows = (sections.get('Classes') ?? '').split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
    for (const name of RETRY_CLASS_NAMES) {
      const { retry, breaker } = retryClasses[name];
      const numbers = [retry?.attempts, retry?.capMs, breaker?.consecutiveFailures].map(String);
      expect(rows.find(([, key]) => key === `\`${name}\``)?.slice(3, 6)).to.deep.equal(numbers);
    }
  });
});

function kindOf(node: Node): string {
  if (node.enum) return node.enum.map((value) => `\`${value}\``).join(', ');
  if (node.anyOf) {
    const kinds = node.anyOf.map(kindOf);
    return kinds.map((kind) => (kind === 'null' ? '`null`' : kind)).join(' or ');
  }
  switch (node.type) {
    case 'array':
      return `list of ${kindOf(node.items ?? {})
        .split(' or ')
        .map((kind) => `${kind}s`)
        .join(' or ')}`;
    case 'object':
      return node.properties ? 'object' : 'object by name';
    case 'integer':
      return `whole number${rangeOf(node)}`;
    case 'number':
      return `number${rangeOf(node)}`;
    case 'string':
      return 'text';
    default:
      return node.type ?? 'anything';
  }
}

function rangeOf({ minimum, exclusiveMinimum, maximum, exclusiveMaximum }: Node): string {
  // Whole numbers end where they stop being exact: that is no bound of ours.
  const bounded = (bound: number | undefined): bound is number =>
    bound !== undefined && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  return [
    ...(bounded(minimum) ? [` ≥ ${minimum}`] : []),
    ...(bounded(exclusiveMinimum) ? [` > ${exclusiveMinimum}`] : []),
    ...(bounded(maximum) ? [` ≤ ${maximum}`] : []),
    ...(bounded(exclusiveMaximum) ? [` < ${exclusiveMaximum}`] : []),
  ].join(',');
}

function defaultOf(node: Node): string {
  return 'default' in node ? `\`${JSON.stringify(node.default)}\`` : '–';
}
