import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { docBlocks } from '../../.ci/docBlocks.ts';
import { root } from '../../.ci/entryPoints.ts';

const read = (file: string): string => readFileSync(join(root, file), 'utf8');

const page = (...lines: readonly string[]): string => lines.join('\n').replaceAll("'''", '```');

describe('docBlocks', () => {
  it('finds the blocks of doc comments with the lines they stand on', () => {
    const file = 'lib/core/seededRandom.ts';
    const found = docBlocks(root).filter((block) => block.file === file);
    expect(found).to.not.have.length(0);
    for (const { line, code } of found) {
      const [firstLine = ''] = code.split('\n');
      expect(read(file).split('\n')[line - 1]).to.equal(` * ${firstLine}`);
    }
  });
});

describe('check:docs', function () {
  this.timeout(60_000);
  this.slow(20_000);

  let project: string;

  beforeEach(() => {
    project = mkdtempSync(join(tmpdir(), 'sluice-docs-'));
    cpSync(join(root, '.ci'), join(project, '.ci'), { recursive: true });
    cpSync(join(root, 'tsconfig.json'), join(project, 'tsconfig.json'));
    symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'));
    write({
      'package.json': JSON.stringify({
        name: 'sluice',
        type: 'module',
        exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } },
      }),
      'lib/index.ts': page(
        '/**',
        ' * Doubles.',
        ' *',
        ' * @example',
        " * '''ts",
        " * import { double } from 'sluice';",
        ' *',
        ' * console.log(double(4)); // => 8',
        " * '''",
        ' */',
        'export function double(value: number): number {',
        '  return 2 * value;',
        '}',
      ),
    });
  });

  afterEach(() => rmSync(project, { recursive: true, force: true }));

  function write(files: Readonly<Record<string, string>>): void {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(project, file)), { recursive: true });
      writeFileSync(join(project, file), text);
    }
  }

  function check(): { readonly status: number | null; readonly said: string } {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(project, '.ci/check-docs.ts')], {
      encoding: 'utf8',
    });
    return { status, said: (stdout + stderr).trim() };
  }

  it('names the line of what does not compile, and of each link that leads nowhere', () => {
    write({
      'README.md': page(
        '# Title',
        '[ok](docs/a.md#second-part), [text](docs/none.md)',
        "'''ts",
        "import { double } from 'sluice';",
        "double('four');",
        "'''",
        "'''text",
        'double(value: never): [no link](nowhere.md)',
        "'''",
        '[anchor](docs/a.md#third)',
      ),
      'docs/a.md': '# First\n\n## Second part\n\n[up](../README.md) [self](#first)\n',
    });

    const { status, said } = check();

    expect(status).to.equal(1);
    expect(said.split('\n')).to.deep.equal([
      "README.md:5: Argument of type 'string' is not assignable to parameter of type 'number'.",
      'README.md:2: docs/none.md leads to no file',
      'README.md:10: docs/a.md#third: docs/a.md has no such heading',
    ]);
  });

  it('runs the blocks that say what they print', () => {
    const block = (printed: number): string =>
      page("'''ts", "import { double } from 'sluice';", `console.log(double(2)); // => ${printed}`, "'''");

    write({ 'README.md': block(4), 'docs/a.md': block(5) });

    // Nothing is said of the README, nor of the doc comment.
    expect(check()).to.deep.equal({ status: 1, said: 'docs/a.md:2: the block says\n  5\nand prints\n  4' });
  });
});

const errorsPage = 'docs/reference/errors.md';

(existsSync(join(root, errorsPage)) ? describe : describe.skip)('docs/reference/errors.md', () => {
  it('names every error code', () => {
    const source = read('lib/core/errors.ts');
    const codes = [...source.matchAll(/^ {2}\| '([a-z_]+)'/gm)].map(([, code = '']) => code);
    expect(codes).to.have.length.above(25);
    const text = read(errorsPage);
    for (const code of codes) expect(text, code).to.include(`\`${code}\``);
  });
});
