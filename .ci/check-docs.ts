import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import ts from 'typescript';
import { docBlocks, docFiles } from './docBlocks.ts';
import type { DocBlock } from './docBlocks.ts';
import { entryPoints, root } from './entryPoints.ts';

// Compiles every `ts` block of the pages and doc comments against the entry points, runs those that say what they print
// (`// => text`), and follows every relative link.

const problems: string[] = [];
const blocks = docBlocks(root);

typeCheck(blocks);
checkLinks();
const runnable = blocks.filter((block) => printsOf(block).length > 0);
if (problems.length === 0 && runnable.length > 0) await runAll(runnable);

for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else console.log(`${blocks.length} blocks of TypeScript compile, ${runnable.length} of them print what they say`);

function typeCheck(blocks: readonly DocBlock[]): void {
  const paths = Object.fromEntries(
    entryPoints()
      .filter(({ source }) => existsSync(source))
      .map(({ name, source }) => [name, [source]]),
  );
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as {
    config: { compilerOptions: object };
  };
  const { options } = ts.convertCompilerOptionsFromJson(
    { ...config.compilerOptions, noUnusedLocals: false, noUnusedParameters: false, declaration: false, paths },
    root,
  );
  options.isolatedDeclarations = false;

  const files = new Map(blocks.map((block, at) => [join(root, `docs/block-${at}.ts`), block]));
  const disk = ts.createCompilerHost(options);
  const host: ts.CompilerHost = {
    ...disk,
    fileExists: (name) => files.has(name) || disk.fileExists(name),
    readFile: (name) => moduleText(files.get(name)) ?? disk.readFile(name),
    getSourceFile(name, language, onError, fresh) {
      const text = moduleText(files.get(name));
      if (text === undefined) return disk.getSourceFile(name, language, onError, fresh);
      return ts.createSourceFile(name, text, language, true);
    },
  };

  const program = ts.createProgram({ rootNames: [...files.keys()], options, host });
  for (const [name, block] of files) {
    const source = program.getSourceFile(name);
    for (const found of [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]) {
      const within = source?.getLineAndCharacterOfPosition(found.start ?? 0).line ?? 0;
      const message = ts.flattenDiagnosticMessageText(found.messageText, ' ');
      problems.push(`${block.file}:${block.line + within}: ${message}`);
    }
  }
}

function moduleText(block: DocBlock | undefined): string | undefined {
  return block && `${block.code}\nexport {};\n`;
}

/** What a block says it prints, in order: the text after each `// =>`. */
function printsOf(block: DocBlock): readonly string[] {
  return block.code.split('\n').flatMap((line) => /\/\/ => (.*)$/.exec(line)?.[1]?.trim() ?? []);
}

async function runAll(blocks: readonly DocBlock[]): Promise<void> {
  await import('./build.ts');
  // Within the package, so that its own name can be imported.
  const folder = join(root, 'temp/docs');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const waiting = blocks.map((block, at) => ({ block, file: join(folder, `block-${at}.ts`) }));
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await run(next.block, next.file);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
}

function run(block: DocBlock, file: string): Promise<void> {
  writeFileSync(file, moduleText(block) ?? '');
  return new Promise((resolve) => {
    execFile(process.execPath, [file], { cwd: root, timeout: 20_000 }, (error, stdout, stderr) => {
      const said = printsOf(block);
      const printed = stdout.trimEnd().split('\n');
      const at = `${block.file}:${block.line}`;
      if (error !== null) problems.push(`${at}: the block fails when run: ${stderr.trim() || error.message}`);
      else if (said.join('\n') !== printed.join('\n')) {
        problems.push(`${at}: the block says\n  ${said.join('\n  ')}\nand prints\n  ${printed.join('\n  ')}`);
      }
      resolve();
    });
  });
}

function checkLinks(): void {
  for (const page of docFiles(root).pages) {
    const lines = readFileSync(join(root, page), 'utf8').split('\n');
    let fenced = false;
    lines.forEach((line, at) => {
      if (/^\s*(```|~~~)/.test(line)) fenced = !fenced;
      if (fenced) return;
      for (const [, target = ''] of line.replace(/`[^`]*`/g, '').matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g)) {
        const fault = linkFault(page, target);
        if (fault !== undefined) problems.push(`${page}:${at + 1}: ${fault}`);
      }
    });
  }
}

function linkFault(page: string, target: string): string | undefined {
  if (/^[a-z]+:/.test(target)) return undefined;
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : normalize(join(dirname(page), decodeURIComponent(path)));
  const absolute = join(root, file);
  if (!existsSync(absolute)) return `${target} leads to no file`;
  if (anchor === undefined || statSync(absolute).isDirectory() || !file.endsWith('.md')) return undefined;
  return anchorsOf(absolute).has(anchor) ? undefined : `${target}: ${file} has no such heading`;
}

/** The anchors that a page's headings get where it is shown. */
function anchorsOf(file: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  const text = readFileSync(file, 'utf8').replace(/^(```|~~~)[\s\S]*?^\1/gm, '');
  for (const [, heading = ''] of text.matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-');
    let anchor = slug;
    for (let again = 1; anchors.has(anchor); again++) anchor = `${slug}-${again}`;
    anchors.add(anchor);
  }
  for (const [, id = ''] of text.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id);
  return anchors;
}
