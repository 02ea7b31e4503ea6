import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { SluiceError } from '../../lib/core/errors.ts';
import type { CommandEntry } from '../../lib/cli/commands.ts';
import { parseFlags } from '../../lib/cli/flags.ts';
import { runCli } from '../../lib/cli/runCli.ts';

const commands: Record<string, CommandEntry> = {
  greet: {
    summary: 'say hello',
    load: async () => ({
      help: 'Usage: sluice greet [--name NAME]',
      async run(args, terminal) {
        const { values } = parseFlags(args, { name: { type: 'string' }, loud: { type: 'boolean' } });
        terminal.print(`hello ${values.name ?? 'you'}${values.loud === true ? '!' : ''}`);
        return 0;
      },
    }),
  },
  fail: {
    summary: 'end with 3',
    load: async () => ({ help: '', run: async () => 3 }),
  },
  crash: {
    summary: 'throw',
    load: async () => ({
      help: '',
      run: async () => {
        throw new SluiceError('closed', 'it is closed');
      },
    }),
  },
};

async function run(...args: string[]) {
  const printed: string[] = [];
  const complained: string[] = [];
  const terminal = {
    print: (line: string) => void printed.push(line),
    complain: (line: string) => void complained.push(line),
    write: () => {},
    live: undefined,
    interrupted: async () => {},
    onReload: () => () => {},
  };
  const code = await runCli(args, terminal, commands);
  return { code, out: printed.join('\n'), err: complained.join('\n') };
}

describe('runCli', () => {
  it('lists exactly the commands there are', async () => {
    for (const args of [[], ['--help'], ['-h'], ['help']]) {
      const { code, out } = await run(...args);
      expect(code).to.equal(0);
      expect(out.match(/^ {2}\w+/gm)).to.deep.equal(['  greet', '  fail', '  crash']);
    }
  });

  it('runs a command with its flags and returns its exit code', async () => {
    expect(await run('greet', '--name', 'Ada', '--loud')).to.deep.equal({ code: 0, out: 'hello Ada!', err: '' });
    expect(await run('greet', '--loud', '--no-loud')).to.include({ out: 'hello you' });
    expect((await run('fail')).code).to.equal(3);
  });

  it('prints the help of a command, whatever else is said', async () => {
    expect(await run('greet', '--nonsense', '--help')).to.deep.include({
      code: 0,
      out: 'Usage: sluice greet [--name NAME]',
    });
  });

  const wrong: readonly [readonly string[], string][] = [
    [['nonsense'], 'sluice: there is no command "nonsense"; `sluice --help` lists what there is'],
    [['toString'], 'sluice: there is no command "toString"; `sluice --help` lists what there is'],
    [['--nonsense'], 'sluice: there is no flag "--nonsense"; `sluice --help` lists what there is'],
    [['greet', '--nme', 'Ada'], 'sluice greet: there is no flag --nme; see `sluice greet --help`'],
    [['greet', '-x'], 'sluice greet: there is no flag -x; see `sluice greet --help`'],
    [['greet', '--name'], 'sluice greet: --name needs a value; see `sluice greet --help`'],
    [['greet', 'Ada'], 'sluice greet: there is no use for "Ada" here; see `sluice greet --help`'],
  ];
  for (const [args, sentence] of wrong) {
    it(`answers \`sluice ${args.join(' ')}\` with one sentence and exit code 2`, async () => {
      expect(await run(...args)).to.deep.equal({ code: 2, out: '', err: sentence });
    });
  }

  it('says one line to a flag that takes no value and got one', async () => {
    const { code, err } = await run('greet', '--loud=yes');
    expect(code).to.equal(2);
    expect(err)
      .to.match(/^sluice greet: .*--loud.*does not take an argument; see/)
      .and.not.include('\n');
  });

  it('lets a fault of the command itself through', async () => {
    const error = await run('crash').catch((caught: unknown) => caught);
    expect(error).to.have.property('code', 'closed');
  });

  it('ends in silence when whoever reads its output has had enough', () => {
    const command = `"${process.execPath}" lib/cli/main.ts check --schema | head -c 1`;
    const { stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
    expect({ stdout, stderr }).to.deep.equal({ stdout: '{', stderr: '' });
  });
});
