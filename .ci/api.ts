import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import type { ExtractorMessage, IConfigFile } from '@microsoft/api-extractor';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import './build.ts';
import { entryPoints, root } from './entryPoints.ts';

// Compares what each entry point exports with its golden report in spec/api/, or with --update writes the reports.

const update = process.argv.includes('--update');
const reports = join(root, 'spec/api');
const scratch = join(root, 'temp/api');

mkdirSync(scratch, { recursive: true });

const problems: string[] = [];
const entries = entryPoints().filter((entry) => {
  if (existsSync(entry.declarations)) return true;
  problems.push(`${entry.name}: package.json exports it, and dist/ does not have it`);
  return false;
});
const reportNames = entries.map((entry) => `${entry.name.replace('/', '-')}.api.md`);
const configs = entries.map((entry, at) => configOf(entry.declarations, reportNames[at] ?? ''));
const [first] = configs;
if (first === undefined) throw new Error('package.json exports nothing');
const compilerState = CompilerState.create(first, {
  additionalEntryPoints: entries.map((entry) => entry.declarations),
});

entries.forEach((entry, at) => {
  const config = configs[at];
  if (config === undefined) return;
  const result = Extractor.invoke(config, {
    localBuild: update,
    compilerState,
    messageCallback: (message) => {
      hear(message, entry.name);
    },
  });
  if (result.apiReportChanged) {
    const report = `spec/api/${reportNames[at] ?? ''}`;
    if (update) console.log(`${report} updated`);
    else {
      const { stdout } = spawnSync('diff', ['-uN', report, `temp/api/${reportNames[at] ?? ''}`], { cwd: root });
      problems.push(
        `${entry.name}: its exports are not those of ${report}. If that is meant, run \`npm run api\`.\n${stdout.toString().slice(0, 4000)}`,
      );
    }
  }
});

for (const file of globSync('*.api.md', { cwd: reports })) {
  if (reportNames.includes(basename(file))) continue;
  if (update) rmSync(join(reports, file));
  else problems.push(`spec/api/${file}: package.json exports no such entry point. Run \`npm run api\`.`);
}

for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else console.log(`${entries.length} entry points are as their reports say`);

function configOf(declarations: string, reportFileName: string): ExtractorConfig {
  const configObject: IConfigFile = {
    projectFolder: root,
    mainEntryPointFilePath: declarations,
    newlineKind: 'lf',
    compiler: {
      overrideTsconfig: {
        compilerOptions: {
          target: 'ES2023',
          lib: ['ES2023'],
          types: ['node'],
          module: 'NodeNext',
          moduleResolution: 'NodeNext',
          strict: true,
          exactOptionalPropertyTypes: true,
          skipLibCheck: true,
        },
        include: [join(root, 'dist')],
      },
    },
    apiReport: { enabled: true, reportFileName, reportFolder: reports, reportTempFolder: scratch },
    docModel: { enabled: false },
    dtsRollup: { enabled: false },
    tsdocMetadata: { enabled: false },
    messages: {
      compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
      extractorMessageReporting: {
        default: { logLevel: ExtractorLogLevel.Error },
        // A type that users meet and cannot name: the report shows it.
        'ae-forgotten-export': { logLevel: ExtractorLogLevel.Warning, addToApiReportFile: true },
        'ae-missing-release-tag': { logLevel: ExtractorLogLevel.None },
        'ae-undocumented': { logLevel: ExtractorLogLevel.None },
        // Links may name what another entry point exports.
        'ae-unresolved-link': { logLevel: ExtractorLogLevel.None },
      },
      tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
    },
  };
  return ExtractorConfig.prepare({
    configObject,
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, 'package.json'),
  });
}

function hear(message: ExtractorMessage, entry: string): void {
  message.handled = true;
  if (message.logLevel !== ExtractorLogLevel.Error) return;
  problems.push(`${entry}: ${message.formatMessageWithLocation(root)}`);
}
