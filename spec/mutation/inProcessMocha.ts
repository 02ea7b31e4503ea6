import { createRequire } from 'node:module';
import { globSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { commonTokens, declareClassPlugin, PluginKind, tokens } from '@stryker-mutator/api/plugin';
import {
  DryRunStatus,
  MutantRunStatus,
  TestStatus,
  determineHitLimitReached,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner';
import type {
  DryRunOptions,
  DryRunResult,
  MutantRunOptions,
  MutantRunResult,
  TestResult,
  TestRunner,
  TestRunnerCapabilities,
} from '@stryker-mutator/api/test-runner';
import type { InstrumenterContext, StrykerOptions } from '@stryker-mutator/api/core';

// Stryker's own runner for Mocha reaches into files that Mocha 12 no longer has. This one asks Mocha's public API for the same:
// all specs are loaded once, and each mutant runs the tests that cover it in the same process.

/** A test that waits for what a mutant never does has failed after so long, or so many times what it took before. */
const TEST_MS = 4000;
const TIMES_SLOWER = 5;
/** What takes longer measures how a machine scales, and would be run for every mutant that survives the others. */
const HEAVY_MS = 3000;

interface MochaTest {
  readonly file?: string;
  readonly duration?: number;
  fullTitle(): string;
  timeout(ms: number): void;
  readonly ctx?: { readonly currentTest?: { fullTitle(): string } };
}

interface MochaSuite {
  bail(bail: boolean): void;
  readonly suites: readonly MochaSuite[];
  readonly tests: readonly MochaTest[];
  beforeEach(hook: (this: { currentTest?: MochaTest }) => void): void;
}

interface MochaRunner {
  on(event: 'pass', listener: (test: MochaTest) => void): MochaRunner;
  on(event: 'fail', listener: (test: MochaTest, error: Error | undefined) => void): MochaRunner;
}

interface MochaInstance {
  readonly suite: MochaSuite;
  addFile(file: string): void;
  cleanReferencesAfterRun(clean: boolean): void;
  dispose(): void;
  grep(pattern: unknown): void;
  loadFilesAsync(): Promise<void>;
  run(done: () => void): MochaRunner;
}

type MochaClass = new (options: object) => MochaInstance;

/** What is to be told comes from the runner's events. */
function silent(): void {}

class InProcessMocha implements TestRunner {
  static readonly inject = tokens(commonTokens.options, commonTokens.fileDescriptions);
  readonly #specs: readonly string[];
  readonly #hooks: readonly string[];
  readonly #context: InstrumenterContext;
  #mocha: MochaInstance | undefined;
  #loaded = false;
  /** Where each test stands, by its full title. */
  readonly #files = new Map<string, string>();
  readonly #tookMs = new Map<string, number>();
  /** Writes down which test runs, so that the instrumented code knows what it is covered by. */
  #tellsTest = false;

  constructor(options: StrykerOptions) {
    const { specs, hooks } = options['inProcessMocha'] as { specs: string[]; hooks: string[] };
    this.#specs = specs;
    this.#hooks = hooks;
    const space = globalThis as unknown as Record<string, InstrumenterContext | undefined>;
    // The name that Stryker's instrumented code uses.
    this.#context = space['__stryker__'] ??= {} as InstrumenterContext;
  }

  capabilities(): TestRunnerCapabilities {
    return { reloadEnvironment: false };
  }

  async init(): Promise<void> {
    // That of the sandbox, which the specs import too.
    const { resolve: find } = createRequire(join(process.cwd(), 'package.json'));
    const { default: Mocha } = (await import(pathToFileURL(find('mocha')).href)) as { default: MochaClass };
    const rootHooks = {};
    for (const file of this.#hooks) {
      const { mochaHooks } = (await import(pathToFileURL(resolve(file)).href)) as { mochaHooks?: object };
      Object.assign(rootHooks, mochaHooks);
    }
    const mocha = new Mocha({ reporter: silent, timeout: 0, rootHooks });
    mocha.cleanReferencesAfterRun(false);
    for (const file of globSync([...this.#specs]).sort()) mocha.addFile(resolve(file));
    const tell = (title: string | undefined): void => {
      if (this.#tellsTest && title !== undefined) this.#context.currentTestId = title;
    };
    mocha.suite.beforeEach(function () {
      tell(this.currentTest?.fullTitle());
    });
    this.#mocha = mocha;
  }

  async dryRun({ coverageAnalysis, disableBail }: DryRunOptions): Promise<DryRunResult> {
    this.#tellsTest = coverageAnalysis === 'perTest';
    const result = await this.#run(disableBail);
    this.#tellsTest = false;
    const { mutantCoverage } = this.#context;
    if (result.status !== DryRunStatus.Complete) return result;
    for (const { id, fileName = '', timeSpentMs } of result.tests) {
      this.#files.set(id, fileName);
      this.#tookMs.set(id, timeSpentMs);
    }
    if (coverageAnalysis === 'off' || !mutantCoverage) return result;
    return { ...result, mutantCoverage };
  }

  async mutantRun({ activeMutant, testFilter, disableBail, hitLimit }: MutantRunOptions): Promise<MutantRunResult> {
    Object.assign(this.#context, { hitLimit, hitCount: hitLimit === undefined ? undefined : 0 });
    const covering = (testFilter ?? [...this.#files.keys()]).filter(
      (title) => (this.#tookMs.get(title) ?? 0) < HEAVY_MS,
    );
    // Most mutants fall to the spec of their own file; what covers them from afar is dearer.
    const own = `/${basename(activeMutant.fileName, '.ts')}-spec.ts`;
    const near = covering.filter((title) => this.#files.get(title)?.endsWith(own));
    const far = covering.filter((title) => !this.#files.get(title)?.endsWith(own));
    let result: MutantRunResult | undefined;
    for (const titles of [near, far].filter(({ length }) => length > 0)) {
      const wanted = new Set(titles);
      this.#mocha?.grep({ test: (title: string) => wanted.has(title) });
      result = toMutantRunResult(await this.#run(disableBail, activeMutant.id));
      if (result.status !== MutantRunStatus.Survived) break;
    }
    return result ?? { status: MutantRunStatus.Survived, nrOfTests: 0 };
  }

  dispose(): Promise<void> {
    this.#mocha?.dispose();
    return Promise.resolve();
  }

  async #run(disableBail: boolean, mutant?: string): Promise<DryRunResult> {
    const mocha = this.#mocha as MochaInstance;
    const tests: TestResult[] = [];
    try {
      if (!this.#loaded) await mocha.loadFilesAsync();
      this.#loaded = true;
      this.#prepare(mocha.suite, !disableBail);
      Object.assign(this.#context, { activeMutant: mutant });
      await new Promise<void>((done) => {
        const runner = mocha.run(() => done());
        runner.on('pass', (test) => {
          const name = test.fullTitle();
          const { file: fileName = '', duration: timeSpentMs = 0 } = test;
          tests.push({ id: name, name, status: TestStatus.Success, timeSpentMs, fileName });
        });
        runner.on('fail', (test, error) => {
          // Where a hook fails, it is the test's failure that it runs for.
          const name = test.ctx?.currentTest?.fullTitle() ?? test.fullTitle();
          const failureMessage = error?.message ?? 'failed without a message';
          tests.push({ id: name, name, status: TestStatus.Failed, timeSpentMs: test.duration ?? 0, failureMessage });
        });
      });
    } catch (error) {
      return { status: DryRunStatus.Error, errorMessage: String((error as Error).stack) };
    }
    const stuck = determineHitLimitReached(this.#context.hitCount, this.#context.hitLimit);
    return stuck ?? { status: DryRunStatus.Complete, tests };
  }

  #prepare(suite: MochaSuite, bail: boolean): void {
    suite.bail(bail);
    for (const test of suite.tests) {
      const tookMs = this.#tookMs.get(test.fullTitle());
      test.timeout(tookMs === undefined ? 0 : Math.max(TEST_MS, TIMES_SLOWER * tookMs));
    }
    for (const inner of suite.suites) this.#prepare(inner, bail);
  }
}

export const strykerPlugins: readonly object[] = [
  declareClassPlugin(PluginKind.TestRunner, 'in-process-mocha', InProcessMocha),
];
