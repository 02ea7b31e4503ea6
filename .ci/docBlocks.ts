import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A fenced `ts` block of a page or of a doc comment. */
export interface DocBlock {
  /** Relative to the root. */
  readonly file: string;
  /** Line of the file that the first line of `code` stands on, from 1. */
  readonly line: number;
  readonly code: string;
}

/** Everything that a reader of the project may read: pages and the doc comments of lib/. */
export function docFiles(root: string): { readonly pages: readonly string[]; readonly sources: readonly string[] } {
  const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md'], { cwd: root }).sort();
  return { pages, sources: globSync('lib/**/*.ts', { cwd: root }).sort() };
}

export function docBlocks(root: string): readonly DocBlock[] {
  const { pages, sources } = docFiles(root);
  const read = (file: string): string => readFileSync(join(root, file), 'utf8');
  return [
    ...pages.flatMap((file) => fencedBlocks(file, read(file).split('\n'))),
    ...sources.flatMap((file) => fencedBlocks(file, commentLines(read(file)))),
  ];
}

function fencedBlocks(file: string, lines: readonly string[]): readonly DocBlock[] {
  const blocks: DocBlock[] = [];
  let open: { readonly indent: string; readonly fence: string; readonly code: string[] | undefined } | undefined;
  let firstLine = 0;
  lines.forEach((text, at) => {
    const fence = /^(\s*)(`{3,}|~{3,})\s*(\S*)/.exec(text);
    if (open === undefined) {
      if (fence === null) return;
      const [, indent = '', marks = '', language = ''] = fence;
      open = { indent, fence: marks, code: /^(ts|typescript)$/.test(language) ? [] : undefined };
      firstLine = at + 2;
    } else if (fence !== null && fence[2]?.startsWith(open.fence) === true && fence[3] === '') {
      if (open.code !== undefined) blocks.push({ file, line: firstLine, code: open.code.join('\n') });
      open = undefined;
    } else {
      open.code?.push(text.startsWith(open.indent) ? text.slice(open.indent.length) : text);
    }
  });
  return blocks;
}

/** The lines of a source file with all but the text of its doc comments blanked. */
function commentLines(source: string): readonly string[] {
  let inside = false;
  return source.split('\n').map((line) => {
    if (!inside) {
      inside = /^\s*\/\*\*(?!.*\*\/)/.test(line);
      return '';
    }
    if (line.includes('*/')) {
      inside = false;
      return '';
    }
    return line.replace(/^\s*\* ?/, '');
  });
}
