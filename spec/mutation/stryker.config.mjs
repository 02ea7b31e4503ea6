import { join } from 'node:path';

const here = (file) => join(import.meta.dirname, file);
const { MUTATION_GROUP: group, MUTATION_SPECS: specs = '' } = process.env;

/** Started by mutate.ts, which says what is mutated and which specs are run. */
export default {
  testRunner: 'in-process-mocha',
  plugins: [here('inProcessMocha.ts')],
  inProcessMocha: { hooks: ['spec/helpers/root.ts', here('hooks.ts')], specs: specs.split(',') },
  coverageAnalysis: 'perTest',
  // Node strips the types; a mutant need not fit them.
  disableTypeChecks: false,
  // Constants of a module: to try one, a new process would have to load everything anew.
  ignoreStatic: true,
  concurrency: 1,
  timeoutMS: 5000,
  timeoutFactor: 2,
  // Outside of what the compiler, the linter and the tests look at.
  tempDirName: 'temp/stryker',
  ignorePatterns: [
    'dist',
    'docs',
    'examples',
    'coverage',
    'temp',
    'reports',
    'spec/bench',
    'spec/clients',
    'spec/mutation',
  ],
  incremental: true,
  incrementalFile: `reports/mutation/${group}.json`,
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, allowEmojis: false, logTests: false, reportTests: false },
  warnings: { unknownOptions: false },
};
