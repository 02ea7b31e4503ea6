import { createRequire } from 'node:module';
import { isSluiceError } from '../core/errors.ts';
import type { Terminal } from './Command.ts';
import { COMMANDS } from './commands.ts';
import type { CommandEntry } from './commands.ts';

const USAGE_ERROR = 2;

/**
 * Runs one command line, without the program's name, and returns the exit code: 0 when all went well, 2 for a command
 * line that cannot be read, else what the command says.
 */
export async function runCli(
  args: readonly string[],
  terminal: Terminal,
  commands: Readonly<Record<string, CommandEntry>> = COMMANDS,
): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    terminal.print(helpOf(commands));
    return 0;
  }
  if (name === '--version' || name === '-v') {
    const manifest = createRequire(import.meta.url)('../../package.json') as { readonly version: string };
    terminal.print(manifest.version);
    return 0;
  }
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) {
    const what = name.startsWith('-') ? 'flag' : 'command';
    terminal.complain(`sluice: there is no ${what} "${name}"; \`sluice --help\` lists what there is`);
    return USAGE_ERROR;
  }
  const command = await entry.load();
  if (rest.includes('--help') || rest.includes('-h')) {
    terminal.print(command.help);
    return 0;
  }
  try {
    return await command.run(rest, terminal);
  } catch (error) {
    if (!isSluiceError(error) || error.code !== 'invalid_option') throw error;
    terminal.complain(`sluice ${name}: ${error.message}; see \`sluice ${name} --help\``);
    return USAGE_ERROR;
  }
}

function helpOf(commands: Readonly<Record<string, CommandEntry>>): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length));
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return ['Usage: sluice <command> [flags]', '', ...lines, '', '`sluice <command> --help` tells more of one.'].join(
    '\n',
  );
}
