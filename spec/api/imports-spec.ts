import { expect } from 'chai';
import { cruise } from 'dependency-cruiser';
import type { IFlattenedRuleSet } from 'dependency-cruiser';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const config = createRequire(import.meta.url)('../../.dependency-cruiser.cjs') as {
  forbidden: NonNullable<IFlattenedRuleSet['forbidden']>;
  options: object;
};

/** What stands in lib/ of a made-up project: file, its text, and the rule that must reject it (`undefined`: allowed). */
const PLANTED: readonly (readonly [file: string, text: string, rule: string | undefined])[] = [
  ['core/plain.ts', "import type { Observable } from 'rxjs';\nexport type Plain = Observable<1>;", undefined],
  ['core/rx.ts', "import { of } from 'rxjs';\nexport const rx = of(1);", 'core-types-of-rxjs'],
  ['core/down.ts', "import { pure } from '../limits/pure.ts';\nexport const down = pure;", 'core-imports'],
  ['core/node.ts', "import { readFileSync } from 'node:fs';\nexport const node = readFileSync;", 'core-node'],
  ['limits/pure.ts', "import type { Plain } from '../core/plain.ts';\nexport const pure: Plain | 1 = 1;", undefined],
  ['limits/rx.ts', "import type { Observable } from 'rxjs';\nexport type Rx = Observable<1>;", 'limits-packages'],
  ['wire/sse.ts', "import type { Plain } from '../core/plain.ts';\nexport const sse: Plain | 1 = 1;", undefined],
  ['wire/yaml.ts', "import { parse } from 'yaml';\nexport const yaml = parse;", 'wire-packages'],
  ['sources/chat.ts', "import type { OpenAI } from 'openai';\nexport type Chat = OpenAI;", undefined],
  ['sources/sdk.ts', "import { OpenAI } from 'openai';\nexport const sdk = OpenAI;", 'sources-types-of-openai'],
  ['sources/gate.ts', "import { gate } from '../operators/gate.ts';\nexport const g = gate;", 'sources-imports'],
  ['operators/gate.ts', "import { of } from 'rxjs';\nexport const gate = of(1);", undefined],
  ['operators/zod.ts', "import { z } from 'zod';\nexport const zod = z;", 'operators-packages'],
  ['operators/index.ts', "export { sse } from '../wire/sse.ts';", undefined],
  ['operators/list.ts', "import { sse } from './index.ts';\nexport const list = sse;", 'not-from-the-lists'],
  ['policy/load.ts', "import { readFileSync } from 'node:fs';\nexport const load = readFileSync;", undefined],
  ['policy/net.ts', "import { createServer } from 'node:http';\nexport const net = createServer;", 'policy-node'],
  ['emulator/model/provider.ts', "import { pure } from '../../limits/pure.ts';\nexport const p = pure;", undefined],
  [
    'emulator/model/serve.ts',
    "import { server } from '../server.ts';\nexport const s = server;",
    'emulator/model-imports',
  ],
  [
    'emulator/model/net.ts',
    "import { createServer } from 'node:http';\nexport const n = createServer;",
    'emulator/model-node',
  ],
  ['emulator/server.ts', "import { createServer } from 'node:http';\nexport const server = createServer;", undefined],
  ['emulator/wire.ts', "import { sse } from '../wire/sse.ts';\nexport const w = sse;", 'emulator-imports'],
  ['cli/main.ts', "import { server } from '../emulator/server.ts';\nexport const main = server;", undefined],
  ['testing/cli.ts', "import { main } from '../cli/main.ts';\nexport const cli = main;", 'nobody-imports-cli'],
  [
    'simulator/net.ts',
    "import { server } from '../emulator/server.ts';\nexport const n = server;",
    'simulator-imports',
  ],
  ['core/a.ts', "import { b } from './b.ts';\nexport const a = (): unknown => b;", 'no-circular'],
  ['core/b.ts', "import { a } from './a.ts';\nexport const b = (): unknown => a;", undefined],
  ['core/lost.ts', "import { lost } from './nowhere.ts';\nexport const l = lost;", 'resolvable'],
  [
    'core/spec.ts',
    "import { helper } from '../../spec/helper.ts';\nexport const h = helper;",
    'nothing-from-outside-lib',
  ],
  ['misc/thing.ts', 'export const thing = 1;', undefined],
  ['misc/other.ts', "import { thing } from './thing.ts';\nexport const other = thing;", 'known-parts'],
  ['index.ts', "export { n } from './simulator/net.ts';", 'lib/index.ts-lists'],
];

describe('import rules', () => {
  let project: string;

  before(() => {
    project = mkdtempSync(join(tmpdir(), 'sluice-imports-'));
    symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'));
    const files: [string, string][] = PLANTED.map(([file, text]) => [`lib/${file}`, text]);
    files.push(['spec/helper.ts', 'export const helper = 1;']);
    for (const [file, text] of files) {
      mkdirSync(dirname(join(project, file)), { recursive: true });
      writeFileSync(join(project, file), text);
    }
  });

  after(() => rmSync(project, { recursive: true, force: true }));

  it('reject each planted import by the rule meant for it, and nothing else', async () => {
    const result = await cruise(['lib'], {
      ...config.options,
      baseDir: project,
      validate: true,
      ruleSet: { forbidden: config.forbidden },
      outputType: 'json',
    });
    const output = (typeof result.output === 'string' ? JSON.parse(result.output) : result.output) as {
      summary: { violations: { from: string; rule: { name: string } }[] };
    };

    const rejected = new Map<string, string[]>();
    for (const { from, rule } of output.summary.violations) {
      rejected.set(from, [...(rejected.get(from) ?? []), rule.name]);
    }

    for (const [file, , rule] of PLANTED) {
      const rules = rejected.get(`lib/${file}`) ?? [];
      if (rule === undefined) expect(rules, file).to.deep.equal([]);
      else expect(rules, file).to.include(rule);
    }
  }).timeout(30_000);
});
